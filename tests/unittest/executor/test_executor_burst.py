# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Equal requests at the same time: one prefill, one encoder run, and everybody's own answer."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from support.engine import assert_idle, deferred, held, running, start, text_prompt, total
from support.media import clip, picture
from support.prompts import PromptMaker
from support.reference import ReferenceModel

from tensorrt_llm.errors import EngineError

NEW = 4
BLOCK = 32
IMAGE, AUDIO = "<|image|>", "<|audio|>"


@pytest.fixture(scope="module")
def llama(llama_checkpoint) -> ReferenceModel:
    return ReferenceModel(llama_checkpoint)


@pytest.fixture(scope="module")
def phi4mm(phi4mm_checkpoint) -> ReferenceModel:
    return ReferenceModel(phi4mm_checkpoint)


@pytest.fixture(scope="module")
def make(phi4mm_checkpoint) -> PromptMaker:
    return PromptMaker(phi4mm_checkpoint)


def text(seed: int, length: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(5, 1200, length)


def answers(results) -> list[list[int]]:
    return [result.result(timeout=120).outputs[0].token_ids for result in results]


@pytest.mark.parametrize("chunk", [40, 8192])
def test_64_equal_requests_cost_one_prefill_and_one_encoder_run(
    phi4mm_checkpoint, make, phi4mm, chunk
) -> None:
    ask = "<|user|>Please listen and look: " + IMAGE + AUDIO + " What is it?<|end|><|assistant|>"
    prompt = make(ask, picture(1), clip(1, 1.0))
    expected = phi4mm.greedy(prompt, NEW).tokens
    with running(phi4mm_checkpoint, max_num_tokens=max(chunk, 80)) as executor:
        with held(executor):
            results = [start(executor, prompt, NEW) for _ in range(64)]
        assert answers(results) == [expected] * 64
        computed = total(executor.iteration_stats(), "numCtxTokens")
        assert len(prompt) < computed <= len(prompt) + 64
        assert [result.cached_tokens for result in results] == [0] + [len(prompt) - 1] * 63
        state = assert_idle(executor)
        assert state["multimodalStats"]["encoderRuns"] == {"image": 1, "audio": 1}


def test_a_prompt_that_had_to_wait_for_its_items_is_counted_once(
    phi4mm_checkpoint, make, phi4mm
) -> None:
    prompt = make("<|user|>" + IMAGE + " What is it?<|end|><|assistant|>", picture(7))
    expected = phi4mm.greedy(prompt, NEW).tokens
    with running(phi4mm_checkpoint) as executor:
        with held(executor):
            results = [start(executor, deferred(prompt), NEW) for _ in range(3)]
        assert answers(results) == [expected] * 3
        assert total(executor.iteration_stats(), "numCtxTokens") == len(prompt) + 2


@pytest.mark.parametrize("length", [1, 2, 20, 31, 32, 33, 95, 96, 97])
def test_prompts_of_every_size_are_computed_once(llama_checkpoint, llama, length) -> None:
    prompt = text_prompt(text(1, length))
    with running(llama_checkpoint) as executor:
        with held(executor):
            results = [start(executor, prompt, NEW) for _ in range(8)]
        assert answers(results) == [llama.greedy(prompt, NEW).tokens] * 8
        assert total(executor.iteration_stats(), "numCtxTokens") == length + 7
        assert_idle(executor)


def test_a_common_beginning_is_computed_once_and_different_ends_are_not_shared(
    llama_checkpoint, llama
) -> None:
    common = text(1, 200)
    prompts = [text_prompt(np.concatenate([common, text(seed, 30)])) for seed in range(2, 10)]
    with running(llama_checkpoint, max_num_tokens=64) as executor:
        with held(executor):
            results = [start(executor, prompt, NEW) for prompt in prompts]
        assert answers(results) == [llama.greedy(prompt, NEW).tokens for prompt in prompts]
        assert total(executor.iteration_stats(), "numCtxTokens") == 200 + 8 * 30
        assert_idle(executor)


@pytest.mark.parametrize("partial", [False, True])
def test_without_sharing_of_parts_whole_blocks_are_computed_once(
    llama_checkpoint, llama, partial
) -> None:
    prompt = text_prompt(text(1, 100))
    options = {} if partial else {"kv_enable_partial_reuse": False}
    with running(llama_checkpoint, **options) as executor:
        with held(executor):
            results = [start(executor, prompt, NEW) for _ in range(5)]
        assert answers(results) == [llama.greedy(prompt, NEW).tokens] * 5
        expected = 100 + 4 * (1 if partial else 4)
        assert total(executor.iteration_stats(), "numCtxTokens") == expected


def test_equal_requests_that_may_not_share_do_not_wait(llama_checkpoint) -> None:
    prompt = text_prompt(text(1, 100))
    for options, salts in (({"block_reuse": False}, [None] * 4), ({}, ["a", "b", "c", None])):
        with running(llama_checkpoint, **options) as executor:
            with held(executor):
                results = [start(executor, prompt, 1, cache_salt=salt) for salt in salts]
            answers(results)
            first = executor.iteration_stats()[0]["inflightBatchingStats"]
            assert (first["numContextRequests"], first["numCtxTokens"]) == (4, 400)


def test_one_item_in_different_prompts_is_encoded_once_even_if_none_is_kept(
    phi4mm_checkpoint, make, phi4mm
) -> None:
    prompts = [make(f"<|user|>{n} {IMAGE}?<|end|><|assistant|>", picture(1)) for n in range(4)]
    for options in ({}, {"multimodal_config": {"encoder_cache_max_bytes": 0}}):
        with running(phi4mm_checkpoint, **options) as executor:
            with held(executor):
                results = [start(executor, prompt, NEW) for prompt in prompts]
            assert answers(results) == [phi4mm.greedy(prompt, NEW).tokens for prompt in prompts]
            state = assert_idle(executor)["multimodalStats"]
            assert state["encoderRuns"]["image"] == 1
            if options:
                assert state["embeddingStore"]["itemCount"] == 0


def at_chunk(executor, request_id: int, act: Any) -> None:
    """Calls once, in the loop's thread, when that request has written a part of its prompt."""
    runner = executor._engine._runner
    run = runner.run

    def hooked(scheduled):
        for entry in scheduled:
            request = entry.request
            if request.request_id == request_id and request.in_context and request.num_written:
                runner.run = run
                act()
        return run(scheduled)

    runner.run = hooked


def test_when_the_first_is_cancelled_the_next_goes_on_from_what_it_wrote(
    phi4mm_checkpoint, make, phi4mm
) -> None:
    prompt = make("<|user|>" + IMAGE + " What?" * 30 + "<|end|><|assistant|>", picture(1))
    expected = phi4mm.greedy(prompt, NEW).tokens
    with running(phi4mm_checkpoint, max_num_tokens=BLOCK) as executor:
        with held(executor):
            results = [start(executor, prompt, NEW) for _ in range(6)]
            at_chunk(executor, results[0].request_id, results[0].abort)
        assert results[0].result().outputs[0].finish_reason == "cancelled"
        assert answers(results[1:]) == [expected] * 5
        assert results[1].cached_tokens >= BLOCK
        assert total(executor.iteration_stats(), "numCtxTokens") <= len(prompt) + BLOCK + 5
        assert assert_idle(executor)["multimodalStats"]["encoderRuns"]["image"] == 1


def test_when_the_first_fails_to_encode_the_next_tries_for_itself(
    phi4mm_checkpoint, make, phi4mm, monkeypatch
) -> None:
    prompt = make("<|user|>" + IMAGE + "?<|end|><|assistant|>", picture(1))
    with running(phi4mm_checkpoint) as executor:
        model = executor._engine._engine.model
        encode, calls = model.encode, []

        def fail_once(*args, **kwargs):
            calls.append(1)
            if len(calls) == 1:
                raise MemoryError("no room to encode")
            return encode(*args, **kwargs)

        monkeypatch.setattr(model, "encode", fail_once)
        with held(executor):
            results = [start(executor, prompt, NEW) for _ in range(5)]
        with pytest.raises(EngineError, match="no room to encode"):
            results[0].result()
        assert answers(results[1:]) == [phi4mm.greedy(prompt, NEW).tokens] * 4
        assert len(calls) == 2
        assert_idle(executor)


def test_equal_tokens_with_other_media_do_not_wait_for_each_other(
    phi4mm_checkpoint, make, phi4mm
) -> None:
    ask = "<|user|>" + IMAGE + " What?<|end|><|assistant|>"
    prompts = [make(ask, picture(seed)) for seed in (1, 2)]
    unknown = [
        dataclasses.replace(
            prompts[0], items=(dataclasses.replace(prompts[0].items[0], identity=None),)
        )
    ] * 2
    assert np.array_equal(prompts[0].token_ids, prompts[1].token_ids)
    with running(phi4mm_checkpoint) as executor:
        for pair in (prompts, unknown):
            executor.iteration_stats()
            with held(executor):
                results = [start(executor, prompt, NEW) for prompt in pair]
            assert answers(results) == [phi4mm.greedy(prompt, NEW).tokens for prompt in pair]
            first = executor.iteration_stats()[0]["inflightBatchingStats"]
            assert first["numContextRequests"] == 2
        assert_idle(executor)


def test_a_request_behind_those_who_wait_is_not_held_up(llama_checkpoint, llama) -> None:
    equal, other = text_prompt(text(1, 2000)), text_prompt(text(2, 20))
    with running(llama_checkpoint, max_num_tokens=64) as executor:
        with held(executor):
            results = [start(executor, equal, NEW) for _ in range(3)]
            late = start(executor, other, NEW)
        assert late.result().outputs[0].token_ids == llama.greedy(other, NEW).tokens
        assert not results[0].finished and results[0].outputs[0].length == 0
        assert answers(results) == [llama.greedy(equal, NEW).tokens] * 3


def test_forgetting_the_cache_meanwhile_costs_time_only(llama_checkpoint, llama) -> None:
    prompt = text_prompt(text(1, 200))
    with running(llama_checkpoint, max_num_tokens=BLOCK) as executor:
        with held(executor):
            results = [start(executor, prompt, NEW) for _ in range(4)]
            at_chunk(executor, results[0].request_id, executor._engine.reset_reuse_state)
        assert answers(results) == [llama.greedy(prompt, NEW).tokens] * 4
        assert [result.cached_tokens for result in results] == [0, 0, 199, 199]
        assert_idle(executor)
