# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""More work than the pool holds: pauses that nobody notices, priorities, deadlines."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from support.checkpoints import build_checkpoint
from support.engine import assert_idle, held, running, start, text_prompt, total
from support.media import picture
from support.prompts import PromptMaker
from support.reference import ReferenceModel

from tensorrt_llm.errors import DeadlineExceededError, LimitExceededError, RequestError

MAX_UTILIZATION = {"capacity_scheduler_policy": "MAX_UTILIZATION"}


@pytest.fixture(scope="module")
def llama(llama_checkpoint) -> ReferenceModel:
    return ReferenceModel(llama_checkpoint)


def prompt(seed: int, length: int):
    return text_prompt(np.random.default_rng(seed).integers(5, 1200, length))


def test_paused_requests_resume_and_answer_as_if_alone(llama_checkpoint, llama) -> None:
    prompts = [prompt(seed, 40 + seed) for seed in range(6)]
    options = {"kv_max_tokens": 288, "max_num_tokens": 64, "scheduler_config": MAX_UTILIZATION}
    with running(llama_checkpoint, **options) as executor:
        with held(executor):
            results = [start(executor, one, 80) for one in prompts]
        for one, result in zip(prompts, results, strict=True):
            pieces: list[int] = []
            for update in result:
                pieces += update.outputs[0].token_ids_diff
            expected = llama.greedy(one, 80)
            assert pieces == result.outputs[0].token_ids == expected.tokens
            difference = result.outputs[0].generation_logits - expected.logits
            assert float(difference.abs().max()) < 1e-3
            assert result.cached_tokens == 0, "what it wrote itself before a pause is no hit"
        assert total(executor.iteration_stats(), "numPausedRequests") > 1, "no pressure"
        assert_idle(executor)


def test_what_a_step_cannot_take_whole_is_recomputed_in_parts(llama_checkpoint, llama) -> None:
    """A resumed request writes its answer again too, which no limit on prompts bounds."""
    prompts = [prompt(seed, 40) for seed in range(4)]
    options = {
        "kv_max_tokens": 288,
        "max_num_tokens": 48,
        "enable_chunked_prefill": False,
        "block_reuse": False,
        "scheduler_config": MAX_UTILIZATION,
    }
    with running(llama_checkpoint, **options) as executor:
        with held(executor):
            results = [start(executor, one, 80) for one in prompts]
        for one, result in zip(prompts, results, strict=True):
            assert result.result(timeout=60).outputs[0].token_ids == llama.greedy(one, 80).tokens
        assert total(executor.iteration_stats(), "numPausedRequests") > 0, "no pressure"
        assert_idle(executor)


def test_the_random_stream_goes_on_where_it_was(llama_checkpoint) -> None:
    sampling = {"temperature": 1.0, "top_p": 0.95}
    prompts = [prompt(seed, 40) for seed in range(5)]
    with running(llama_checkpoint) as executor:
        alone = [start(executor, one, 80, seed=7, **sampling).result() for one in prompts]
    options = {"kv_max_tokens": 320, "scheduler_config": MAX_UTILIZATION}
    with running(llama_checkpoint, **options) as executor:
        with held(executor):
            results = [start(executor, one, 80, seed=7, **sampling) for one in prompts]
        for expected, result in zip(alone, results, strict=True):
            assert result.result().outputs[0].token_ids == expected.outputs[0].token_ids
        assert total(executor.iteration_stats(), "numPausedRequests") > 0, "no pressure"
        assert_idle(executor)


@pytest.mark.parametrize("store", [0, 1 << 24])
def test_media_is_still_at_hand_when_a_request_resumes(phi4mm_checkpoint, store) -> None:
    """Eight pictures, a pool for three: case C13."""
    make, reference = PromptMaker(phi4mm_checkpoint), ReferenceModel(phi4mm_checkpoint)
    ask = "<|user|><|image|>?<|end|><|assistant|>"
    prompts = [make(ask, picture(seed)) for seed in range(8)]
    room = 3 * (len(prompts[0]) + 60)
    options = {
        "kv_max_tokens": room,
        "multimodal_config": {"encoder_cache_max_bytes": store},
        "scheduler_config": MAX_UTILIZATION,
        "max_num_tokens": 64,
    }
    with running(phi4mm_checkpoint, **options) as executor:
        with held(executor):
            results = [start(executor, one, 60) for one in prompts]
        for one, result in zip(prompts, results, strict=True):
            assert result.result().outputs[0].token_ids == reference.greedy(one, 60).tokens
        assert total(executor.iteration_stats(), "numPausedRequests") > 0, "no pressure"
        assert_idle(executor)


def test_the_other_policy_never_pauses(llama_checkpoint, llama) -> None:
    prompts = [prompt(seed, 40) for seed in range(5)]
    with running(llama_checkpoint, kv_max_tokens=320) as executor:
        with held(executor):
            results = [start(executor, one, 80) for one in prompts]
        for one, result in zip(prompts, results, strict=True):
            assert result.result().outputs[0].token_ids == llama.greedy(one, 80).tokens
        iterations = executor.iteration_stats()
        assert total(iterations, "numPausedRequests") == 0
        assert max(iteration["numQueuedRequests"] for iteration in iterations) > 0, "no pressure"


def test_who_has_a_higher_priority_starts_first_and_is_paused_last(llama_checkpoint) -> None:
    order: list[int] = []
    with running(llama_checkpoint, max_batch_size=1) as executor:
        with held(executor):
            priorities = [0.1, 0.5, 0.9, 0.5]
            results = [
                start(executor, prompt(seed, 20), 2, priority=priority)
                for seed, priority in enumerate(priorities)
            ]
            threads = [
                threading.Thread(target=lambda n=n: (results[n].result(), order.append(n)))
                for n in range(4)
            ]
            for thread in threads:
                thread.start()
        for thread in threads:
            thread.join()
        times = [result.times.finished for result in results]
        assert sorted(range(4), key=lambda n: times[n]) == [2, 1, 3, 0]
    options = {"kv_max_tokens": 256, "scheduler_config": MAX_UTILIZATION}
    with running(llama_checkpoint, **options) as executor:
        paused = executor._engine._pause
        victims: list[int] = []

        def note(request) -> None:
            victims.append(request.request_id)
            paused(request)

        executor._engine._pause = note
        with held(executor):
            low = start(executor, prompt(1, 60), 100, priority=0.0)
            high = start(executor, prompt(2, 60), 100, priority=1.0)
        high.result()
        low.result()
        assert set(victims) == {low.request_id}, "no pressure, or the wrong victim"


def test_a_request_out_of_time_ends_and_the_others_do_not_notice(llama_checkpoint, llama) -> None:
    with running(llama_checkpoint) as executor:
        neighbour = start(executor, prompt(1, 30), 60)
        late = start(executor, prompt(2, 30), 4000, timeout=0.3)
        with pytest.raises(DeadlineExceededError, match=r"within its 0\.3 s"):
            late.result(timeout=60)
        in_time = start(executor, prompt(3, 30), 3, timeout=600.0)
        assert in_time.result().outputs[0].length == 3
        assert neighbour.result().outputs[0].token_ids == llama.greedy(prompt(1, 30), 60).tokens
        assert_idle(executor)


@pytest.mark.parametrize(
    "wrong", [{"priority": 1.01}, {"priority": -0.1}, {"timeout": 0.0}, {"timeout": -1.0}]
)
def test_wrong_values_are_refused_by_name(llama_checkpoint, wrong) -> None:
    name = next(iter(wrong))
    with running(llama_checkpoint) as executor, pytest.raises(RequestError, match=name):
        start(executor, prompt(1, 10), 1, **wrong)


@pytest.mark.parametrize("spare", [-1, 0, 1])
def test_an_item_that_must_run_whole_fits_a_step_or_is_refused(checkpoint_root, spare) -> None:
    """Case C14: just above, exactly at and just below what a step holds."""
    checkpoint = build_checkpoint("gemma3", checkpoint_root)
    make, reference = PromptMaker(checkpoint), ReferenceModel(checkpoint)
    question = make("Look: <start_of_image>?", picture(1))
    run = question.items[0].runs[0]
    with running(checkpoint, max_num_tokens=run.length + spare) as executor:
        ends: list[int] = []
        forward = executor._engine._engine.forward

        def note(scheduled, tables):
            for entry in scheduled:
                if entry.request.items:
                    ends.append(entry.request.num_written + entry.num_tokens)
            return forward(scheduled, tables)

        executor._engine._engine.forward = note
        neighbour = start(executor, make("Just words."), 20)
        if spare < 0:
            with pytest.raises(
                LimitExceededError, match=f"{run.length} rows .*{run.length - 1} rows"
            ):
                start(executor, question, 4)
        else:
            result = start(executor, question, 4).result(timeout=60)
            assert result.outputs[0].token_ids == reference.greedy(question, 4).tokens
            assert run.position in ends, "nothing was split"
            assert not any(run.position < end < run.position + run.length for end in ends)
        assert neighbour.result().outputs[0].length == 20
        assert_idle(executor)
