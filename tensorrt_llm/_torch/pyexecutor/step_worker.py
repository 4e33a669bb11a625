# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""A thread that computes while the loop's does something else."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future, wait
from typing import Any, TypeVar

_T = TypeVar("_T")


class StepWorker:
    """Runs one function at a time.

    ``concurrent.futures`` has pools that would do, but a program cannot end before their threads
    have; this one's, like the loop's, does not hold it up.
    """

    def __init__(self) -> None:
        self._tasks: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="trtllm-step", daemon=True)
        self._thread.start()

    def run(self, function: Callable[[], _T], beside: Callable[[], Any]) -> Future[_T]:
        """Runs a function there and another one here.

        Returns:
            What became of the first, when both have ended.

        Raises:
            Exception: What the second raised, when both have ended.
        """
        future: Future[_T] = Future()
        self._tasks.put(lambda: _settle(future, function))
        try:
            beside()
        finally:
            wait((future,))
        return future

    def close(self) -> None:
        """Ends the thread, when what it runs has ended."""
        self._tasks.put(None)
        self._thread.join()

    def _run(self) -> None:
        while (task := self._tasks.get()) is not None:
            task()
            del task  # or what the step had would stay until the next one


def _settle(future: Future[_T], function: Callable[[], _T]) -> None:
    try:
        future.set_result(function())
    except BaseException as error:  # whatever it is, somebody waits to be told
        future.set_exception(error)
