# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""With the next step prepared beside the current one answers are the same, bit by bit.

Each test runs the same work twice and compares; and it asks that steps were prepared and used, or
that what was prepared was given up, for else nothing would have been tried.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
from support.engine import assert_idle, held, running, start, text_prompt, total
from support.media import clip, picture
from support.prompts import PromptMaker
from support.reference import ReferenceModel

from tensorrt_llm.errors import EngineError
from tensorrt_llm.sampling_params import GuidedDecodingParams

MAX_UTILIZATION = {"capacity_scheduler_policy": "MAX_UTILIZATION"}
Work = Callable[[Any], list[Any]]


def prompt(seed: int, length: int):
    return text_prompt(np.random.default_rng(seed).integers(5, 1200, length))


def told(result: Any) -> tuple[Any, ...]:
    """All that a caller gets of an answer."""
    result = result.result(timeout=120)
    return (
        result.cached_tokens,
        *(
            (
                output.token_ids,
                output.text,
                output.finish_reason,
                output.stop_reason,
                output.logprobs,
                None if output.generation_logits is None else output.generation_logits.tolist(),
            )
            for output in result.outputs
        ),
    )


@dataclass(frozen=True)
class Steps:
    """What ran, and how much of it was prepared and used."""

    num_steps: int
    num_prepared: int
    num_used: int

    @classmethod
    def of(cls, executor: Any) -> Steps:
        ahead = executor._engine._ahead
        return cls(ahead.num_steps, ahead.num_prepared, ahead.num_used)

    def since(self, other: Steps) -> Steps:
        return Steps(
            self.num_steps - other.num_steps,
            self.num_prepared - other.num_prepared,
            self.num_used - other.num_used,
        )


@pytest.fixture(scope="module")
def plain(llama_checkpoint) -> Iterator[Any]:
    with running(llama_checkpoint) as executor:
        yield executor


@pytest.fixture(scope="module")
def ahead(llama_checkpoint) -> Iterator[Any]:
    with running(llama_checkpoint, disable_overlap_scheduler=False) as executor:
        yield executor


@pytest.fixture(scope="module")
def reference(llama_checkpoint) -> ReferenceModel:
    return ReferenceModel(llama_checkpoint)


def compare(plain: Any, ahead: Any, work: Work) -> tuple[Steps, list[dict[str, Any]]]:
    """Runs the work without and with; gives what ran with steps prepared."""
    answers = []
    before = Steps.of(ahead)
    for executor in (plain, ahead):
        executor.reset_reuse_state()
        executor.iteration_stats()
        with held(executor):
            results = work(executor)
        answers.append([told(result) for result in results])
        assert_idle(executor)
    assert answers[0] == answers[1]
    steps = Steps.of(ahead).since(before)
    assert 0 < steps.num_used <= steps.num_prepared <= steps.num_steps
    return steps, ahead.iteration_stats()


def both(checkpoint: Any, work: Work, **options: Any) -> tuple[Steps, list[dict[str, Any]]]:
    """``compare`` on two engines with these options."""
    with (
        running(checkpoint, **options) as plain,
        running(checkpoint, disable_overlap_scheduler=False, **options) as ahead,
    ):
        return compare(plain, ahead, work)


SAMPLING: dict[str, dict[str, Any]] = {
    "greedy": {},
    "seeded": {"temperature": 1.1, "top_p": 0.95, "seed": 5},
    "penalties": {"temperature": 0.9, "seed": 6, "frequency_penalty": 1.5, "presence_penalty": 1},
    "logprobs": {"logprobs": 3, "prompt_logprobs": 1},
    "bad words": {"bad": ["a", "the"], "min_tokens": 9},
    "several answers": {"temperature": 1.0, "seed": 7, "n": 3},
    "guided": {"guided_decoding": GuidedDecodingParams(regex="[a-d]{60}")},
}


@pytest.mark.parametrize("name", SAMPLING)
def test_answers_are_equal_bit_by_bit(plain, ahead, name) -> None:
    def work(executor: Any) -> list[Any]:
        return [
            start(executor, prompt(n, 20 + 9 * n), 40 + 5 * n, **SAMPLING[name]) for n in range(4)
        ]

    steps, _ = compare(plain, ahead, work)
    assert steps.num_used > steps.num_steps // 2, "a batch that changes seldom"


def test_all_options_in_one_batch_and_prompts_in_chunks(llama_checkpoint) -> None:
    def work(executor: Any) -> list[Any]:
        return [
            start(executor, prompt(n, 30 + 31 * n), 48, **options)
            for n, options in enumerate(SAMPLING.values())
        ]

    both(llama_checkpoint, work, max_num_tokens=32)


def test_answers_equal_the_stock_model(ahead, reference) -> None:
    ahead.reset_reuse_state()
    prompts = [prompt(50 + n, 25 + 20 * n) for n in range(4)]
    before = Steps.of(ahead)
    for cached in (False, True):
        results = [start(ahead, one, 70) for one in prompts]
        for one, result in zip(prompts, results, strict=True):
            assert result.result().outputs[0].token_ids == reference.greedy(one, 70).tokens
            assert (result.cached_tokens == len(one) - 1) == cached
    # What was generated is found as well, token by token.
    turn = text_prompt([*prompts[0].token_ids, *reference.greedy(prompts[0], 70).tokens, 9])
    result = start(ahead, turn, 9).result()
    assert result.cached_tokens == len(turn) - 2
    assert result.outputs[0].token_ids == reference.greedy(turn, 9).tokens
    assert Steps.of(ahead).since(before).num_used > 60
    assert_idle(ahead)


def test_an_end_that_nobody_foresaw_leaves_nothing_behind(plain, ahead) -> None:
    """A place was taken for the token behind the last one; it is no part of any block's key."""
    question = prompt(3, 62)  # the second and the third new token are in two blocks
    plain.reset_reuse_state()
    tokens = start(plain, question, 12).result().outputs[0].token_ids
    probe = text_prompt([*question.token_ids, *tokens, 1])
    for last in (1, 2, 3, 6):
        end = tokens.index(tokens[last]) + 1
        cached = []
        for executor in (plain, ahead):
            executor.reset_reuse_state()
            before = Steps.of(ahead)
            result = start(executor, question, 12, stop_token_ids=[tokens[last]]).result()
            assert result.outputs[0].token_ids == tokens[:end]
            steps = Steps.of(ahead).since(before)
            if executor is ahead:
                assert steps.num_prepared == end > steps.num_used, "the step behind the end too"
            cached.append(start(executor, probe, 1).result().cached_tokens)
            assert_idle(executor)
        assert cached == [len(question) + end - 1] * 2


def test_stop_texts_end_where_they_did(plain, ahead) -> None:
    whole = start(plain, prompt(1, 30), 60).result().outputs[0].text
    stop = whole[30:34]
    before = Steps.of(ahead)
    result = start(ahead, prompt(1, 30), 4000, stop=stop).result()
    assert result.outputs[0].text == whole[: whole.index(stop)]
    assert (result.outputs[0].finish_reason, result.outputs[0].stop_reason) == ("stop", stop)
    assert Steps.of(ahead).since(before).num_used > 0
    assert_idle(ahead)


def test_a_cancel_at_any_step_concerns_nobody_else(ahead, reference) -> None:
    neighbour, question = prompt(8, 40), prompt(9, 50)
    for after in (1, 2, 5, 17, 33):
        with held(ahead):
            result = start(ahead, question, 300, cache_salt=f"{after}")
            beside = start(ahead, neighbour, 60, cache_salt=f"{after}")
        for count, _ in enumerate(result, 1):
            if count == after:
                result.abort()
        assert result.outputs[0].finish_reason == "cancelled"
        assert beside.result().outputs[0].token_ids == reference.greedy(neighbour, 60).tokens
        again = start(ahead, question, 60, cache_salt=f"{after}").result()
        assert again.outputs[0].token_ids == reference.greedy(question, 60).tokens
        assert again.cached_tokens == 49
        assert_idle(ahead)


@pytest.mark.parametrize("policy", ["MAX_UTILIZATION", "GUARANTEED_NO_EVICT"])
def test_a_pool_that_runs_out(llama_checkpoint, policy) -> None:
    prompts = [prompt(seed, 40 + seed) for seed in range(6)]
    options = {
        "kv_max_tokens": 288,
        "max_num_tokens": 64,
        "scheduler_config": {"capacity_scheduler_policy": policy},
    }

    def work(executor: Any) -> list[Any]:
        return [
            start(executor, one, 80, seed=3, temperature=float(n % 2))
            for n, one in enumerate(prompts)
        ]

    # How much is found depends on which block was evicted first, which is no part of an answer.
    _, iterations = both(llama_checkpoint, work, block_reuse=False, **options)
    if policy == "MAX_UTILIZATION":
        assert total(iterations, "numPausedRequests") > 1, "no pressure"
    else:
        assert max(one["numQueuedRequests"] for one in iterations) > 0, "no pressure"


def test_pauses_with_reuse_answer_as_the_stock_model(llama_checkpoint, reference) -> None:
    prompts = [prompt(seed, 40 + seed) for seed in range(6)]
    options = {"kv_max_tokens": 288, "scheduler_config": MAX_UTILIZATION}
    with running(llama_checkpoint, disable_overlap_scheduler=False, **options) as executor:
        with held(executor):
            results = [start(executor, one, 80) for one in prompts]
        for one, result in zip(prompts, results, strict=True):
            assert result.result().outputs[0].token_ids == reference.greedy(one, 80).tokens
        assert total(executor.iteration_stats(), "numPausedRequests") > 1, "no pressure"
        assert Steps.of(executor).num_used > 0
        assert_idle(executor)


def test_equals_merge_their_blocks_under_a_step_that_was_prepared(plain, ahead) -> None:
    """What is committed moves a sequence to a block that is there: the layout is made anew."""
    question = prompt(4, 40)

    def work(executor: Any) -> list[Any]:
        return [start(executor, question, 100) for _ in range(4)]

    steps, _ = compare(plain, ahead, work)
    assert steps.num_used < steps.num_prepared, "no layout was given up"


def test_items_that_are_split_over_chunks(phi4mm_checkpoint) -> None:
    make = PromptMaker(phi4mm_checkpoint)
    ask = "<|user|><|image|>{}<|audio|>?<|end|><|assistant|>"
    prompts = [make(ask.format(n), picture(n), clip(n)) for n in range(3)]

    def work(executor: Any) -> list[Any]:
        return [start(executor, one, 24) for one in (*prompts, prompts[0])]

    both(phi4mm_checkpoint, work, max_num_tokens=40)


def test_a_step_that_fails_is_told_and_the_next_ones_are_right(ahead, reference) -> None:
    """Whatever was prepared beside it."""
    prompts = [prompt(60 + n, 40) for n in range(3)]
    engine = ahead._engine._engine
    forward = engine.forward
    for step in (3, 4, 20):
        ahead.reset_reuse_state()
        steps: list[int] = []

        def failing(scheduled, *args, steps=steps, step=step):
            steps.append(len(scheduled))
            # The batch of that step, and of those run alone then the first.
            if len(steps) in (step, step + 1):
                raise RuntimeError("as if by the model")
            return forward(scheduled, *args)

        engine.forward = failing
        with held(ahead):
            results = [start(ahead, one, 50) for one in prompts]
        with pytest.raises(EngineError, match="as if by the model"):
            results[0].result(timeout=60)
        for one, result in zip(prompts[1:], results[1:], strict=True):
            assert result.result().outputs[0].token_ids == reference.greedy(one, 50).tokens
        engine.forward = forward
        result = start(ahead, prompts[0], 50).result()
        assert result.outputs[0].token_ids == reference.greedy(prompts[0], 50).tokens
        assert_idle(ahead)


class FaultyManager:
    """The real manager, of which the sixth call of one name fails."""

    def __init__(self, real: Any, name: str) -> None:
        self._real, self._name, self.calls = real, name, 0

    def __getattr__(self, asked: str) -> Any:
        if asked == self._name:
            self.calls += 1
            if self.calls == 6:
                raise RuntimeError("as if by the manager")
        return getattr(self._real, asked)


# What is only prepared may fail without anybody noticing.
FAILURES = {"grow_batch": 0, "block_tables": 0, "name_batch": 3, "commit_batch": 3}


@pytest.mark.parametrize("name", FAILURES)
def test_a_call_of_the_manager_that_fails(ahead, reference, name) -> None:
    ahead.reset_reuse_state()
    prompts = [prompt(70 + n, 40) for n in range(3)]
    cache = ahead._engine._kv_cache
    real = cache.impl
    cache.impl = faulty = FaultyManager(real, name)
    try:
        with held(ahead):
            results = [start(ahead, one, 50) for one in prompts]
        failed = 0
        for one, result in zip(prompts, results, strict=True):
            try:
                tokens = result.result(timeout=60).outputs[0].token_ids
            except EngineError:
                failed += 1
            else:
                assert tokens == reference.greedy(one, 50).tokens
    finally:
        cache.impl = real
    assert faulty.calls >= 6 and failed == FAILURES[name]
    result = start(ahead, prompts[0], 50).result()
    assert result.outputs[0].token_ids == reference.greedy(prompts[0], 50).tokens
    assert_idle(ahead)


def test_values_that_are_no_numbers_are_never_found(ahead) -> None:
    model = ahead._engine._engine.model
    real, calls, before = model.logits, [], Steps.of(ahead)

    def logits(hidden: torch.Tensor) -> torch.Tensor:
        calls.append(1)
        return real(hidden) * (torch.nan if len(calls) == 10 else 1)

    model.logits = logits
    try:
        with pytest.raises(EngineError, match="NaN"):
            start(ahead, prompt(5, 40), 30, cache_salt="nan").result(timeout=60)
    finally:
        model.logits = real
    assert Steps.of(ahead).since(before).num_prepared == 10
    # What the steps before it wrote is found; the tenth step's token is not.
    again = start(ahead, prompt(5, 40), 30, cache_salt="nan").result()
    assert again.cached_tokens == 39
    assert_idle(ahead)


def test_requests_that_come_while_a_step_computes_are_taken_then(ahead) -> None:
    """They wait already when it ends, and are admitted for the next step."""
    engine = ahead._engine
    forward, meanwhile = engine._engine.forward, engine._ahead._meanwhile
    came = threading.Event()
    late: list[Any] = []
    waiting: list[int] = []

    def submitting(scheduled, *args):
        if not late:
            late.append(start(ahead, prompt(2, 20), 3))
            came.set()
        return forward(scheduled, *args)

    def beside(scheduled) -> None:
        assert came.wait(60)
        meanwhile(scheduled)
        waiting.append(len(engine._live.waiting))

    engine._engine.forward, engine._ahead._meanwhile = submitting, beside
    try:
        assert start(ahead, prompt(1, 20), 5).result().outputs[0].length == 5
        assert late[0].result().outputs[0].length == 3
    finally:
        engine._engine.forward, engine._ahead._meanwhile = forward, meanwhile
    assert waiting[0] == 1
    assert_idle(ahead)
