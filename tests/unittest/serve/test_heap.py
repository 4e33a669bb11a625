# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""What is free goes back to the system, though something small lies behind it."""

from __future__ import annotations

import asyncio
import gc
import platform
import subprocess
import sys
import weakref
from collections.abc import Callable

import pytest

from tensorrt_llm.serve import heap
from tensorrt_llm.serve.heap import keep_trimmed, settled_objects

MIB = 2**20
# Arrays small enough for the heap, each with something behind it that stays.
FRAGMENTED = """
import psutil
from tensorrt_llm.serve.heap import trim_heap

resident = lambda: psutil.Process().memory_info().rss
large, small = [], []
for _ in range(1500):
    large.append(bytearray(b"x" * 65536))
    small.append(bytearray(700))
full = resident()
large.clear()
kept = resident()
trim_heap()
print(full, kept, resident())
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other allocators have no such call")
def test_free_memory_between_what_stays_goes_back() -> None:
    words = [sys.executable, "-c", FRAGMENTED]
    told = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    full, kept, trimmed = map(int, told.split())
    assert kept > full - 40 * MIB, "no pressure: it went back by itself"
    assert trimmed < full - 60 * MIB


def test_it_is_trimmed_after_work_and_left_alone_without(monkeypatch: pytest.MonkeyPatch) -> None:
    trims, work = [], [0]

    async def until(condition: Callable[[], bool]) -> None:
        while not condition():
            await asyncio.sleep(0.001)

    async def run() -> None:
        looks: list[int] = []

        def look() -> int:
            looks.append(work[0])
            return work[0]

        task = asyncio.create_task(keep_trimmed(look, 0.001))
        await until(lambda: len(looks) > 5)
        assert not trims
        for turn in (1, 2):
            work[0] += 1
            await until(lambda turn=turn: len(trims) == turn)
            seen = len(looks)
            await until(lambda seen=seen: len(looks) > seen + 5)
            assert len(trims) == turn
        task.cancel()

    monkeypatch.setattr(heap, "trim_heap", lambda: trims.append(1))
    asyncio.run(asyncio.wait_for(run(), 60))


class Looped:
    """Refers to itself, so that only the collector can tell that nobody else does."""

    def __init__(self) -> None:
        self.own = self


def test_the_collector_passes_by_what_has_settled_and_takes_what_comes_later() -> None:
    dropped, kept = Looped(), Looped()
    before, settled = weakref.ref(dropped), weakref.ref(kept)
    del dropped
    with settled_objects():
        assert before() is None, "garbage must not settle"
        del kept
        later = weakref.ref(Looped())
        gc.collect()
        assert later() is None and settled() is not None
    gc.collect()
    assert settled() is None
