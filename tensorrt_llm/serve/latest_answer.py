# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""What the engine says of itself, or said last, for readers who must not wait for its steps."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from tensorrt_llm.errors import TrtllmError
from tensorrt_llm.logger import get_logger

WAIT_SECONDS = 1.0
"""Longest wait for an engine in the middle of a step; then what it said last is told."""

_logger = get_logger(__name__)


class LatestAnswer:
    """Asks one question again and again, one at a time, however many want the answer.

    Args:
        ask: The question; blocks until the engine is between two steps.
        name: Of the thread that waits.
    """

    def __init__(self, ask: Callable[[], dict[str, Any]], name: str) -> None:
        self._ask = ask
        # One, so that an engine that does not answer is waited for once.
        self._thread = ThreadPoolExecutor(1, name)
        self._asking: Future[dict[str, Any]] | None = None
        self._answer: dict[str, Any] | None = None

    def close(self) -> None:
        """Asks no more."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def get(self) -> dict[str, Any] | None:
        """What the engine says now, or said last where it is busy or gone; None before."""
        if self._asking is None or self._asking.done():
            self._asking = self._thread.submit(self._ask)
        try:
            answer = asyncio.shield(asyncio.wrap_future(self._asking))
            self._answer = await asyncio.wait_for(answer, WAIT_SECONDS)
        except (asyncio.TimeoutError, TrtllmError, RuntimeError) as error:
            _logger.debug("figures of the engine are old: %s", error)
        return self._answer
