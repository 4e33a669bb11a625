# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Adapters by request: answers of the merged stock model, beside each other, and who shares."""

from __future__ import annotations

import os
import shutil
import signal
from pathlib import Path

import pytest
from support.checkpoints import build_checkpoint
from support.engine import assert_idle, held, running, start, text_prompt, total, wait_until
from support.lora import merged, write_adapter
from support.media import picture
from support.prompts import PromptMaker
from support.reference import ReferenceModel

from tensorrt_llm.errors import ConfigurationError, RequestError
from tensorrt_llm.inputs.data import ProcessedPrompt

NEW = 5
PROMPT = text_prompt([(7 * n) % 90 + 10 for n in range(75)])
OTHER = text_prompt([(11 * n) % 90 + 10 for n in range(50)])


@pytest.fixture(scope="module")
def text_checkpoint(checkpoint_root: Path) -> Path:
    return build_checkpoint("qwen2", checkpoint_root)


@pytest.fixture(scope="module")
def stock(text_checkpoint: Path) -> ReferenceModel:
    return ReferenceModel(text_checkpoint)


@pytest.fixture(scope="module")
def folders(stock: ReferenceModel, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    root = tmp_path_factory.mktemp("adapters")
    return [
        write_adapter(root / "all", stock.model, 1),
        write_adapter(root / "queries", stock.model, 2, layers="q_proj|v_proj", rank=8),
    ]


@pytest.fixture(scope="module")
def references(stock: ReferenceModel, folders: list[Path]) -> list[ReferenceModel]:
    """Of no adapter and of each."""
    return [stock, *(merged(stock, folder) for folder in folders)]


def assert_answer(result, reference: ReferenceModel, prompt: ProcessedPrompt) -> None:
    result = result.result(timeout=60)
    expected = reference.greedy(prompt, NEW)
    output = result.outputs[0]
    assert output.token_ids == expected.tokens
    assert (output.generation_logits - expected.logits).abs().max() < 1e-4


def test_adapters_and_none_run_in_one_step_and_share_only_with_their_own(
    text_checkpoint, folders, references
) -> None:
    answers = [reference.greedy(PROMPT, NEW).logits for reference in references]
    assert (answers[0] - answers[1]).abs().max() > 0.5 < (answers[1] - answers[2]).abs().max()
    with running(text_checkpoint, max_num_tokens=128) as executor:
        adapters = [None, *(executor.load_adapter(str(folder)) for folder in folders)]
        executor.iteration_stats()
        for cached in (0, len(PROMPT) - 1):
            with held(executor):
                results = [
                    start(executor, prompt, NEW, adapter=adapter)
                    for adapter in adapters
                    for prompt in (PROMPT, OTHER)
                ]
            for result, (reference, prompt) in zip(
                results, [(r, p) for r in references for p in (PROMPT, OTHER)], strict=True
            ):
                assert_answer(result, reference, prompt)
                if prompt is PROMPT:
                    assert result.cached_tokens == cached
        # They did run together, and prompts were split.
        stats = executor.iteration_stats()
        assert max(s["inflightBatchingStats"]["numScheduledRequests"] for s in stats) == 6
        assert total(stats, "numContextRequests") > 6
        # One request alone after the others: a row's place in the batch does not count.
        for adapter, reference in zip(adapters, references, strict=True):
            executor.reset_reuse_state()
            assert_answer(start(executor, PROMPT, NEW, adapter=adapter), reference, PROMPT)
        assert_idle(executor)


def test_equal_content_is_one_adapter_and_other_content_is_another(
    text_checkpoint, stock, folders, references, tmp_path
) -> None:
    copy = shutil.copytree(folders[0], tmp_path / "copy")
    with running(text_checkpoint) as executor:
        first = executor.load_adapter(str(folders[0]))
        start(executor, PROMPT, NEW, adapter=first).result(timeout=60)
        again = executor.load_adapter(str(copy))
        assert again == first
        result = start(executor, PROMPT, NEW, adapter=again)
        assert_answer(result, references[1], PROMPT)
        assert result.cached_tokens == len(PROMPT) - 1
        # The same folder with other values: nothing of what was computed before may be found.
        write_adapter(copy, stock.model, 3)
        changed = executor.load_adapter(str(copy))
        assert changed != first
        result = start(executor, PROMPT, NEW, adapter=changed)
        assert_answer(result, merged(stock, copy), PROMPT)
        assert result.cached_tokens == 0


def test_a_burst_of_equals_waits_within_an_adapter_only(text_checkpoint, folders) -> None:
    with running(text_checkpoint) as executor:
        adapters = [None, *(executor.load_adapter(str(folder)) for folder in folders)]
        executor.iteration_stats()
        with held(executor):
            results = [start(executor, PROMPT, NEW, adapter=a) for a in adapters for _ in range(3)]
        cached = [result.result(timeout=60).cached_tokens for result in results]
        assert cached == [0, len(PROMPT) - 1, len(PROMPT) - 1] * 3


def test_one_that_is_unloaded_serves_those_that_run_and_nobody_else(
    text_checkpoint, folders, references
) -> None:
    with running(text_checkpoint) as executor:
        adapter = executor.load_adapter(str(folders[0]))
        with held(executor):
            running_on = start(executor, PROMPT, NEW, adapter=adapter)
            executor.unload_adapter(adapter)
        assert_answer(running_on, references[1], PROMPT)
        with pytest.raises(RequestError, match="not loaded any more"):
            start(executor, PROMPT, NEW, adapter=adapter)
        assert executor.load_adapter(str(folders[0])) == adapter
        assert_answer(start(executor, PROMPT, NEW, adapter=adapter), references[1], PROMPT)


def test_an_engine_that_is_started_again_has_its_adapters(
    text_checkpoint, folders, references, engine_host, stock, tmp_path
) -> None:
    changing = shutil.copytree(folders[1], tmp_path / "changing")
    config = {"engine_config": {"restart_delay_seconds": 0}}
    with running(text_checkpoint, host=engine_host, **config) as executor:
        adapters = [executor.load_adapter(str(folder)) for folder in (folders[0], changing)]
        for adapter, reference in zip(adapters, references[1:], strict=True):
            assert_answer(start(executor, PROMPT, NEW, adapter=adapter), reference, PROMPT)
        write_adapter(changing, stock.model, 9)
        os.kill(executor.engine_pid, signal.SIGKILL)
        wait_until(lambda: executor.health_problem() is not None, "the engine ends")
        wait_until(executor.is_healthy, "the engine is back")
        assert_answer(start(executor, PROMPT, NEW, adapter=adapters[0]), references[1], PROMPT)
        with pytest.raises(RequestError, match="its folder has changed"):
            start(executor, PROMPT, NEW, adapter=adapters[1]).result(timeout=60)
        with pytest.raises(ConfigurationError, match="no such folder"):
            executor.load_adapter(str(tmp_path / "none"))
        assert executor.is_healthy()


@pytest.mark.parametrize("in_encoder", [False, True])
def test_rows_of_media_are_shared_unless_the_encoder_is_adapted(
    checkpoint_root, tmp_path, in_encoder
) -> None:
    checkpoint = build_checkpoint("qwen2_vl", checkpoint_root)
    stock, make = ReferenceModel(checkpoint), PromptMaker(checkpoint)
    layers = r"visual\.blocks\.\d+\.mlp" if in_encoder else r"language_model\..*q_proj"
    folder = write_adapter(tmp_path / "a", stock.model, 1, layers=layers)
    adapted = merged(stock, folder)
    prompt = make("See <|vision_start|><|image_pad|><|vision_end|> What is it?", picture(1))
    difference = stock.greedy(prompt, NEW).logits - adapted.greedy(prompt, NEW).logits
    assert difference.abs().max() > 0.1
    with running(checkpoint) as executor:
        adapter = executor.load_adapter(str(folder))
        for which, reference in ((None, stock), (adapter, adapted), (None, stock)):
            assert_answer(start(executor, prompt, NEW, adapter=which), reference, prompt)
        runs = assert_idle(executor)["multimodalStats"]["encoderRuns"]["image"]
        assert runs == (2 if in_encoder else 1)


def test_a_rank_above_the_limit_is_refused(text_checkpoint, folders) -> None:
    with running(text_checkpoint, lora_config={"max_lora_rank": 4}) as executor:
        executor.load_adapter(str(folders[0]))
        with pytest.raises(ConfigurationError, match=r"rank 8; lora_config\.max_lora_rank is 4"):
            executor.load_adapter(str(folders[1]))
