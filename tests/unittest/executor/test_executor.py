# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""The engine on a text model: answers, limits and every way a request can end."""

from __future__ import annotations

import asyncio
import shutil
import threading

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from support.engine import assert_idle, held, running, start, text_prompt, wait_until
from support.reference import ReferenceModel, assert_same_logits

from benchmarks.prefix_model import PrefixModel, token_keys
from tensorrt_llm.errors import (
    ConfigurationError,
    EngineError,
    EngineStoppedError,
    LimitExceededError,
    QueueFullError,
    RequestError,
)
from tensorrt_llm.executor.worker import GenerationExecutorWorker
from tensorrt_llm.llmapi.llm_args import LlmArgs

BLOCK = 32


@pytest.fixture(scope="module")
def reference(llama_checkpoint) -> ReferenceModel:
    return ReferenceModel(llama_checkpoint)


def prompt(seed: int, length: int):
    return text_prompt(np.random.default_rng(seed).integers(5, 1200, length))


@pytest.mark.parametrize("chunk", [7, 33, 8192])
def test_logits_equal_transformers_cold_and_reused(llama_checkpoint, reference, chunk) -> None:
    question = prompt(1, 150)
    expected = reference.greedy(question, 6)
    with running(llama_checkpoint, max_num_tokens=chunk) as executor:
        for cached in (0, 149, 149):
            result = start(executor, question, 6).result()
            assert result.cached_tokens == cached
            assert result.outputs[0].token_ids == expected.tokens
            assert_same_logits(result.outputs[0].generation_logits, expected.logits)
        assert_idle(executor)


def test_interleaved_requests_do_not_disturb_each_other(llama_checkpoint, reference) -> None:
    prompts = [prompt(seed, 20 + 17 * seed) for seed in range(8)]
    with running(llama_checkpoint, max_num_tokens=40) as executor:
        results = [start(executor, one, 5 + n) for n, one in enumerate(prompts)]
        for n, (one, result) in enumerate(zip(prompts, results, strict=True)):
            expected = reference.greedy(one, 5 + n)
            assert result.result().outputs[0].token_ids == expected.tokens
        iterations = executor.iteration_stats()
        mixed = [
            i
            for i in iterations
            if i["inflightBatchingStats"]["numContextRequests"]
            and i["inflightBatchingStats"]["numGenRequests"]
        ]
        assert mixed, "no step held both phases"


def test_eviction_under_pressure_keeps_answers_right(llama_checkpoint, reference) -> None:
    prompts = [prompt(seed, 100) for seed in range(6)]
    expected = [reference.greedy(one, 4).tokens for one in prompts]
    with running(llama_checkpoint, kv_max_tokens=256) as executor:
        for _ in range(3):
            for one, tokens in zip(prompts, expected, strict=True):
                assert start(executor, one, 4).result().outputs[0].token_ids == tokens
        assert assert_idle(executor)["kvCacheStats"]["evictedBlocks"] > 20, "no pressure"


def test_blocks_pushed_to_the_host_come_back_with_the_same_answers(
    llama_checkpoint, reference
) -> None:
    prompts = [prompt(seed, 100) for seed in range(6)]
    expected = [reference.greedy(one, 4) for one in prompts]
    with running(llama_checkpoint, kv_max_tokens=256, kv_host_cache_size="1MiB") as executor:
        for turn in range(3):
            for one, answer in zip(prompts, expected, strict=True):
                result = start(executor, one, 4).result()
                assert result.outputs[0].token_ids == answer.tokens
                assert_same_logits(result.outputs[0].generation_logits, answer.logits)
                # Six prompts of four blocks do not fit into eight; the host pool holds them all.
                assert (result.cached_tokens >= 96) == (turn > 0)
        stats = assert_idle(executor)["kvCacheStats"]
        assert stats["offloadedBlocks"] > 20 and stats["onboardedBlocks"] > 20, "no pressure"


def test_parts_of_blocks_are_reused_taken_over_or_copied(llama_checkpoint, reference) -> None:
    common = prompt(21, 150).token_ids
    asked = [
        text_prompt(np.concatenate([common[:cut], prompt(30 + cut, 60).token_ids]))
        for cut in (150, 70, 95, 96, 97, 149, 33, 1)
    ]
    options = {"max_num_tokens": 40}
    with running(llama_checkpoint, **options) as executor:
        reuse = PrefixModel(BLOCK)
        for one in asked * 2:
            result = start(executor, one, 4).result()
            keys = token_keys(one, ())
            assert result.cached_tokens == reuse.longest(keys)
            reuse.write(token_keys(one, (), result.outputs[0].token_ids[:-1]))
            assert result.outputs[0].token_ids == reference.greedy(one, 4).tokens
        assert assert_idle(executor)["kvCacheStats"]["partialReusedBlocks"] > 5
    with running(llama_checkpoint, kv_enable_partial_reuse=False, **options) as executor:
        for one in asked:
            assert start(executor, one, 4).result().cached_tokens % BLOCK == 0


def test_two_requests_share_the_head_of_a_block_that_one_of_them_uses(
    llama_checkpoint, reference
) -> None:
    common = prompt(22, 110).token_ids
    first = text_prompt(np.concatenate([common, prompt(23, 60).token_ids]))
    second = text_prompt(np.concatenate([common, prompt(24, 60).token_ids]))
    with running(llama_checkpoint, kv_max_tokens=4096) as executor:
        busy = start(executor, first, 200)
        next(iter(busy))
        result = start(executor, second, 20).result()
        assert not busy.finished
        assert result.cached_tokens == 110
        assert result.outputs[0].token_ids == reference.greedy(second, 20).tokens
        assert busy.result().outputs[0].token_ids == reference.greedy(first, 200).tokens


def test_more_requests_than_the_pool_holds_all_finish(llama_checkpoint, reference) -> None:
    prompts = [prompt(seed, 90) for seed in range(10)]
    with running(llama_checkpoint, kv_max_tokens=256) as executor:
        results = [start(executor, one, 8) for one in prompts]
        for one, result in zip(prompts, results, strict=True):
            assert result.result().outputs[0].token_ids == reference.greedy(one, 8).tokens
        assert max(i["numQueuedRequests"] for i in executor.iteration_stats()) > 0, "no pressure"


def test_a_salt_shares_with_itself_only(llama_checkpoint) -> None:
    question = prompt(3, 70)
    with running(llama_checkpoint) as executor:
        cached = [
            start(executor, question, 1, cache_salt=salt).result().cached_tokens
            for salt in ("a", "a", "b", None, "a", None)
        ]
    assert cached == [0, 69, 0, 0, 69, 69]


def test_generated_tokens_are_found_by_the_next_turn(llama_checkpoint, reference) -> None:
    with running(llama_checkpoint) as executor:
        first = start(executor, prompt(4, 60), 40).result()
        written = [*first.prompt_token_ids, *first.outputs[0].token_ids]
        second = text_prompt([*written, 9, 10, 11])
        result = start(executor, second, 4).result()
        assert result.cached_tokens == 99, "the last generated token is never written"
        assert result.outputs[0].token_ids == reference.greedy(second, 4).tokens


def test_reuse_off_never_reports_cached_tokens(llama_checkpoint) -> None:
    with running(llama_checkpoint, block_reuse=False) as executor:
        for _ in range(3):
            assert start(executor, prompt(1, 150), 1).result().cached_tokens == 0


def test_forgetting_the_cache_makes_the_next_request_cold(llama_checkpoint) -> None:
    with running(llama_checkpoint) as executor:
        start(executor, prompt(1, 150), 1).result()
        assert executor.reset_reuse_state() == 5
        assert start(executor, prompt(1, 150), 1).result().cached_tokens == 0
        assert start(executor, prompt(1, 150), 1).result().cached_tokens == 149


@pytest.mark.parametrize("tokens_before_cancel", [0, 1, 5])
def test_a_cancelled_request_ends_and_gives_everything_back(
    llama_checkpoint, reference, tokens_before_cancel
) -> None:
    with running(llama_checkpoint, max_num_tokens=33) as executor:
        neighbour = start(executor, prompt(7, 40), 30)
        result = start(executor, prompt(5, 200), 5000)
        for _ in range(tokens_before_cancel):
            next(iter(result))
        result.abort()
        assert result.result(timeout=60).outputs[0].finish_reason == "cancelled"
        assert result.outputs[0].length < 5000
        expected = reference.greedy(prompt(7, 40), 30).tokens
        assert neighbour.result().outputs[0].token_ids == expected
        assert start(executor, prompt(8, 40), 3).result().outputs[0].length == 3
        assert_idle(executor)


def test_who_left_an_idle_engine_is_not_counted_with_who_comes(llama_checkpoint) -> None:
    with running(llama_checkpoint) as executor:
        result = start(executor, prompt(30, 20), 2000)
        next(iter(result))
        result.abort()
        assert result.result(timeout=60).outputs[0].finish_reason == "cancelled"
        assert_idle(executor)
        start(executor, prompt(31, 20), 1).result(timeout=60)
        assert executor.iteration_stats()[-1]["numActiveRequests"] == 1


def test_a_request_cancelled_in_mid_prefill_leaves_only_written_blocks(
    llama_checkpoint, reference
) -> None:
    question = prompt(5, 2000)
    with running(llama_checkpoint, max_num_tokens=32) as executor:
        steps: list[int] = []
        forward = executor._engine._engine.forward

        def cancel_at_the_third(scheduled, tables):
            steps.append(1)
            if len(steps) == 3:
                first.abort()
            return forward(scheduled, tables)

        executor._engine._engine.forward = cancel_at_the_third
        with held(executor):
            first = start(executor, question, 1)
        first.result(timeout=60)
        assert first.outputs[0].length == 0, "cancelled too late to show anything"
        second = start(executor, question, 4).result()
        assert 0 < second.cached_tokens < 1984
        assert second.outputs[0].token_ids == reference.greedy(question, 4).tokens


def test_stop_token_ids_eos_and_length(llama_checkpoint, reference) -> None:
    question = prompt(1, 30)
    tokens = reference.greedy(question, 12).tokens
    third = tokens[2]
    with running(llama_checkpoint) as executor:
        stopped = start(executor, question, 12, stop_token_ids=[third]).result().outputs[0]
        assert stopped.token_ids == tokens[: tokens.index(third) + 1]
        assert (stopped.finish_reason, stopped.stop_reason) == ("stop", third)
        full = start(executor, question, 12).result().outputs[0]
        assert (full.finish_reason, full.length) == ("length", 12)


def test_stop_text_ends_the_answer_and_the_work(llama_checkpoint) -> None:
    question = prompt(1, 30)
    with running(llama_checkpoint) as executor:
        whole = start(executor, question, 40).result().outputs[0].text
        stop = whole[10:14]
        result = start(executor, question, 4000, stop=stop).result()
        assert result.outputs[0].text == whole[: whole.index(stop)]
        assert (result.outputs[0].finish_reason, result.outputs[0].stop_reason) == ("stop", stop)
        assert result.outputs[0].length < 40
        assert start(executor, question, 2).result().outputs[0].length == 2
        assert_idle(executor)


def test_streams_agree_with_the_whole_answer(llama_checkpoint) -> None:
    question = prompt(2, 30)
    with running(llama_checkpoint) as executor:
        whole = start(executor, question, 20).result().outputs[0]

        async def stream() -> tuple[str, list[int]]:
            text, tokens = "", []
            async for update in start(executor, question, 20):
                text += update.outputs[0].text_diff
                tokens += update.outputs[0].token_ids_diff
            return text, tokens

        async def several() -> list[tuple[str, list[int]]]:
            return await asyncio.gather(*(stream() for _ in range(4)))

        for text, tokens in asyncio.run(several()):
            assert (text, tokens) == (whole.text, whole.token_ids)
        blocking = start(executor, question, 20)
        assert "".join(update.outputs[0].text_diff for update in blocking) == whole.text


def test_limits_name_both_numbers_and_lose_nothing(llama_checkpoint) -> None:
    options = {"max_seq_len": 128, "max_num_tokens": 100, "kv_max_tokens": 96}
    with running(llama_checkpoint, enable_chunked_prefill=False, **options) as executor:
        with pytest.raises(LimitExceededError, match=r"129 tokens exceed max_seq_len \(128 "):
            start(executor, prompt(1, 128), 1)
        with pytest.raises(LimitExceededError, match=r"101 prompt tokens exceed max_num_tokens"):
            start(executor, prompt(1, 101), 1)
        with pytest.raises(LimitExceededError, match=r"97 tokens .* exceed the KV cache .*\(96"):
            start(executor, prompt(1, 90), 8)
        with pytest.raises(RequestError, match="no tokens"):
            start(executor, text_prompt([]), 1)
        with pytest.raises(RequestError, match="token id 1280 is outside the vocabulary of 1280"):
            start(executor, text_prompt([5, 1280]), 1)
        with pytest.raises(RequestError, match="token id -1 "):
            start(executor, text_prompt([5, -1]), 1)
        assert start(executor, prompt(1, 90), 7).result().outputs[0].length == 7
        assert start(executor, prompt(2, 10), 500, ignore_eos=True, max_tokens=None)


def test_a_full_queue_refuses_and_recovers(llama_checkpoint) -> None:
    with running(llama_checkpoint, max_batch_size=1, max_queue_size=2) as executor:
        gate = threading.Event()
        executor._engine.call(gate.wait)
        results = [start(executor, prompt(1, 10), 1)]
        with pytest.raises(QueueFullError, match="max_queue_size 2"):
            for _ in range(4):
                results.append(start(executor, prompt(1, 10), 1))
        gate.set()
        for result in results:
            result.result()
        assert start(executor, prompt(1, 10), 1).result().finished


def test_only_requests_take_places_in_the_queue(llama_checkpoint) -> None:
    with running(llama_checkpoint, max_batch_size=1, max_queue_size=2) as executor:
        gate = threading.Event()
        executor._engine.call(gate.wait)
        results = [start(executor, prompt(1, 10), 1)]
        for _ in range(5):
            executor._engine.cancel(12345)
            executor._engine.snapshot()
        results.append(start(executor, prompt(2, 10), 1))
        with pytest.raises(QueueFullError):
            start(executor, prompt(3, 10), 1)
        gate.set()
        for result in results:
            assert result.result(timeout=60).finished
        assert_idle(executor)


def test_who_asks_an_engine_that_has_stopped_is_told_so(llama_checkpoint) -> None:
    with running(llama_checkpoint) as executor:
        executor.shutdown()
        for ask in (executor.snapshot, executor.reset_reuse_state):
            with pytest.raises(EngineStoppedError):
                ask()
        with pytest.raises(EngineStoppedError):
            start(executor, prompt(1, 10), 1)
        executor._engine.cancel(1)


def test_a_fault_in_a_step_fails_that_step_only(llama_checkpoint, reference) -> None:
    question = prompt(1, 70)
    with running(llama_checkpoint) as executor:
        layer = executor._engine._engine.model.hf_model.model.layers[1].mlp
        broken = layer.register_forward_hook(lambda *_: (_ for _ in ()).throw(MemoryError("full")))
        with pytest.raises(EngineError, match="step failed: MemoryError: full"):
            start(executor, question, 4).result()
        broken.remove()
        result = start(executor, question, 4).result()
        assert result.cached_tokens == 0, "blocks of the failed step must not be findable"
        assert result.outputs[0].token_ids == reference.greedy(question, 4).tokens
        assert executor.is_healthy()
        assert_idle(executor)


def test_values_that_are_no_numbers_fail_their_request_and_are_never_cached(
    llama_checkpoint, reference
) -> None:
    poisoned, healthy = prompt(11, 100), prompt(12, 100)
    token = int(poisoned.token_ids[5])
    assert token not in healthy.token_ids
    with running(llama_checkpoint, max_num_tokens=40) as executor:
        weight = executor._engine._engine.model.embedding.weight.data
        kept = weight[token].clone()
        weight[token] = torch.nan
        bad, good = start(executor, poisoned, 4), start(executor, healthy, 4)
        with pytest.raises(EngineError, match="NaN"):
            bad.result()
        assert good.result().outputs[0].token_ids == reference.greedy(healthy, 4).tokens
        weight[token] = kept
        again = start(executor, poisoned, 4).result()
        assert again.cached_tokens == 0
        assert again.outputs[0].token_ids == reference.greedy(poisoned, 4).tokens
        assert_idle(executor)


def test_shutdown_fails_what_runs_and_refuses_what_comes(llama_checkpoint) -> None:
    with running(llama_checkpoint) as executor:
        results = [start(executor, prompt(n, 20), 4000) for n in range(3)]
        next(iter(results[0]))
        executor.shutdown()
        for result in results:
            with pytest.raises(EngineStoppedError):
                result.result(timeout=60)
        assert not executor.is_healthy()
        with pytest.raises(EngineStoppedError):
            start(executor, prompt(1, 10), 1)
        executor.shutdown()


def test_a_loop_that_dies_is_seen_and_leaves_nobody_waiting(llama_checkpoint) -> None:
    with running(llama_checkpoint) as executor:
        result = start(executor, prompt(1, 20), 4000)
        next(iter(result))
        executor._engine._scheduler = None
        with pytest.raises(EngineStoppedError):
            result.result(timeout=60)
        assert not executor.is_healthy()


def test_a_stuck_loop_is_not_healthy(llama_checkpoint) -> None:
    with running(llama_checkpoint, engine_config={"stall_seconds": 2}) as executor:
        gate = threading.Event()
        executor._engine.call(gate.wait)
        wait_until(lambda: not executor.is_healthy(), "it says so")
        gate.set()


def test_a_folder_without_a_checkpoint_is_refused(tmp_path) -> None:
    with pytest.raises(ConfigurationError, match="no usable checkpoint"):
        GenerationExecutorWorker(LlmArgs(model=str(tmp_path)), None)


def test_truncated_weights_are_refused(llama_checkpoint, tmp_path) -> None:
    folder = tmp_path / "cut"
    shutil.copytree(llama_checkpoint, folder)
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:5000])
    with pytest.raises(ConfigurationError, match="cannot load weights"), running(folder):
        pass


def test_missing_weights_are_refused(llama_checkpoint, tmp_path) -> None:
    folder = tmp_path / "broken"
    shutil.copytree(llama_checkpoint, folder)
    weights = load_file(folder / "model.safetensors")
    weights.pop("model.layers.1.mlp.down_proj.weight")
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    message = "1 weights are missing, the first is model.layers.1.mlp.down_proj.weight"
    with pytest.raises(ConfigurationError, match=message), running(folder):
        pass


def test_weights_of_another_shape_are_refused(llama_checkpoint, tmp_path) -> None:
    folder = tmp_path / "broken"
    shutil.copytree(llama_checkpoint, folder)
    weights = load_file(folder / "model.safetensors")
    name = "model.layers.1.mlp.down_proj.weight"
    weights[name] = weights[name][:, 1:].contiguous()
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    message = r"1 weights are of another shape, the first is model\.layers\.1\.mlp\.down_proj"
    with pytest.raises(ConfigurationError, match=message), running(folder):
        pass
