# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Says how far loading is: bars for who sits at a terminal, plain lines for a log."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from transformers.utils import logging as transformers_logging

from tensorrt_llm.logger import get_logger

BARS_VARIABLE = "TRTLLM_PROGRESS_BARS"
"""``1`` draws bars wherever standard error goes, ``0`` draws none."""

_logger = get_logger(__name__)


def draws_bars() -> bool:
    """Whether bars are drawn: on a terminal, unless `BARS_VARIABLE` says otherwise."""
    asked = os.environ.get(BARS_VARIABLE)
    return sys.stderr.isatty() if asked not in ("0", "1") else asked == "1"


@contextmanager
def load_stage(what: str) -> Iterator[None]:
    """A part of loading. transformers draws its bars in it only if bars are drawn.

    Args:
        what: For people, as in "loading weights".
    """
    bars, before = draws_bars(), transformers_logging.is_progress_bar_enabled()
    if not bars:
        _logger.info("%s", what)
        transformers_logging.disable_progress_bar()
    began = time.monotonic()
    try:
        yield
        if not bars:
            _logger.info("%s: done in %.1f s", what, time.monotonic() - began)
    finally:
        if before:
            transformers_logging.enable_progress_bar()
