# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Tells event loops of new updates: each once a step, however many of its answers grew."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from types import TracebackType


class Wakeups:
    """Collects who is to be woken, from any thread; the end of the ``with`` block wakes them.

    To wake a loop costs a system call and, until it sleeps again, a struggle for the interpreter's
    lock. So whoever has many updates hands them all out first.
    """

    def __init__(self) -> None:
        self._waiting: dict[
            asyncio.AbstractEventLoop, list[tuple[asyncio.Event, Callable[[], None]]]
        ] = {}

    def __enter__(self) -> Wakeups:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for loop, waiting in self._waiting.items():
            try:
                loop.call_soon_threadsafe(_set_all, [event for event, _ in waiting])
            except RuntimeError:  # that event loop was closed: nobody waits any more
                for _, give_up in waiting:
                    give_up()

    def add(
        self, loop: asyncio.AbstractEventLoop, event: asyncio.Event, give_up: Callable[[], None]
    ) -> None:
        """Sets an event in its loop, later.

        Args:
            loop: Where the event is waited for.
            event: It.
            give_up: Called instead if that loop is closed.
        """
        self._waiting.setdefault(loop, []).append((event, give_up))


def _set_all(events: Iterable[asyncio.Event]) -> None:
    for event in events:
        event.set()
