# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""The scheduling policy, without a model."""

from __future__ import annotations

import random
from collections import deque
from dataclasses import dataclass, field

import pytest

from tensorrt_llm._torch.pyexecutor.scheduler import MicroBatchScheduler, ScheduledBatch


@dataclass(eq=False)
class Work:
    num_to_write: int
    cached: int = 0
    missing_items: set[int] = field(default_factory=set)


def schedule(
    generation=(), context=(), waiting=(), *, batch=8, tokens=16, chunked=True, admit=None
) -> tuple[ScheduledBatch[Work], deque[Work]]:
    queue = deque(waiting)

    def take(work: Work) -> bool:
        work.num_to_write -= work.cached
        return True

    scheduler = MicroBatchScheduler[Work](batch, tokens, chunked)
    return scheduler.schedule(generation, context, queue, admit or take), queue


def test_generation_comes_first_and_every_one_gets_its_token() -> None:
    generation = [Work(1) for _ in range(5)]
    waiting = [Work(100)]
    batch, queue = schedule(generation, waiting=waiting)
    assert [entry.request for entry in batch.generation] == generation
    assert [entry.num_tokens for entry in batch.context] == [11]
    assert batch.num_tokens == 16
    assert not queue


def test_context_chunks_share_the_budget_in_order_of_arrival() -> None:
    first, second = Work(10), Work(10)
    batch, _ = schedule(context=[first, second])
    assert [(entry.request, entry.num_tokens) for entry in batch.context] == [
        (first, 10),
        (second, 6),
    ]


def test_without_chunking_a_prompt_waits_for_a_step_that_takes_it_whole() -> None:
    first, second, third = Work(10), Work(10), Work(2)
    batch, queue = schedule(waiting=[first, second, third], chunked=False)
    assert [entry.request for entry in batch.context] == [first]
    # The second is admitted and goes next; the third must not overtake it.
    assert list(queue) == [third]


def test_cached_tokens_cost_no_budget() -> None:
    batch, queue = schedule(waiting=[Work(100, cached=95), Work(100, cached=99)], chunked=False)
    assert [entry.num_tokens for entry in batch.context] == [5, 1]
    assert not queue


def test_a_request_that_waits_for_items_lets_others_go_on_and_counts_as_running() -> None:
    held, other = Work(10, missing_items={1}), Work(4)
    waiting = [Work(3), Work(3)]
    batch, queue = schedule(context=[held, other], waiting=waiting, batch=3)
    assert [entry.request for entry in batch.context] == [other, waiting[0]]
    assert list(queue) == waiting[1:]
    held.missing_items.clear()
    batch, _ = schedule(context=[held, other])
    assert [(entry.request, entry.num_tokens) for entry in batch.context] == [
        (held, 10),
        (other, 4),
    ]


def test_a_request_without_room_is_not_overtaken() -> None:
    large, small = Work(50), Work(1)
    batch, queue = schedule(waiting=[large, small], admit=lambda work: work is small)
    assert batch.context == ()
    assert list(queue) == [large, small]


@pytest.mark.parametrize(("batch_size", "tokens"), [(3, 100), (100, 3)])
def test_both_bounds_limit_the_running_requests(batch_size: int, tokens: int) -> None:
    batch, queue = schedule(waiting=[Work(1) for _ in range(9)], batch=batch_size, tokens=tokens)
    assert len(batch.all) == 3
    assert len(queue) == 6


def test_random_loads_never_exceed_the_bounds_and_always_finish() -> None:
    seed = random.randrange(2**32)
    rng = random.Random(seed)
    for _ in range(200):
        tokens, size = rng.randint(1, 40), rng.randint(1, 6)
        chunked = rng.random() < 0.5
        most = 100 if chunked else tokens
        waiting = deque(Work(rng.randint(1, most)) for _ in range(rng.randint(1, 12)))
        context: list[Work] = []
        generation: list[Work] = []
        left = {id(work): rng.randint(1, 5) for work in waiting}
        scheduler = MicroBatchScheduler[Work](size, tokens, chunked)
        for _ in range(5000):
            if not (waiting or context or generation):
                break

            def admit(work: Work, context: list[Work] = context) -> bool:
                context.append(work)
                return True

            batch = scheduler.schedule(generation, context, waiting, admit)
            assert 0 < batch.num_tokens <= tokens, seed
            assert len(context) + len(generation) <= size, seed
            assert len(batch.generation) == len(generation), seed
            for entry in batch.context:
                entry.request.num_to_write -= entry.num_tokens
            for entry in batch.all:
                if entry.request.num_to_write == 0 or entry.request in generation:
                    left[id(entry.request)] -= 1
                    where = generation if entry.request in generation else context
                    if left[id(entry.request)] == 0:
                        where.remove(entry.request)
                    elif where is context:
                        context.remove(entry.request)
                        entry.request.num_to_write = 1
                        generation.append(entry.request)
        assert not (waiting or context or generation), seed
