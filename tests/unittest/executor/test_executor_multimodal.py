# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Encoder rows, unknown identities and faults of one item; sharing is in test_executor_families.

Every answer is compared with the unmodified transformers model.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch
from support.engine import assert_idle, running, start
from support.media import clip, picture
from support.prompts import PromptMaker
from support.reference import ReferenceModel

from tensorrt_llm.errors import EmbeddingMismatchError, EngineError, QueueFullError
from tensorrt_llm.inputs.data import DeferredInputs, PlaceholderRun, ProcessedPrompt

BLOCK = 32
NEW = 5
IMAGE, AUDIO = "<|image|>", "<|audio|>"


@pytest.fixture(scope="module")
def reference(phi4mm_checkpoint) -> ReferenceModel:
    return ReferenceModel(phi4mm_checkpoint)


@pytest.fixture(scope="module")
def make(phi4mm_checkpoint) -> PromptMaker:
    return PromptMaker(phi4mm_checkpoint)


def test_unknown_identity_shares_only_what_stands_before_it(
    phi4mm_checkpoint, make, reference
) -> None:
    text = "<|user|>" + "Some shared words come first in this request. " * 8
    known = make(text + IMAGE + " What?<|end|><|assistant|>", picture(1))
    unknown = dataclasses.replace(
        known, items=(dataclasses.replace(known.items[0], identity=None),)
    )
    first_row = known.items[0].runs[0].position
    assert first_row > BLOCK
    expected = reference.greedy(known, NEW).tokens
    with running(phi4mm_checkpoint) as executor:
        # The block that holds the first unidentified row is not kept, nor anything behind it.
        before = first_row // BLOCK * BLOCK
        for prompt, cached in ((unknown, 0), (unknown, before), (known, before), (known, None)):
            result = start(executor, prompt, NEW).result()
            if cached is None:
                cached = len(prompt) - 1
            assert result.cached_tokens == cached
            assert result.outputs[0].token_ids == expected
        assert assert_idle(executor)["multimodalStats"]["encoderRuns"]["image"] == 3


def test_an_item_that_no_decoder_is_free_for_is_told_so(phi4mm_checkpoint, make, reference) -> None:
    """A repeat whose rows are gone is decoded late; where that waits too long, it is a 429."""
    known = make("<|user|>" + IMAGE + "?<|end|><|assistant|>", picture(1))

    def busy() -> dict[str, torch.Tensor]:
        raise QueueFullError("every decoder process is busy")

    late = dataclasses.replace(
        known, items=(dataclasses.replace(known.items[0], encoder_inputs=DeferredInputs(busy)),)
    )
    with running(phi4mm_checkpoint) as executor:
        with pytest.raises(QueueFullError, match="busy"):
            start(executor, late, NEW).result(timeout=60)
        answer = start(executor, known, NEW).result(timeout=60)
        assert answer.outputs[0].token_ids == reference.greedy(known, NEW).tokens
        assert answer.cached_tokens == 0
        assert_idle(executor)


def test_a_repeat_runs_no_encoder_and_a_prefix_miss_finds_its_rows(
    phi4mm_checkpoint, make, reference
) -> None:
    question = "<|user|>{}: " + IMAGE + AUDIO + "?<|end|><|assistant|>"
    with running(phi4mm_checkpoint) as executor:
        for n, words in enumerate(["One", "One", "Other words"]):
            prompt = make(question.format(words), picture(1), clip(1))
            result = start(executor, prompt, NEW).result()
            assert result.outputs[0].token_ids == reference.greedy(prompt, NEW).tokens
            assert (result.cached_tokens == len(prompt) - 1) == (n == 1)
        state = assert_idle(executor)["multimodalStats"]
        assert state["encoderRuns"] == {"image": 1, "audio": 1}
        # The repeat starts behind both items or needs rows of the last only; the third needs both.
        assert state["embeddingStore"]["hits"] >= 2


def test_an_item_that_is_cached_whole_is_not_encoded_even_without_a_store(
    phi4mm_checkpoint, make
) -> None:
    prompt = make("<|user|>" + IMAGE + " and many words after it" * 12 + "<|end|>", picture(1))
    item = prompt.items[0].runs[0]
    options = {"multimodal_config": {"encoder_cache_max_bytes": 0}}
    with running(phi4mm_checkpoint, **options) as executor:
        for _ in range(3):
            cached = start(executor, prompt, 1).result().cached_tokens
        assert cached >= item.position + item.length
        assert assert_idle(executor)["multimodalStats"]["encoderRuns"]["image"] == 1


def test_text_before_media_is_shared_within_an_adapter_mode_only(phi4mm_checkpoint, make) -> None:
    text = "<|user|>" + "Some shared words come first in this request. " * 8
    shared = make(text + AUDIO, clip(1)).items[0].runs[0].position
    assert shared >= 2 * BLOCK
    with running(phi4mm_checkpoint) as executor:
        cached = [
            start(executor, prompt, 1).result().cached_tokens
            for prompt in (
                make(text + AUDIO, clip(1)),
                make(text + AUDIO, clip(2)),
                make(text + IMAGE, picture(1)),
                make(text + IMAGE + AUDIO, picture(2), clip(1)),
                make(text + "and no media at all"),
                make(text + "and no media again"),
            )
        ]
    assert cached[:4] == [0, shared, 0, shared]
    assert cached[4] == 0 and cached[5] >= shared


def test_rows_do_not_cross_salts(phi4mm_checkpoint, make) -> None:
    prompt = make("<|user|>" + IMAGE + "<|end|><|assistant|>", picture(1))
    with running(phi4mm_checkpoint) as executor:
        for salt in ("a", "b", None, "a", "b", None):
            start(executor, prompt, 1, cache_salt=salt).result()
        assert assert_idle(executor)["multimodalStats"]["encoderRuns"]["image"] == 3


def test_a_store_of_zero_bytes_encodes_again_and_answers_alike(
    phi4mm_checkpoint, make, reference
) -> None:
    prompt = make("<|user|>" + IMAGE + "<|end|><|assistant|>", picture(1))
    options = {"multimodal_config": {"encoder_cache_max_bytes": 0}, "block_reuse": False}
    with running(phi4mm_checkpoint, max_num_tokens=20, **options) as executor:
        for _ in range(2):
            result = start(executor, prompt, NEW).result()
            assert result.outputs[0].token_ids == reference.greedy(prompt, NEW).tokens
        state = assert_idle(executor)["multimodalStats"]
        assert state["encoderRuns"]["image"] == 2, "once a request, whatever the chunks"
        assert state["embeddingStore"]["currentBytes"] == 0


def test_text_only_requests_run_beside_media(phi4mm_checkpoint, make, reference) -> None:
    prompts = [
        make("<|user|>Just some words.<|end|><|assistant|>"),
        make("<|user|>" + AUDIO + "<|end|><|assistant|>", clip(5)),
        make("<|user|>More words, many more than before.<|end|><|assistant|>"),
    ]
    with running(phi4mm_checkpoint) as executor:
        gate_results = [start(executor, prompt, NEW) for prompt in prompts]
        for prompt, result in zip(prompts, gate_results, strict=True):
            expected = reference.greedy(prompt, NEW).tokens
            assert result.result().outputs[0].token_ids == expected


def test_a_row_mismatch_fails_that_request_alone_and_caches_nothing(
    phi4mm_checkpoint, make, reference
) -> None:
    good = make("<|user|>" + IMAGE + "?<|end|><|assistant|>", picture(1))
    other = make("<|user|>" + IMAGE + "?<|end|><|assistant|>", picture(2))
    rows = good.items[0].num_rows
    short = dataclasses.replace(
        other,
        items=(
            dataclasses.replace(
                other.items[0], runs=(PlaceholderRun(other.items[0].runs[0].position, rows - 1),)
            ),
        ),
    )
    with running(phi4mm_checkpoint) as executor:
        neighbour = start(executor, good, 30)
        with pytest.raises(EmbeddingMismatchError, match=f"{rows} rows .* {rows - 1} tokens"):
            start(executor, short, NEW).result()
        assert neighbour.result().outputs[0].token_ids == reference.greedy(good, 30).tokens
        fresh = make("<|user|>" + IMAGE + "!<|end|><|assistant|>", picture(9))
        assert start(executor, fresh, NEW).result().outputs[0].token_ids == (
            reference.greedy(fresh, NEW).tokens
        )
        assert_idle(executor)


def test_rows_that_are_not_numbers_fail_that_request_alone(phi4mm_checkpoint, make) -> None:
    good = make("<|user|>" + AUDIO + "?<|end|><|assistant|>", clip(1))
    features = dict(good.items[0].encoder_inputs)
    features["audio_input_features"] = features["audio_input_features"] * torch.nan
    bad = dataclasses.replace(
        good,
        items=(dataclasses.replace(good.items[0], encoder_inputs=features, identity=None),),
    )
    with running(phi4mm_checkpoint) as executor:
        with pytest.raises(EngineError, match="not finite"):
            start(executor, bad, NEW).result()
        assert start(executor, good, NEW).result().outputs[0].length == NEW
        assert_idle(executor)


def test_a_generated_placeholder_is_only_a_token(phi4mm_checkpoint, make) -> None:
    """A model may well emit a placeholder id; that makes no media of it."""
    image = int(make.processor.placeholder_token_id("image"))
    plain = ProcessedPrompt(np.asarray([10, image, 11, image, 12] * 20, np.int32))
    with running(phi4mm_checkpoint, max_num_tokens=30) as executor:
        cached = [start(executor, plain, NEW).result().cached_tokens for _ in range(2)]
    assert cached == [0, 99]
