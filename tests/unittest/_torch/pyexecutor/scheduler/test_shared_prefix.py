# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""What prompts have in common, against a comparison token by token."""

from __future__ import annotations

import random

import numpy as np

from benchmarks.prefix_model import scope_of, token_keys
from tensorrt_llm._torch.pyexecutor.scheduler.shared_prefix import PrefixIndex, PromptContent
from tensorrt_llm.inputs.data import Digest, PlaceholderRun, ProcessedItem, ProcessedPrompt

BLOCK = 4


def item(identity: int | None, *runs: tuple[int, int]) -> ProcessedItem:
    digest = None if identity is None else Digest(identity.to_bytes(32, "big"))
    return ProcessedItem("image", digest, tuple(PlaceholderRun(*run) for run in runs), {})


def prompt(tokens, *items: ProcessedItem, mode: str = "") -> ProcessedPrompt:
    return ProcessedPrompt(np.asarray(tokens, np.int32), tuple(items), adapter_mode=mode)


def content(one: ProcessedPrompt, salt: str | None = None) -> PromptContent:
    return PromptContent.of(one, salt, BLOCK)


def common(one: ProcessedPrompt, other: ProcessedPrompt, salts=(None, None)) -> int:
    """As the index tells it: -1 if it would not name the other at all."""
    index: PrefixIndex[str] = PrefixIndex()
    index.add("other", content(other, salts[1]))
    found = dict(index.nearest(content(one, salts[0])))
    return found.get("other", -1)


def test_text_is_compared_to_the_end_of_the_first_block_that_differs() -> None:
    text = list(range(10))
    assert common(prompt(text), prompt(text)) == 10
    assert common(prompt(text), prompt([*text[:9], 77])) == 9
    assert common(prompt(text), prompt([*text[:6], 77, *text[7:]])) == 6
    assert common(prompt(text), prompt([77, *text[1:]])) == 0
    assert common(prompt(text[:3]), prompt(text)) == 3


def test_scope_is_compared_first() -> None:
    text = list(range(10))
    assert common(prompt(text), prompt(text), ("a", "a")) == 10
    assert common(prompt(text), prompt(text), ("a", "b")) == -1
    assert common(prompt(text), prompt(text), ("a", None)) == -1
    assert common(prompt(text, mode="speech"), prompt(text, mode="vision")) == -1
    # A salt cannot spell a mode.
    assert common(prompt(text, mode="x"), prompt(text), (None, "x")) == -1


def test_media_is_compared_by_identity_row_and_place_never_by_token() -> None:
    text = [7] * 12
    base = prompt(text, item(1, (5, 4)))
    assert common(base, prompt(text, item(1, (5, 4)))) == 12
    assert common(base, prompt(text, item(2, (5, 4)))) == 5
    assert common(base, prompt(text)) == 5
    assert common(base, prompt(text, item(1, (6, 4)))) <= 5
    assert common(base, prompt(text, item(1, (2, 1), (5, 4)))) == 2
    later = prompt(text, item(1, (0, 0), (5, 4)))
    assert common(base, later) == 12, "a run of no rows changes nothing"
    shifted = prompt(text, item(1, (4, 5)))
    assert common(base, shifted) == 4


def test_nothing_is_shared_from_the_block_of_an_unknown_item_on() -> None:
    text = list(range(12))
    unknown = prompt(text, item(None, (6, 2)))
    assert common(unknown, prompt(text)) == 4
    assert common(unknown, prompt(text, item(None, (6, 2)))) == 4


def test_the_newest_come_first_and_only_so_many_are_compared() -> None:
    index: PrefixIndex[int] = PrefixIndex()
    one = content(prompt(range(9)))
    for number in range(40):
        index.add(number, one)
    assert [number for number, _ in index.nearest(one)] == list(range(39, 23, -1))
    for number in range(40):
        index.remove(number)
        index.remove(number)
    assert list(index.nearest(one)) == [] and len(index) == 0


def test_random_prompts_agree_with_a_comparison_token_by_token() -> None:
    seed = random.randrange(2**32)
    rng = random.Random(seed)

    def draw() -> tuple[ProcessedPrompt, list, tuple]:
        length = rng.randint(1, 14)
        tokens = [7 + (rng.random() < 0.02) for _ in range(length)]
        items, names, position = [], [], rng.choice([2, 3, 20])
        while position < length and len(items) < 3:
            size = min(rng.choice([3, 5]), length - position)
            names.append(rng.randrange(2))
            items.append(item(names[-1] + 1, (position, size)))
            position += size + rng.randrange(2)
        one = prompt(tokens, *items, mode=rng.choice(["", "vision"]))
        return one, token_keys(one, tuple(map(str, names))), scope_of(one, None)

    seen = 0
    for _ in range(10_000):
        (one, keys, scope), (other, other_keys, other_scope) = draw(), draw()
        longest = 0
        if scope == other_scope:
            pairs = zip(keys, other_keys, strict=False)
            longest = next(
                (n for n, (a, b) in enumerate(pairs) if a != b), min(map(len, (keys, other_keys)))
            )
        told = max(0, common(one, other))
        # Split runs of equal rows are told apart by a block's key, so less may be told.
        assert told <= longest, seed
        assert told >= longest // BLOCK * BLOCK or told % BLOCK or one.items, seed
        seen += told > BLOCK
    assert seen > 100
