# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Requests in the order in which they are admitted.

The order is that of arrival, moved by priority: a request of priority 1 goes before one of
priority 0 that came up to ``PRIORITY_SECONDS`` earlier. So priority decides among those who wait at
the same time, and nobody is overtaken for ever.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator
from typing import Generic, Protocol, TypeVar

PRIORITY_SECONDS = 60.0


class Ordered(Protocol):
    """What the queue needs to know of a request."""

    @property
    def order(self) -> tuple[float, int]:
        """See ``admission_order``; the same for as long as the request lives."""


RequestT = TypeVar("RequestT", bound=Ordered)


def admission_order(arrival: float, priority: float, number: int) -> tuple[float, int]:
    """The sort key: smaller goes first, and is the last to be paused.

    Args:
        arrival: Seconds of a clock that does not go back.
        priority: 0 to 1.
        number: Breaks ties; unique.
    """
    return (arrival - PRIORITY_SECONDS * priority, number)


class OrderedRequests(Generic[RequestT]):
    """Requests sorted by their order."""

    def __init__(self) -> None:
        self._requests: list[RequestT] = []

    def add(self, request: RequestT) -> None:
        """Puts a request at its place."""
        insort(self._requests, request, key=_order)

    def remove(self, request: RequestT) -> None:
        """Takes a request out.

        Raises:
            ValueError: If it is not there.
        """
        index = bisect_left(self._requests, request.order, key=_order)
        if index == len(self._requests) or self._requests[index] is not request:
            raise ValueError("the request is not in this list")
        del self._requests[index]

    def __iter__(self) -> Iterator[RequestT]:
        return iter(tuple(self._requests))

    def __len__(self) -> int:
        return len(self._requests)


def _order(request: Ordered) -> tuple[float, int]:
    return request.order
