# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tensorrt_llm.errors import ConfigurationError, MediaError
from tensorrt_llm.inputs.data import Digest
from tensorrt_llm.inputs.media_memo import MediaMemo, MemoKey

RAW = bytes(range(256)) * 100
OPTIONS = {"options": {"frame": 0, "color": (1, 2, 3)}, "limits": {"max_pixels": 100}}


def test_everything_that_decides_the_outcome_is_in_the_key():
    key = MediaMemo.key("image", RAW, OPTIONS)
    reordered = {"limits": {"max_pixels": 100}, "options": {"color": [1, 2, 3], "frame": 0}}
    for same in (RAW, bytearray(RAW), memoryview(RAW)):
        assert MediaMemo.key("image", same, reordered) == key
    misses = [
        MediaMemo.key("audio", RAW, OPTIONS),
        MediaMemo.key("image", RAW[:-1], OPTIONS),
        MediaMemo.key("image", RAW[:-1] + b"\0", OPTIONS),
        MediaMemo.key("image", RAW, {**OPTIONS, "options": {"frame": 1, "color": (1, 2, 3)}}),
        MediaMemo.key("image", RAW, {**OPTIONS, "limits": {"max_pixels": 101}}),
        MediaMemo.key("image", RAW, OPTIONS, form="base64"),
        MediaMemo.key("image", RAW, OPTIONS, scope="tenant"),
        MediaMemo.key("image", RAW, OPTIONS, scope=""),
    ]
    assert len({key, *misses}) == len(misses) + 1


def test_item_keys_tell_digest_context_and_scope_apart():
    digest = Digest(bytes(32))
    keys = [
        MediaMemo.item_key(digest, {"crops": 4}, ["image"]),
        MediaMemo.item_key(digest, {"crops": 5}, ["image"]),
        MediaMemo.item_key(digest, {"crops": 4}, ["audio", "image"]),
        MediaMemo.item_key(digest, {"crops": 4}, ["image"], scope="tenant"),
        MediaMemo.item_key(Digest(bytes([1] * 32)), {"crops": 4}, ["image"]),
    ]
    assert len(set(keys)) == len(keys)
    assert MediaMemo.item_key(digest, {"crops": np.int64(4)}, ("image",)) == keys[0]


def test_what_is_remembered_is_found():
    memo = MediaMemo()
    key, digest = MediaMemo.key("image", RAW, {}), Digest(bytes(32))
    assert memo.payload_digest(key) is None
    memo.remember_payload(key, digest)
    assert memo.payload_digest(key) == digest
    assert (memo.stats.hits, memo.stats.misses, memo.stats.entries) == (1, 1, 1)
    memo.clear()
    assert memo.payload_digest(key) is None
    assert memo.stats.bytes == 0


def test_options_without_canonical_form_are_refused():
    with pytest.raises(MediaError, match="no canonical form"):
        MediaMemo.key("image", RAW, {"x": object()})


def test_nothing_is_kept_without_room():
    memo = MediaMemo(0)
    memo.remember_payload(MediaMemo.key("image", RAW, {}), Digest(bytes(32)))
    assert memo.stats.entries == memo.stats.bytes == 0
    with pytest.raises(ConfigurationError, match="not -1"):
        MediaMemo(-1)


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from("gp"), st.integers(0, 9), st.integers(0, 2000)), max_size=60)
)
def test_it_is_an_lru_bounded_in_bytes(steps):
    """Against a list in order of use."""
    bound, memo = 5000, MediaMemo(5000)
    model: list[tuple[int, int, int]] = []  # (number, value, size), last used last
    for step, (action, number, nbytes) in enumerate(steps):
        key = MemoKey(bytes([number]))
        found = next((entry for entry in model if entry[0] == number), None)
        if action == "g":
            assert memo.get(key) == (None if found is None else found[1])
            if found is not None:
                model.remove(found)
                model.append(found)
            continue
        memo.put(key, step, nbytes)
        if found is not None:
            model.remove(found)
        model.append((number, step, nbytes + 400))
        while sum(entry[2] for entry in model) > bound:
            model.pop(0)
        assert memo.stats.bytes == sum(entry[2] for entry in model) <= bound
        assert memo.stats.entries == len(model)


def test_many_threads_may_use_it():
    memo = MediaMemo(50_000)
    wrong = []

    def work(seed: int) -> None:
        for number in np.random.default_rng(seed).integers(0, 50, 2000):
            key = MemoKey(bytes([number]))
            value = memo.get(key)
            if value not in (None, number):
                wrong.append((number, value))
            memo.put(key, number, 1000)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert memo.stats.bytes == memo.stats.entries * 1400 <= 50_000
