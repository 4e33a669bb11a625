# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Log levels by upstream's names, one terminal handler, nothing configured by an import."""

from __future__ import annotations

import io
import logging
import re
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tensorrt_llm.logger import LEVELS, configure, get_logger, logger, set_level


@pytest.fixture(autouse=True)
def _restored() -> Iterator[None]:
    level, handlers = logger.level, list(logger.handlers)
    yield
    logger.setLevel(level)
    logger.handlers[:] = handlers


def test_import_configures_nothing() -> None:
    # In a process of its own: other tests run commands, which do configure.
    code = (
        "import logging; from tensorrt_llm.logger import logger; "
        "assert (logger.handlers, logger.level) == ([], logging.NOTSET)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    ("name", "level"),
    [
        ("internal_error", logging.CRITICAL),
        ("error", logging.ERROR),
        ("warning", logging.WARNING),
        ("info", logging.INFO),
        ("verbose", logging.DEBUG),
        ("debug", logging.DEBUG),
        ("TRACE", logging.DEBUG),
    ],
)
def test_level_names(name: str, level: int) -> None:
    set_level(name)
    assert get_logger("tensorrt_llm.serve.openai_server").getEffectiveLevel() == level


def test_an_unknown_level_names_the_known_ones() -> None:
    with pytest.raises(ValueError, match=r"'loud'.*" + ", ".join(LEVELS)):
        set_level("loud")


def test_a_line_has_time_level_and_origin() -> None:
    stream = io.StringIO()
    configure("info", stream)
    get_logger("tensorrt_llm.inputs").info("%d items", 3)
    get_logger("tensorrt_llm.inputs").debug("unseen")
    line = r"\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\] \[INFO\] \[tensorrt_llm\.inputs\] 3 items\n"
    assert re.fullmatch(line, stream.getvalue())


def test_configuring_again_replaces_the_stream() -> None:
    first, second = io.StringIO(), io.StringIO()
    configure("info", first)
    configure("debug", second)
    logger.debug("once")
    assert first.getvalue() == ""
    assert second.getvalue().count("once") == 1


def test_a_foreign_name_is_put_below_the_package() -> None:
    assert get_logger("examples.demo").name == "tensorrt_llm.examples.demo"
    assert get_logger("tensorrt_llm_other").name == "tensorrt_llm.tensorrt_llm_other"
