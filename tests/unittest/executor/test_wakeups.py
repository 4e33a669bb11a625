# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Who waits for an answer in an event loop is woken, and each loop once a step."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from tensorrt_llm.executor.wakeups import Wakeups


class CountingLoop(asyncio.SelectorEventLoop):
    """Counts how often another thread woke it."""

    wakeups = 0

    def call_soon_threadsafe(self, *args: Any, **kwargs: Any) -> asyncio.Handle:
        self.wakeups += 1
        return super().call_soon_threadsafe(*args, **kwargs)


def never() -> None:
    raise AssertionError("gave up a loop that is open")


def test_each_loop_is_woken_once_for_all_its_events() -> None:
    loops = CountingLoop(), CountingLoop()
    events = {loop: [asyncio.Event() for _ in range(3)] for loop in loops}

    def hand_out() -> None:
        with Wakeups() as wakeups:
            for index in range(3):
                for loop in loops:
                    wakeups.add(loop, events[loop][index], never)
            assert [loop.wakeups for loop in loops] == [0, 0], "woken before all was handed out"

    thread = threading.Thread(target=hand_out)
    thread.start()
    thread.join()
    for loop in loops:
        loop.run_until_complete(_all_of(events[loop]))
        assert loop.wakeups == 1
        loop.close()


async def _all_of(events: list[asyncio.Event]) -> None:
    for event in events:
        await event.wait()


def test_a_closed_loop_is_given_up_and_others_are_woken() -> None:
    closed, open_ = asyncio.new_event_loop(), asyncio.new_event_loop()
    closed.close()
    given_up: list[int] = []
    woken = asyncio.Event()
    with Wakeups() as wakeups:
        for number in range(2):
            wakeups.add(closed, asyncio.Event(), lambda number=number: given_up.append(number))
        wakeups.add(open_, woken, never)
    assert given_up == [0, 1]
    open_.run_until_complete(woken.wait())
    open_.close()


def test_they_are_woken_whatever_ends_the_handing_out() -> None:
    loop, woken = asyncio.new_event_loop(), asyncio.Event()
    with pytest.raises(ValueError, match="nonsense"), Wakeups() as wakeups:
        wakeups.add(loop, woken, never)
        raise ValueError("nonsense")
    loop.run_until_complete(woken.wait())
    loop.close()
