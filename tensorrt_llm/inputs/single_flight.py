# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Work that several threads ask for is done by one of them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from typing import Any, TypeVar

_Value = TypeVar("_Value")


class SingleFlight:
    """Lets one thread do work under a key, and the others that come meanwhile wait for it.

    Safe to use from many threads.

    Args:
        keeps: Whether results and failures are kept for those that come later; else nothing is
            kept once the work is done.
    """

    def __init__(self, *, keeps: bool = False) -> None:
        self._keeps = keeps
        self._lock = threading.Lock()
        self._flights: dict[Hashable, Future[Any]] = {}

    def do(self, key: Hashable, work: Callable[[], _Value]) -> _Value:
        """Does the work, or waits for the thread that is at it and takes its result.

        Args:
            key: Says which work it is: two works under one key must come to the same result.
            work: The work.

        Raises:
            Exception: What the work raises. Each thread that waited gets a copy of its own.
        """
        with self._lock:
            flight = self._flights.get(key)
            waits = flight is not None
            if flight is None:
                flight = self._flights[key] = Future()
        if waits:
            return _wait(flight)
        try:
            result = work()
        except BaseException as error:
            self._land(key)
            flight.set_exception(_copied(error))
            raise
        self._land(key)
        flight.set_result(result)
        return result

    def _land(self, key: Hashable) -> None:
        if not self._keeps:
            with self._lock:
                del self._flights[key]


def _wait(flight: Future[_Value]) -> _Value:
    error = flight.exception()
    if error is None:
        return flight.result()
    raise _copied(error) from error


def _copied(error: BaseException) -> BaseException:
    """Another error that says the same: errors get marked with the part of one request."""
    own = type(error).__new__(type(error))
    own.args = error.args
    own.__dict__.update(error.__dict__)
    return own
