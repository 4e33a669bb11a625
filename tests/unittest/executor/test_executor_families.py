# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""The promise, for every family: repeats are right and cheap, and two payloads never share.

Every answer is compared with the unmodified transformers model, every cached length with a
brute-force model of prefixes.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.engine import assert_idle, held, running, start, text_prompt
from support.families import Family, SharingPrompts, sharing_prompts
from support.media import clip, film, picture
from support.prompts import PromptMaker
from support.reference import ReferenceModel, assert_same_logits

from benchmarks.prefix_model import PrefixModel, scope_of, token_keys
from tensorrt_llm.inputs.data import ProcessedPrompt

BLOCK = 32
NEW = 5
CHUNKS = (7, 33, 256, 8192)


@pytest.fixture(scope="module")
def reference(family_checkpoint: Path) -> ReferenceModel:
    return ReferenceModel(family_checkpoint)


@pytest.fixture(scope="module")
def make(family_checkpoint: Path) -> PromptMaker:
    return PromptMaker(family_checkpoint)


@pytest.fixture(scope="module")
def asked(family: Family, make: PromptMaker) -> SharingPrompts:
    return sharing_prompts(family, make)


@pytest.fixture(params=CHUNKS)
def step(request: pytest.FixtureRequest, family: Family) -> int:
    """Most tokens of a step: a few of a prompt, or beside an item that must run whole."""
    return int(request.param) + family.whole_rows


class Checked:
    """Runs prompts and checks answer, logits and cached length of each."""

    def __init__(self, executor: Any, reference: ReferenceModel) -> None:
        self.executor = executor
        self.reference = reference
        self.cache = PrefixModel(BLOCK)

    def begin(self, prompt: ProcessedPrompt, names: tuple[str, ...] = ()) -> Any:
        return prompt, names, start(self.executor, prompt, NEW)

    def finish(self, begun: Any, *, exact: bool = True) -> int:
        prompt, names, result = begun
        answer = result.result().outputs[0]
        expected = self.reference.greedy(prompt, NEW)
        assert answer.token_ids == expected.tokens
        assert_same_logits(answer.generation_logits, expected.logits)
        scope = scope_of(prompt)
        longest = self.cache.longest(token_keys(prompt, names), scope)
        assert result.cached_tokens == longest or (not exact and result.cached_tokens < longest)
        self.cache.write(token_keys(prompt, names, answer.token_ids[:-1]), scope)
        return result.cached_tokens

    def __call__(self, prompt: ProcessedPrompt, names: tuple[str, ...] = ()) -> int:
        return self.finish(self.begin(prompt, names))


def test_the_payloads_are_told_apart_by_the_model_and_not_by_their_tokens(
    asked: SharingPrompts, reference: ReferenceModel
) -> None:
    """Otherwise nothing below would show anything."""
    for one, other in asked.twins:
        first, second = asked.prompts[one][0], asked.prompts[other][0]
        assert np.array_equal(first.token_ids, second.token_ids)
        difference = (
            reference.greedy(first, NEW).logits[0] - reference.greedy(second, NEW).logits[0]
        )
        assert float(difference.abs().max()) > 0.05


def test_equal_payloads_share_and_different_ones_never_do(
    family_checkpoint: Path, asked: SharingPrompts, reference: ReferenceModel, step: int
) -> None:
    with running(family_checkpoint, max_num_tokens=step) as executor:
        checked = Checked(executor, reference)
        cold = [checked(*entry) for entry in asked.prompts]
        for prompt, names in reversed(asked.prompts):
            # The twin: every repeat shares all but the last token.
            assert checked(prompt, names) == len(prompt) - 1
        for _, other in asked.twins:
            prompt = asked.prompts[other][0]
            last = prompt.items[-1].runs[0].position
            assert cold[other] <= last
        for other, _ in asked.siblings:
            # Two items, of which the first was seen: all of it is shared, nothing of the second.
            first, second = (item.runs for item in asked.prompts[other][0].items)
            assert first[-1].position + first[-1].length <= cold[other] <= second[0].position
        assert_idle(executor)


def test_two_requests_interleaved(
    family_checkpoint: Path, asked: SharingPrompts, reference: ReferenceModel, step: int
) -> None:
    with running(family_checkpoint, max_num_tokens=step) as executor:
        checked = Checked(executor, reference)
        for one, other in [*asked.twins, *asked.siblings] * 2:
            begun = [checked.begin(*asked.prompts[one]), checked.begin(*asked.prompts[other])]
            for request in begun:
                # Which of the two commits a shared head first is open, so less may be found.
                checked.finish(request, exact=False)
        # Once both are done, all of it is there.
        for prompt, names in asked.prompts:
            assert checked(prompt, names) == len(prompt) - 1


def test_eight_requests_at_once(
    family: Family, family_checkpoint: Path, asked: SharingPrompts, reference: ReferenceModel
) -> None:
    """Two of each at least: some are computed beside others, some wait for an equal beginning."""
    eight = [entry for entry in asked.prompts * 3][:8]
    with running(family_checkpoint, max_num_tokens=33 + family.whole_rows) as executor:
        checked = Checked(executor, reference)
        with held(executor):
            begun = [checked.begin(*entry) for entry in eight]
        for request in begun:
            checked.finish(request, exact=False)
        assert_idle(executor)


def test_reuse_off_gives_the_same_answers(
    family_checkpoint: Path, asked: SharingPrompts, reference: ReferenceModel
) -> None:
    with running(family_checkpoint, block_reuse=False) as executor:
        for prompt, _ in asked.prompts * 2:
            result = start(executor, prompt, NEW).result()
            assert result.cached_tokens == 0
            assert result.outputs[0].token_ids == reference.greedy(prompt, NEW).tokens


def test_token_only_keys_would_give_another_items_answer(
    family_checkpoint: Path, asked: SharingPrompts, reference: ReferenceModel
) -> None:
    """The control: with the media taken out of the key, the checks above do fail."""
    one, other = asked.twins[0]
    prompt_a, prompt_b = asked.prompts[one][0], asked.prompts[other][0]
    same_identity = prompt_a.items[0].identity
    forged = dataclasses.replace(
        prompt_b, items=(dataclasses.replace(prompt_b.items[0], identity=same_identity),)
    )
    with running(family_checkpoint) as executor:
        start(executor, prompt_a, NEW).result()
        wrong = start(executor, forged, NEW).result()
        assert wrong.cached_tokens > prompt_b.items[0].runs[0].position
        logits = wrong.outputs[0].generation_logits - reference.greedy(prompt_b, NEW).logits
        assert float(logits.abs().max()) > 0.05


def leave_first_blocks(executor: Any, prompt: ProcessedPrompt, kept: int, salt: str) -> None:
    """Runs a request, has ``kept`` blocks of it committed and cancels it."""
    cache = executor._engine._kv_cache
    commit = cache.commit

    def commit_then_cancel(requests: Any) -> None:
        request = requests[0]
        request.num_written = min(request.num_written, kept * BLOCK)
        commit(requests)
        if request.num_written == kept * BLOCK:
            executor._engine.cancel(request.request_id)

    cache.commit = commit_then_cancel
    result = start(executor, prompt, 1, cache_salt=salt).result()
    assert result.outputs[0].finish_reason == "cancelled"
    cache.commit = commit


def test_reuse_that_ends_before_inside_and_after_an_item(
    family: Family, family_checkpoint: Path, make: PromptMaker, reference: ReferenceModel
) -> None:
    """The first blocks of a prompt are cached, the rest is computed, part of the item with it."""
    before = "Look at this or listen to it, it has several things in it; then tell me now: " * 2
    after = (
        " what is in it, what is not, and what could well be in it, if one thinks of it for a "
        "while longer, and then for another while, and then once more?"
    )
    payloads = {
        "image": picture(1, 300, 200),
        "audio": clip(1, 5.0),
        "video": film(1, 8, sound=clip(8, 4.5)),
    }
    with running(family_checkpoint, max_num_tokens=BLOCK + family.whole_rows) as executor:
        for modality in family.modalities:
            question = family.prompt(make, before, payloads[modality], after)
            expected = reference.greedy(question, NEW)
            runs = question.items[0].runs
            first, behind = runs[0].position, runs[-1].position + runs[-1].length
            ends = set()
            for kept in range(1, (len(question) - 1) // BLOCK + 1):
                salt = f"{modality} {kept}"
                leave_first_blocks(executor, question, kept, salt)
                result = start(executor, question, NEW, cache_salt=salt).result()
                assert result.cached_tokens == kept * BLOCK
                assert result.outputs[0].token_ids == expected.tokens
                assert_same_logits(result.outputs[0].generation_logits, expected.logits)
                end = kept * BLOCK
                ends.add("before" if end <= first else "inside" if end < behind else "after")
            assert ends == {"before", "inside", "after"}
        assert_idle(executor)


def beginning_at(
    family: Family, make: PromptMaker, media: Any, offset: int, question: str
) -> ProcessedPrompt:
    """A prompt whose item's rows begin ``offset`` tokens behind the beginning of a block."""
    for words in range(2 * BLOCK):
        prompt = family.prompt(make, "Look, listen" + " a" * words + ": ", media, question)
        if prompt.items[0].runs[0].position % BLOCK == offset:
            return prompt
    raise AssertionError(f"no number of words puts the item at offset {offset}")


@pytest.mark.parametrize("offset", [0, 1, BLOCK - 1])
def test_a_span_whose_tail_was_evicted(
    family: Family,
    family_checkpoint: Path,
    make: PromptMaker,
    reference: ReferenceModel,
    offset: int,
) -> None:
    """Case C11: other prompts push the end of an item out; what is left of it is used rightly."""
    media = picture(1, 400, 260) if "image" in family.modalities else clip(1, 3.5)
    asked = [
        beginning_at(family, make, media, offset, question)
        for question in (" Name the colours from top to bottom.", " How many are there, or were?")
    ]
    runs = asked[0].items[0].runs
    first, behind = runs[0].position, runs[-1].position + runs[-1].length
    blocks = -(-len(asked[0]) // BLOCK)
    # Room for the prompt and for as much again.
    pool = 2 * blocks + 2
    found = []
    with running(family_checkpoint, kv_max_tokens=pool * BLOCK) as executor:
        for turn, evicted in enumerate(range(1, blocks + 1)):
            salt = f"{turn}"
            start(executor, asked[0], NEW, cache_salt=salt).result()
            # Leaves go first, so of the prompt its end.
            filler = text_prompt([5 + turn] * ((pool - blocks + evicted - 1) * BLOCK))
            start(executor, filler, 1, cache_salt=f"filler {turn}").result()
            question = asked[turn % 2]
            result = start(executor, question, NEW, cache_salt=salt).result()
            expected = reference.greedy(question, NEW)
            assert result.outputs[0].token_ids == expected.tokens
            assert_same_logits(result.outputs[0].generation_logits, expected.logits)
            assert result.cached_tokens < len(question)
            found.append(result.cached_tokens)
        assert_idle(executor)
    inside = [cached for cached in found if first < cached < behind]
    block_ends = sum(position % BLOCK == 0 for position in range(first + 1, behind))
    assert len(inside) >= min(2, block_ends) > 0, f"no pressure: {found} of rows {first}..{behind}"
    assert min(found) <= first + 1, "in the end nothing of the item is left"


def test_text_only_requests_run_beside_media(
    family: Family,
    family_checkpoint: Path,
    make: PromptMaker,
    reference: ReferenceModel,
    step: int,
) -> None:
    media = picture(5) if "image" in family.modalities else clip(5)
    prompts = [
        make("Just some words."),
        family.prompt(make, "And this: ", media, " what is it?"),
        make("More words, many more than before."),
    ]
    with running(family_checkpoint, max_num_tokens=step) as executor:
        checked = Checked(executor, reference)
        begun = [checked.begin(prompt, ("media",) * len(prompt.items)) for prompt in prompts]
        for request in begun:
            checked.finish(request, exact=False)
