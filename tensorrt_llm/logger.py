# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Logging: the standard library's, with TensorRT-LLM's level names.

Importing this module configures nothing; a program that wants lines on its terminal calls
`configure` once.
"""

from __future__ import annotations

import logging
from typing import TextIO

ROOT_NAME = "tensorrt_llm"

LEVELS = {
    "internal_error": logging.CRITICAL,
    "error": logging.ERROR,
    "warning": logging.WARNING,
    "info": logging.INFO,
    "verbose": logging.DEBUG,
    "debug": logging.DEBUG,
    "trace": logging.DEBUG,
}
"""Level names of the command line, coarsest first, and the standard level each stands for."""

logger = logging.getLogger(ROOT_NAME)

# By this name a second call of `configure` finds the handler of the first.
_HANDLER_NAME = "tensorrt_llm.terminal"


def get_logger(name: str) -> logging.Logger:
    """Returns the logger of one module.

    Args:
        name: The module's ``__name__``; a name outside this package is put below it.
    """
    if name == ROOT_NAME or name.startswith(f"{ROOT_NAME}."):
        return logging.getLogger(name)
    return logger.getChild(name)


def set_level(name: str) -> None:
    """Sets the level of all of this package's loggers.

    Args:
        name: One of `LEVELS`, in any case.

    Raises:
        ValueError: The name is not one of `LEVELS`.
    """
    level = LEVELS.get(name.lower())
    if level is None:
        raise ValueError(f"unknown log level {name!r}; it must be one of: {', '.join(LEVELS)}")
    logger.setLevel(level)


def configure(level: str = "info", stream: TextIO | None = None) -> None:
    """Sends this package's log lines to a stream.

    Calling it again replaces the earlier stream and level.

    Args:
        level: One of `LEVELS`.
        stream: Where lines go; standard error if not given.

    Raises:
        ValueError: The level is not one of `LEVELS`.
    """
    set_level(level)
    for earlier in [h for h in logger.handlers if h.get_name() == _HANDLER_NAME]:
        logger.removeHandler(earlier)
    handler = logging.StreamHandler(stream)
    handler.set_name(_HANDLER_NAME)
    handler.setFormatter(
        logging.Formatter(
            "[%(asctime)s] [%(levelname)s] [%(name)s] %(message)s", "%Y-%m-%d %H:%M:%S"
        )
    )
    logger.addHandler(handler)
