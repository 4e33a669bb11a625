# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Phi-4-multimodal's own adapters, in both layouts of the checkpoint.

The oracle is the stock model with the adapter of the request's modalities merged into its weights.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.checkpoints import build_checkpoint
from support.engine import assert_idle, held, running, start
from support.lora import merged, write_adapter
from support.media import clip, picture
from support.prompts import PromptMaker
from support.reference import ReferenceModel

from tensorrt_llm.inputs.data import ProcessedPrompt

NEW = 5
# Of logits around 30: merging an adapter rounds every weight of the oracle anew. Another adapter
# makes a difference of more than 0.5.
ROUNDING = 5e-4
IMAGE, AUDIO = "<|image_1|>", "<|audio_1|>"
TEXT = "<|user|>" + "Some shared words come first in this request. " * 6


@pytest.fixture(scope="module")
def native(checkpoint_root: Path) -> Path:
    return build_checkpoint("phi4mm_lora", checkpoint_root)


@pytest.fixture(scope="module")
def published(checkpoint_root: Path) -> Path:
    return build_checkpoint("phi4mm_published", checkpoint_root)


@pytest.fixture(scope="module")
def references(native: Path) -> dict[str, ReferenceModel]:
    """The stock model by adapter mode."""
    stock = ReferenceModel(native)
    modes = {mode: merged(stock, native / f"{mode}-lora") for mode in ("vision", "speech")}
    return {"": stock, **modes}


def prompts(make: PromptMaker) -> list[ProcessedPrompt]:
    """Of every mode, twice with sound."""
    end = " What is it?<|end|><|assistant|>"
    return [
        make(TEXT + end),
        make(TEXT + IMAGE + end, picture(1)),
        make(TEXT + AUDIO + end, clip(1, 1.0)),
        make(TEXT + IMAGE + AUDIO + end, picture(1), clip(1, 1.0)),
    ]


@pytest.fixture(params=["native", "published"])
def checkpoint(request: pytest.FixtureRequest) -> Path:
    return request.getfixturevalue(request.param)


@pytest.fixture
def executor(checkpoint: Path) -> Iterator[Any]:
    with running(checkpoint, max_num_tokens=96) as running_one:
        yield running_one


def difference(result: Any, reference: ReferenceModel, prompt: ProcessedPrompt) -> float:
    output, expected = result.result(timeout=60).outputs[0], reference.greedy(prompt, NEW)
    assert output.token_ids == expected.tokens
    return float((output.generation_logits - expected.logits).abs().max())


def test_each_request_is_answered_with_the_adapter_of_its_modalities(
    executor, checkpoint, references
) -> None:
    make = PromptMaker(checkpoint)
    asked = prompts(make)
    assert [prompt.adapter_mode for prompt in asked] == ["", "vision", "speech", "vision"]
    for prompt in asked[1:]:
        plain, adapted = (
            references[mode].greedy(prompt, NEW) for mode in ("", prompt.adapter_mode)
        )
        assert (plain.logits - adapted.logits).abs().max() > 0.5
    for cached in (False, True):
        with held(executor):  # so that modes meet in a step, and prompts are split
            results = [start(executor, prompt, NEW) for prompt in asked]
        for prompt, result in zip(asked, results, strict=True):
            assert difference(result, references[prompt.adapter_mode], prompt) < ROUNDING
            if cached:
                assert result.cached_tokens == len(prompt) - 1
    # The same clip is two items, by its projection; the picture is one.
    runs = assert_idle(executor)["multimodalStats"]["encoderRuns"]
    assert runs == {"image": 1, "audio": 2}


def test_text_in_front_of_media_is_shared_within_a_mode(executor, checkpoint, references) -> None:
    make = PromptMaker(checkpoint)
    first, second = (make(TEXT + IMAGE + words, picture(1)) for words in (" Yes", " No"))
    sound = make(TEXT + AUDIO + " Yes", clip(1, 1.0))
    results = [start(executor, prompt, NEW).result(timeout=60) for prompt in (first, second, sound)]
    cached = [result.cached_tokens for result in results]
    behind_picture = first.items[0].runs[-1].position + first.items[0].runs[-1].length
    assert cached[0] == cached[2] == 0
    assert cached[1] >= behind_picture
    for prompt, result in zip((first, second, sound), results, strict=True):
        assert difference(result, references[prompt.adapter_mode], prompt) < ROUNDING


def test_a_callers_adapter_adds_to_the_models_own(native, references, tmp_path) -> None:
    folder = write_adapter(
        tmp_path / "all", references[""].model, 5, layers=r"^model\.layers\..*o_proj", strength=0.3
    )
    with running(native) as executor:
        mine = executor.load_adapter(str(folder))
        for prompt in prompts(PromptMaker(native)):
            # The last prompt begins like the second one, and would share that much with it.
            executor.reset_reuse_state()
            both = merged(references[prompt.adapter_mode], folder)
            result = start(executor, prompt, NEW, adapter=mine)
            assert difference(result, both, prompt) < ROUNDING
            assert result.cached_tokens == 0
            alone = start(executor, prompt, NEW)
            assert difference(alone, references[prompt.adapter_mode], prompt) < ROUNDING
            assert alone.cached_tokens == 0
            again = start(executor, prompt, NEW, adapter=mine)
            assert difference(again, both, prompt) < ROUNDING
            assert again.cached_tokens == len(prompt) - 1
