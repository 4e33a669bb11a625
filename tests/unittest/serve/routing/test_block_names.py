# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Names against the vectors of docs/kv-cache.md, and against another reading of that page."""

from __future__ import annotations

import random

import numpy as np
import pytest
from support.block_names import block_names

from tensorrt_llm.executor.request import AdapterIdentity
from tensorrt_llm.inputs.data import Digest, PlaceholderRun, ProcessedItem, ProcessedPrompt
from tensorrt_llm.serve.routing.block_names import NameScope, prompt_names


def prompt(choose: random.Random, length: int, known: bool = True) -> ProcessedPrompt:
    """Random tokens, with up to three items of up to three runs each."""
    items, position = [], choose.randrange(4)
    for number in range(choose.randrange(4)):
        runs = []
        for _ in range(choose.randrange(1, 4)):
            run = PlaceholderRun(position, choose.randrange(1, 9))
            if run.position + run.length > length:
                break
            runs.append(run)
            position += run.length + choose.randrange(1, 5)
        if runs:
            identity = Digest(bytes([number + 1]) * 32) if known else None
            items.append(ProcessedItem("image", identity, tuple(runs), {}))
    ids = np.array([choose.randrange(1000) for _ in range(length)], np.int32)
    return ProcessedPrompt(ids, tuple(items), adapter_mode=choose.choice(["", "vision"]))


def rendered(one: ProcessedPrompt, size: int, salt: str | None) -> dict:
    runs = [[{"offset": r.position, "length": r.length} for r in item.runs] for item in one.items]
    hashes = [item.identity.hex() for item in one.items if item.identity is not None]
    return {
        "token_ids": one.token_ids.tolist(),
        "tokens_per_block": size,
        "cache_salt": salt,
        "adapter_mode": one.adapter_mode,
        "features": {"mm_hashes": {"image": hashes}, "mm_runs": {"image": runs}},
    }


def test_the_vectors_of_the_layout() -> None:
    root = NameScope().name()
    assert root.hex() == "1ae0f812009a9da8a4d1671dd652198760c2e5fe0e29d3e3a2ac3c9e161ef200"
    other = NameScope("tenant", AdapterIdentity(3, 1), "speech").name()
    assert other.hex() == "8ffffc738d8b670044eabc4c05286663d1d9698d8794d18666e1125c90f9431d"
    plain = ProcessedPrompt(np.array([1, 2, 3, 4, 9], np.int32))
    (name,) = prompt_names(plain, 4, NameScope())
    assert name.hex() == "6259850602e32732694ebd3538f26bbaceb936e4fa2c86b02c94cbe8a428c3fa"


@pytest.mark.parametrize("seed", range(20))
def test_another_reading_of_the_layout_gives_the_same_names(seed: int) -> None:
    choose = random.Random(seed)
    one, size = prompt(choose, choose.randrange(70)), choose.choice([4, 16])
    salt = choose.choice([None, "", "a tenant"])
    names = prompt_names(one, size, NameScope(salt, None, one.adapter_mode))
    assert [name.hex() for name in names] == block_names(rendered(one, size, salt))


def test_nothing_is_named_from_an_item_without_identity_on() -> None:
    run = (PlaceholderRun(10, 3),)
    ids = np.arange(24, dtype=np.int32)
    unknown = ProcessedPrompt(ids, (ProcessedItem("image", None, run, {}),))
    known = ProcessedPrompt(ids, (ProcessedItem("image", Digest(bytes(32)), run, {}),))
    assert len(prompt_names(unknown, 4, NameScope())) == 2
    assert len(prompt_names(known, 4, NameScope())) == 6


def test_what_separates_prompts_separates_names() -> None:
    one = ProcessedPrompt(np.arange(8, dtype=np.int32))
    scopes = [
        NameScope(),
        NameScope("a"),
        NameScope("b"),
        NameScope(None, AdapterIdentity(0, 0)),
        NameScope(None, None, "vision"),
    ]
    names = [tuple(prompt_names(one, 4, scope)) for scope in scopes]
    assert len(set(names)) == len(scopes)
    again = ProcessedPrompt(np.arange(8, dtype=np.int32))
    assert [tuple(prompt_names(again, 4, scope)) for scope in scopes] == names
    assert prompt_names(one, 4, NameScope("")) == prompt_names(one, 4, NameScope(None))
