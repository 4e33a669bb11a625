# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Who waits for whom, without a model."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import numpy as np

from tensorrt_llm._torch.pyexecutor.scheduler import BurstGate, PromptContent
from tensorrt_llm.inputs.data import ProcessedPrompt

BLOCK = 4


@dataclass(eq=False)
class Work:
    tokens: list[int]
    num_written: int = 0
    in_context: bool = False
    content: PromptContent | None = field(init=False)

    def __post_init__(self) -> None:
        prompt = ProcessedPrompt(np.asarray(self.tokens, np.int32))
        self.content = PromptContent.of(prompt, None, BLOCK)

    @property
    def num_known(self) -> int:
        return len(self.tokens)


def gate(*running: Work, parts: bool = True) -> BurstGate[Work]:
    made: BurstGate[Work] = BurstGate(BLOCK, share_parts=parts)
    for work in running:
        work.in_context = True
        made.enter(work)
    return made


def nothing_cached() -> int:
    return 0


def text(length: int, first: int = 0) -> list[int]:
    return list(range(first, first + length))


def test_an_equal_request_waits_until_the_first_has_written_its_prompt() -> None:
    first, second = Work(text(10)), Work(text(10))
    burst = gate(first)
    assert burst.must_wait(second, nothing_cached)
    first.num_written = 8
    assert burst.must_wait(second, nothing_cached), "its last token is wanted too"
    first.num_written, first.in_context = 10, False
    assert not burst.must_wait(second, nothing_cached)
    assert burst.tail_source(second) is first
    assert burst.num_waiting == 0


def test_a_shared_beginning_is_waited_for_and_no_longer() -> None:
    first, second = Work(text(100)), Work([*text(9), *text(20, 500)])
    burst = gate(first)
    assert burst.must_wait(second, nothing_cached)
    first.num_written = 9
    assert not burst.must_wait(second, nothing_cached), "the rest is not shared"


def test_too_little_in_common_is_not_worth_waiting_for() -> None:
    first = Work(text(100))
    burst = gate(first)
    assert not burst.must_wait(Work([*text(3), *text(20, 500)]), nothing_cached)
    assert not burst.must_wait(Work(text(20, 500)), nothing_cached)
    assert burst.must_wait(Work(text(3)), nothing_cached), "all there is to gain"


def test_what_is_cached_already_is_not_waited_for() -> None:
    first, second = Work(text(10)), Work(text(10))
    burst = gate(first)
    assert not burst.must_wait(second, lambda: 9)
    assert burst.must_wait(second, lambda: 8), "one token is all that is left, and it is coming"


def test_when_the_first_goes_the_next_takes_over() -> None:
    works = [Work(text(10)) for _ in range(4)]
    burst = gate(works[0])
    assert all(burst.must_wait(work, nothing_cached) for work in works[1:])
    burst.leave(works[0])
    works[0].in_context = False
    assert not burst.must_wait(works[1], nothing_cached)
    works[1].in_context = True
    burst.enter(works[1])
    assert all(burst.must_wait(work, nothing_cached) for work in works[2:])
    burst.leave(works[3])
    assert burst.num_waiting == 1


def test_parts_of_blocks_count_only_if_they_are_shared() -> None:
    first, second = Work(text(10)), Work(text(10))
    burst = gate(first, parts=False)
    assert burst.must_wait(second, nothing_cached)
    first.num_written = 8
    assert not burst.must_wait(second, nothing_cached)
    assert burst.tail_source(second) is None
    assert not gate(Work(text(3)), parts=False).must_wait(Work(text(3)), nothing_cached)


def test_what_is_forgotten_is_not_waited_for() -> None:
    first, second = Work(text(10)), Work(text(10))
    burst = gate(first)
    assert burst.must_wait(second, nothing_cached)
    burst.forget()
    assert not burst.must_wait(second, nothing_cached)
    burst.leave(first)


def test_nobody_waits_who_shares_nothing() -> None:
    first, second = Work(text(10)), Work(text(10))
    second.content = None
    assert not gate(first).must_wait(second, nothing_cached)


def test_random_loads_end_with_every_token_computed_about_once() -> None:
    seed = random.randrange(2**32)
    rng = random.Random(seed)
    for _ in range(100):
        bases = [text(rng.randint(1, 30), 100 * n) for n in range(2)]
        waiting = []
        for _ in range(20):
            base = rng.choice(bases)
            waiting.append(Work([*base[: rng.randint(1, len(base))], *text(rng.randrange(3), 900)]))
        burst: BurstGate[Work] = BurstGate(BLOCK, share_parts=True)
        context: list[Work] = []
        written: set[tuple[int, ...]] = set()  # prefixes that anybody can have

        def cached(work: Work, written: set[tuple[int, ...]] = written) -> int:
            return max(
                (n for n in range(len(work.tokens)) if tuple(work.tokens[:n]) in written), default=0
            )

        def write(work: Work, end: int, written: set[tuple[int, ...]] = written) -> None:
            work.num_written = end
            written.update(tuple(work.tokens[:n]) for n in range(end + 1))

        for _ in range(1000):
            if not (waiting or context):
                break
            for work in list(waiting):
                if not burst.must_wait(work, lambda work=work: cached(work)):
                    waiting.remove(work)
                    work.num_written, work.in_context = cached(work), True
                    burst.enter(work)
                    context.append(work)
            assert context, f"nobody runs and {len(waiting)} wait, seed {seed}"
            for work in list(context):
                if rng.random() < 0.2:  # cancelled
                    work.in_context = False
                elif rng.random() < 0.7:
                    write(work, min(work.num_known, work.num_written + rng.randint(1, 8)))
                    work.in_context = work.num_written < work.num_known
                if not work.in_context:
                    context.remove(work)
                    burst.leave(work)
        assert not waiting and not context, seed
        assert burst.num_waiting == 0
