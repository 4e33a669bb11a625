# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""The promise: repeats are right and cheap, and two payloads never share.

Every answer is compared with the unmodified transformers model, every cached length with a
brute-force model of prefixes.
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

from benchmarks.prefix_model import PrefixModel, scope_of, token_keys
from tensorrt_llm.errors import EmbeddingMismatchError, EngineError
from tensorrt_llm.inputs.data import PlaceholderRun, ProcessedPrompt

BLOCK = 32
NEW = 5
IMAGE, AUDIO = "<|image|>", "<|audio|>"


@pytest.fixture(scope="module")
def reference(phi4mm_checkpoint) -> ReferenceModel:
    return ReferenceModel(phi4mm_checkpoint)


@pytest.fixture(scope="module")
def make(phi4mm_checkpoint) -> PromptMaker:
    return PromptMaker(phi4mm_checkpoint)


class Checked:
    """Runs prompts and checks answer, logits and cached length of each."""

    def __init__(self, executor, reference: ReferenceModel) -> None:
        self.executor = executor
        self.reference = reference
        self.cache = PrefixModel(BLOCK)

    def begin(self, prompt: ProcessedPrompt, names, salt=None):
        return prompt, names, salt, start(self.executor, prompt, NEW, cache_salt=salt)

    def finish(self, begun, *, exact: bool = True) -> int:
        prompt, names, salt, result = begun
        answer = result.result().outputs[0]
        expected = self.reference.greedy(prompt, NEW)
        assert answer.token_ids == expected.tokens
        torch.testing.assert_close(answer.generation_logits, expected.logits, atol=1e-4, rtol=0)
        scope = scope_of(prompt, salt)
        longest = self.cache.longest(token_keys(prompt, names), scope)
        assert result.cached_tokens == longest or (not exact and result.cached_tokens < longest)
        self.cache.write(token_keys(prompt, names, answer.token_ids[:-1]), scope)
        return result.cached_tokens

    def __call__(self, prompt: ProcessedPrompt, names=(), salt=None) -> int:
        return self.finish(self.begin(prompt, names, salt))


def family_of_prompts(make: PromptMaker):
    """One prompt text a kind, each with two payloads of equal length, named."""
    ask = "<|user|>Please listen and look closely at what follows here: "
    end = " What is it? Answer in one word.<|end|><|assistant|>"
    clips = {name: clip(seed, 2.0) for name, seed in (("clip a", 1), ("clip b", 2))}
    pictures = {name: picture(seed) for name, seed in (("image a", 1), ("image b", 2))}
    prompts = []
    for name, data in clips.items():
        prompts.append((make(ask + AUDIO + end, data), (f"{name} speech",)))
    for name, data in pictures.items():
        prompts.append((make(ask + IMAGE + end, data), (name,)))
    for image_name, clip_name in (
        ("image a", "clip a"),
        ("image a", "clip b"),
        ("image b", "clip a"),
    ):
        prompt = make(ask + IMAGE + " and " + AUDIO + end, pictures[image_name], clips[clip_name])
        prompts.append((prompt, (image_name, f"{clip_name} vision")))
    two = make(ask + AUDIO + " then " + AUDIO + end, clips["clip a"], clip(3, 3.1))
    prompts.append((two, ("clip a speech", "clip c speech")))
    two = make(ask + IMAGE + " then " + IMAGE + end, pictures["image a"], picture(4, 300, 90))
    prompts.append((two, ("image a", "image c")))
    return prompts


def test_the_payloads_are_told_apart_by_the_model_and_not_by_their_tokens(make, reference) -> None:
    """Otherwise nothing below would show anything."""
    prompts = family_of_prompts(make)
    for one, other in ((0, 1), (2, 3), (4, 5), (4, 6)):
        first, second = prompts[one][0], prompts[other][0]
        assert np.array_equal(first.token_ids, second.token_ids)
        difference = reference.greedy(first, 1).logits - reference.greedy(second, 1).logits
        assert float(difference.abs().max()) > 0.05


@pytest.mark.parametrize("chunk", [7, 33, 8192])
def test_equal_payloads_share_and_different_ones_never_do(
    phi4mm_checkpoint, make, reference, chunk
) -> None:
    prompts = family_of_prompts(make)
    with running(phi4mm_checkpoint, max_num_tokens=chunk) as executor:
        checked = Checked(executor, reference)
        cold = [checked(*entry) for entry in prompts]
        for prompt, names in reversed(prompts):
            # The twin: every repeat shares all whole blocks but the last token.
            assert checked(prompt, names) == len(prompt) - 1
        first_rows = [prompt.items[0].runs[0].position for prompt, _ in prompts]
        for other in (1, 3):
            assert cold[other] <= first_rows[other]
        assert_idle(executor)


@pytest.mark.parametrize("chunk", [7, 33, 8192])
def test_two_requests_interleaved(phi4mm_checkpoint, make, reference, chunk) -> None:
    prompts = family_of_prompts(make)
    pairs = [(0, 1), (2, 3), (4, 5), (6, 4), (1, 3), (7, 8)]
    with running(phi4mm_checkpoint, max_num_tokens=chunk) as executor:
        checked = Checked(executor, reference)
        for one, other in [*pairs, *pairs]:
            begun = [checked.begin(*prompts[one]), checked.begin(*prompts[other])]
            for request in begun:
                # Which of the two commits a shared head first is open, so less may be found.
                checked.finish(request, exact=False)
        # Once both are done, all of it is there.
        for prompt, names in prompts:
            assert checked(prompt, names) == len(prompt) - 1


def test_reuse_off_gives_the_same_answers(phi4mm_checkpoint, make, reference) -> None:
    with running(phi4mm_checkpoint, block_reuse=False) as executor:
        for prompt, _ in family_of_prompts(make) * 2:
            result = start(executor, prompt, NEW).result()
            assert result.cached_tokens == 0
            assert result.outputs[0].token_ids == reference.greedy(prompt, NEW).tokens


def test_token_only_keys_would_give_another_items_answer(
    phi4mm_checkpoint, make, reference
) -> None:
    """The control: with the media taken out of the key, the checks above do fail."""
    (prompt_a, _), (prompt_b, _) = family_of_prompts(make)[2:4]
    same_identity = prompt_a.items[0].identity
    forged = dataclasses.replace(
        prompt_b, items=(dataclasses.replace(prompt_b.items[0], identity=same_identity),)
    )
    with running(phi4mm_checkpoint) as executor:
        start(executor, prompt_a, NEW).result()
        wrong = start(executor, forged, NEW).result()
        assert wrong.cached_tokens > prompt_b.items[0].runs[0].position
        logits = wrong.outputs[0].generation_logits - reference.greedy(prompt_b, NEW).logits
        assert float(logits.abs().max()) > 0.05


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


def leave_first_blocks(executor, prompt: ProcessedPrompt, kept: int) -> None:
    """Runs a request block by block and cancels it once ``kept`` blocks are written."""
    cache = executor._engine._kv_cache
    commit = cache.commit

    def commit_then_cancel(requests) -> None:
        commit(requests)
        if requests[0].num_written >= kept * BLOCK:
            executor._engine.cancel(requests[0].request_id)

    cache.commit = commit_then_cancel
    assert start(executor, prompt, 1).result().outputs[0].finish_reason == "cancelled"
    cache.commit = commit


@pytest.mark.parametrize("kept", range(1, 7))
def test_reuse_that_ends_before_inside_and_after_an_item(
    phi4mm_checkpoint, make, reference, kept
) -> None:
    """The first blocks of a prompt are cached, the rest is computed, part of the item with it."""
    text = "<|user|>" + "Look at this picture, it has several things in it; then tell me now: " * 2
    question = make(
        text + IMAGE + " what is in it, what is not, and what could well be in it, if one thinks "
        "of it for a while longer?<|end|><|assistant|>",
        picture(1, 300, 200),
    )
    run = question.items[0].runs[0]
    assert BLOCK < run.position < 2 * BLOCK and 5 * BLOCK < run.position + run.length < 6 * BLOCK
    with running(phi4mm_checkpoint, max_num_tokens=BLOCK) as executor:
        leave_first_blocks(executor, question, kept)
        result = start(executor, question, NEW).result()
        assert result.cached_tokens == kept * BLOCK
        expected = reference.greedy(question, NEW)
        assert result.outputs[0].token_ids == expected.tokens
        torch.testing.assert_close(
            result.outputs[0].generation_logits, expected.logits, atol=1e-4, rtol=0
        )
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
