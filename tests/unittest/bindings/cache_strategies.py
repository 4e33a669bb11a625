# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""What hypothesis draws for the cache machine: settings, prompts and retention."""

from __future__ import annotations

from hypothesis import strategies as st

from tensorrt_llm.bindings import KvCacheRetentionConfig, TokenRangeRetentionConfig
from tests.unittest.bindings.cache_checked import Settings
from tests.unittest.bindings.cache_prompts import Item, Prompt, Run, Scope

TEXT = 7
SCOPES = [
    Scope(None, None, 0, ""),
    Scope("a", None, 0, ""),
    Scope(None, 1, 0, ""),
    Scope(None, 1, 1, ""),
    Scope(None, None, 0, "speech"),
]
PRIORITIES = st.integers(0, 100)
DURATIONS = st.none() | st.integers(1, 20)


@st.composite
def settings(draw: st.DrawFn) -> Settings:
    partial, copied = draw(
        st.sampled_from([(False, False), (True, True), (True, True), (True, False)])
    )
    return Settings(
        num_blocks=draw(st.sampled_from([2, 4, 6, 8, 12, 16, 24])),
        tokens_per_block=draw(st.sampled_from([2, 4, 8])),
        reuse=draw(st.sampled_from([True] * 9 + [False])),
        partial=partial,
        copy_on_partial=copied,
        host_blocks=draw(st.sampled_from([0, 0, 3, 20])),
        offload_min_priority=draw(st.sampled_from([0, 35])),
        event_buffer=draw(st.sampled_from([1 << 20] * 4 + [0, 3])),
    )


@st.composite
def prompts(draw: st.DrawFn) -> Prompt:
    length = draw(st.integers(1, 24))
    tokens = [TEXT] * length
    for position in draw(st.lists(st.integers(0, length - 1), max_size=2)):
        tokens[position] = draw(st.integers(TEXT, TEXT + 2))
    items: list[Item] = []
    runs: list[Run] = []
    position = draw(st.integers(0, 12))
    for _ in range(draw(st.integers(0, 3))):
        size = min(draw(st.integers(1, 7)), length - position)
        if size < 1:
            break
        # A run goes on with the item before it, or begins another.
        if not items or draw(st.integers(0, 3)):
            identified = draw(st.sampled_from([True] * 9 + [False]))
            items.append(Item(draw(st.integers(1, 2)), identified))
        runs.append(Run(len(items) - 1, position, size))
        position += size + draw(st.integers(0, 3))
    scope = SCOPES[draw(st.sampled_from([0, 0, 0, 0, 1, 2, 3, 4]))]
    return Prompt(tuple(tokens), scope, tuple(items), tuple(runs))


@st.composite
def retentions(draw: st.DrawFn) -> KvCacheRetentionConfig | None:
    if draw(st.booleans()):
        return None
    middle = draw(st.integers(1, 12))
    end = draw(st.none() | st.integers(middle + 1, 24))
    parts = [
        TokenRangeRetentionConfig(0, middle, draw(PRIORITIES), draw(DURATIONS)),
        TokenRangeRetentionConfig(middle, end, draw(PRIORITIES), draw(DURATIONS)),
    ]
    return KvCacheRetentionConfig(parts, draw(PRIORITIES), draw(DURATIONS))


REQUESTS = st.tuples(prompts(), st.integers(0, 8), retentions())
