# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""The capacity policies on a pool that is only a number."""

from __future__ import annotations

import random
from dataclasses import dataclass

from tensorrt_llm._torch.pyexecutor.scheduler import capacity_policy
from tensorrt_llm._torch.pyexecutor.scheduler.capacity import GuaranteedNoEvict, MaxUtilization


@dataclass(eq=False)
class Work:
    order: tuple[float, int]
    num_new_left: int = 100
    held: int = 1


class Pool:
    def __init__(self, size: int, *holders: Work) -> None:
        self.free = size - sum(work.held for work in holders)
        self.paused: list[Work] = []

    def extend(self, work: Work) -> bool:
        if self.free == 0:
            return False
        self.free -= 1
        work.held += 1
        return True

    def pause(self, work: Work) -> None:
        self.free += work.held
        work.held = 0
        self.paused.append(work)


def make_room(size: int, growing: list[Work], context: list[Work] | None = None) -> Pool:
    holding = [*(context or []), *growing]
    pool = Pool(size, *holding)
    MaxUtilization(32).make_room(growing, holding, pool.extend, pool.pause)
    return pool


def test_names() -> None:
    assert capacity_policy("GUARANTEED_NO_EVICT", 32) == GuaranteedNoEvict()
    assert capacity_policy("MAX_UTILIZATION", 64) == MaxUtilization(64)


def test_promises() -> None:
    assert GuaranteedNoEvict().promise(Work((0, 0), 70)) == 70
    assert MaxUtilization(32).promise(Work((0, 0), 70)) == 32
    assert MaxUtilization(32).promise(Work((0, 0), 7)) == 7


def test_nobody_is_paused_while_there_is_room() -> None:
    growing = [Work((n, n)) for n in range(3)]
    assert make_room(6, growing).paused == []
    pool = Pool(3, *growing)
    GuaranteedNoEvict().make_room(growing, growing, pool.extend, pool.pause)
    assert pool.paused == []


def test_the_last_in_order_make_room_for_the_first() -> None:
    growing = [Work((n, n)) for n in (2, 0, 3, 1)]
    pool = make_room(4, growing)
    assert [work.order[0] for work in pool.paused] == [3, 2]
    assert sorted(work.order[0] for work in growing if work.held == 2) == [0, 1]


def test_a_request_that_reads_its_prompt_is_paused_like_any_other() -> None:
    context = Work((9, 9), held=5)
    pool = make_room(7, [Work((1, 1)), Work((0, 0))], [context])
    assert pool.paused == [context]


def test_the_last_in_order_pauses_itself() -> None:
    first, last = Work((0, 0), held=2), Work((1, 1), held=1)
    pool = Pool(4, first, last)
    MaxUtilization(32).make_room([first, last], [first, last], pool.extend, pool.pause)
    assert (first.held, pool.paused) == (3, [last])


def test_the_first_always_advances() -> None:
    seed = random.randrange(2**32)
    rng = random.Random(seed)
    for _ in range(500):
        works = [Work((rng.random(), n), held=rng.randint(1, 4)) for n in range(rng.randint(1, 8))]
        first = min(works, key=lambda work: work.order)
        before = first.held
        size = max(sum(work.held for work in works), before + 1)
        pool = make_room(size, works)
        assert first.held == before + 1, seed
        assert pool.free == size - sum(work.held for work in works) >= 0, seed
        kept = [work.order for work in works if work.held]
        assert all(order < work.order for work in pool.paused for order in kept), seed
