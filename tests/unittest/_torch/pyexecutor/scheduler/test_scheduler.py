# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""How steps are filled, without a model."""

from __future__ import annotations

import random
from dataclasses import dataclass

import pytest

from tensorrt_llm._torch.pyexecutor.scheduler import (
    Admission,
    MicroBatchScheduler,
    ScheduledBatch,
)


@dataclass(eq=False)
class Work:
    num_to_write: int
    cached: int = 0
    whole: int = 1  # chunks end at multiples of this, or at the end

    def largest_chunk(self, limit: int) -> int:
        if limit >= self.num_to_write:
            return self.num_to_write
        return max(0, limit - (limit - self.num_to_write) % self.whole)


def schedule(
    generation=(), context=(), waiting=(), *, batch=8, tokens=16, chunked=True, admit=None, held=0
) -> tuple[ScheduledBatch[Work], list[Work]]:
    queue = list(waiting)

    def take(work: Work) -> Admission:
        outcome = Admission.ADMITTED if admit is None else admit(work)
        if outcome is Admission.ADMITTED:
            work.num_to_write -= work.cached
            queue.remove(work)
        return outcome

    scheduler = MicroBatchScheduler[Work](batch, tokens, chunked)
    return scheduler.schedule(generation, context, tuple(queue), take, held), queue


def chunks(batch: ScheduledBatch[Work]) -> list[tuple[Work, int]]:
    return [(entry.request, entry.num_tokens) for entry in batch.context]


def test_generation_comes_first_and_every_one_gets_its_token() -> None:
    generation = [Work(1) for _ in range(5)]
    batch, queue = schedule(generation, waiting=[Work(100)])
    assert [entry.request for entry in batch.generation] == generation
    assert [entry.num_tokens for entry in batch.context] == [11]
    assert batch.num_tokens == 16
    assert not queue


def test_context_chunks_share_the_budget_in_order() -> None:
    first, second = Work(10), Work(10)
    batch, _ = schedule(context=[first, second])
    assert chunks(batch) == [(first, 10), (second, 6)]


def test_requests_that_are_held_take_no_tokens_and_count_as_running() -> None:
    waiting = [Work(3), Work(3)]
    batch, _ = schedule(context=[Work(4)], waiting=waiting, batch=3, held=1)
    assert [entry.num_tokens for entry in batch.context] == [4, 3]
    batch, _ = schedule(context=[Work(4)], waiting=waiting, batch=3)
    assert [entry.num_tokens for entry in batch.context] == [4, 3, 3]


def test_what_never_fits_a_step_whole_is_split_even_where_prompts_are_not() -> None:
    resumed, behind = Work(40), Work(3)
    batch, queue = schedule([Work(1)], [resumed], [behind], chunked=False)
    assert chunks(batch) == [(resumed, 15)]
    assert queue == [behind]
    # What fits a step of its own waits for one.
    batch, _ = schedule([Work(1)], [Work(16)], chunked=False)
    assert chunks(batch) == []
    # Nor does it start where others have begun.
    first = Work(4)
    batch, _ = schedule(context=[first, Work(40)], chunked=False)
    assert chunks(batch) == [(first, 4)]


def test_a_short_prompt_does_not_wait_for_a_long_one_to_end() -> None:
    long, other, short = Work(1000), Work(900), Work(5)
    batch, _ = schedule(context=[long, other], waiting=[short])
    assert chunks(batch) == [(long, 11), (short, 5)]
    # Nothing that completes: all of it goes to the first in order.
    batch, _ = schedule(context=[long, other], waiting=[Work(9)])
    assert chunks(batch) == [(long, 16)]


def test_a_stream_of_short_prompts_leaves_a_long_one_half_of_every_step() -> None:
    long = Work(160)
    steps = 0
    while long.num_to_write:
        steps += 1
        batch, _ = schedule(context=[long], waiting=[Work(4) for _ in range(6)])
        given = dict(chunks(batch))[long]
        assert given >= 8
        assert len(batch.context) == 3, "a short one is kept out"
        long.num_to_write -= given
    assert steps == 20


def test_without_chunking_a_prompt_waits_for_a_step_that_takes_it_whole() -> None:
    first, second, third = Work(10), Work(10), Work(2)
    batch, queue = schedule(waiting=[first, second, third], chunked=False)
    assert chunks(batch) == [(first, 10)]
    # The second is admitted and goes next; the third must not overtake it.
    assert queue == [third]


def test_a_part_that_must_run_whole_waits_for_a_step_of_its_own() -> None:
    generation = [Work(1) for _ in range(3)]
    item = Work(32, whole=16)
    batch, _ = schedule(generation, context=[item, Work(2)])
    assert batch.context == (), "16 of 16 do not fit beside 3, and nobody may keep it so"
    batch, _ = schedule(context=[item, Work(2)])
    assert chunks(batch) == [(item, 16)]


def test_cached_tokens_cost_no_budget() -> None:
    waiting = [Work(100, cached=95), Work(100, cached=99)]
    batch, queue = schedule(waiting=waiting, chunked=False)
    assert [entry.num_tokens for entry in batch.context] == [5, 1]
    assert not queue


def test_a_request_without_room_is_not_overtaken() -> None:
    large, small = Work(50), Work(1)
    rooms = {large: Admission.NO_ROOM, small: Admission.ADMITTED}
    batch, queue = schedule(waiting=[large, small], admit=rooms.get)
    assert batch.context == ()
    assert queue == [large, small]


def test_a_request_that_waits_for_something_else_is_overtaken() -> None:
    held, small = Work(50), Work(1)
    rooms = {held: Admission.LATER, small: Admission.ADMITTED}
    batch, queue = schedule(waiting=[held, small], admit=rooms.get)
    assert chunks(batch) == [(small, 1)]
    assert queue == [held]


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
        waiting = [Work(rng.randint(1, most)) for _ in range(rng.randint(1, 12))]
        for work in waiting:
            work.whole = rng.randint(1, tokens)
        context: list[Work] = []
        generation: list[Work] = []
        left = {id(work): rng.randint(1, 5) for work in waiting}
        scheduler = MicroBatchScheduler[Work](size, tokens, chunked)
        for _ in range(5000):
            if not (waiting or context or generation):
                break

            def admit(
                work: Work, context: list[Work] = context, waiting: list[Work] = waiting
            ) -> Admission:
                if rng.random() < 0.1:
                    return Admission.LATER
                waiting.remove(work)
                context.append(work)
                return Admission.ADMITTED

            batch = scheduler.schedule(generation, tuple(context), tuple(waiting), admit)
            assert batch.num_tokens <= tokens, seed
            assert len(context) + len(generation) <= size, seed
            assert len(batch.generation) == len(generation), seed
            assert all(entry.num_tokens > 0 for entry in batch.all), seed
            for entry in batch.context:
                entry.request.num_to_write -= entry.num_tokens
                assert entry.request.num_to_write % entry.request.whole == 0, seed
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
