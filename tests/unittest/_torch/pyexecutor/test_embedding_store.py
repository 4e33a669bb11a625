# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""The embedding store against a slow obvious model, and its near-misses."""

from __future__ import annotations

import random

import pytest
import torch

from tensorrt_llm._torch.pyexecutor.embedding_store import EmbeddingKey, EmbeddingStore
from tensorrt_llm.errors import EmbeddingMismatchError
from tensorrt_llm.inputs.data import Digest

ROW_BYTES = 16  # 4 float32 columns


def key(number: int, salt: str | None = None) -> EmbeddingKey:
    return EmbeddingKey(Digest(number.to_bytes(32, "big")), salt)


def rows(count: int, fill: float = 0.0) -> torch.Tensor:
    return torch.full((count, 4), fill)


def test_rows_come_back_for_the_same_identity_and_salt_only() -> None:
    store = EmbeddingStore(1000)
    assert store.insert(key(1, "a"), rows(3, 7.0))
    store.release(key(1, "a"))
    found = store.acquire(key(1, "a"), 3, "image")
    assert found is not None and torch.equal(found, rows(3, 7.0))
    for other in (key(2, "a"), key(1, "b"), key(1), key(1, "")):
        assert store.acquire(other, 3, "image") is None


def test_another_number_of_rows_is_an_error_and_pins_nothing() -> None:
    store = EmbeddingStore(1000)
    store.insert(key(1), rows(3))
    store.release(key(1))
    with pytest.raises(EmbeddingMismatchError, match=r"3 rows .* run of 4 tokens"):
        store.acquire(key(1), 4, "image")
    assert store.stats().pinned_count == 0


def test_pinned_rows_are_never_evicted_and_idle_ones_go_oldest_first() -> None:
    store = EmbeddingStore(3 * ROW_BYTES)
    for number in (1, 2, 3):
        assert store.insert(key(number), rows(1))
    store.release(key(2))
    store.release(key(3))
    assert store.acquire(key(2), 1, "image") is not None
    store.release(key(2))  # 2 is now more recent than 3
    assert store.insert(key(4), rows(1))
    assert store.acquire(key(3), 1, "image") is None, "the oldest idle entry had to go"
    assert store.acquire(key(2), 1, "image") is not None
    assert store.acquire(key(1), 1, "image") is not None, "pinned since it was inserted"
    assert store.stats().evictions == 1


def test_rows_that_do_not_fit_beside_pinned_ones_are_left_to_the_caller() -> None:
    store = EmbeddingStore(3 * ROW_BYTES)
    assert store.insert(key(1), rows(2))
    assert not store.insert(key(2), rows(2))
    assert store.stats().rejected == 1
    store.release(key(1))
    assert store.insert(key(2), rows(2)), "room once the first is idle"
    assert store.stats().current_bytes == 2 * ROW_BYTES


def test_zero_bytes_store_nothing() -> None:
    store = EmbeddingStore(0)
    assert not store.insert(key(1), rows(1))
    assert store.acquire(key(1), 1, "image") is None


def test_release_without_a_pin_is_refused() -> None:
    store = EmbeddingStore(1000)
    with pytest.raises(ValueError, match="without a pin"):
        store.release(key(1))
    store.insert(key(1), rows(1))
    store.release(key(1))
    with pytest.raises(ValueError, match="without a pin"):
        store.release(key(1))


def test_clear_keeps_what_live_requests_need() -> None:
    store = EmbeddingStore(1000)
    store.insert(key(1), rows(1))
    store.insert(key(2), rows(1))
    store.release(key(2))
    assert store.clear() == 1
    assert store.acquire(key(2), 1, "image") is None
    store.release(key(1))
    assert store.acquire(key(1), 1, "image") is not None


def test_random_operations_agree_with_a_list() -> None:
    seed = random.randrange(2**32)
    rng = random.Random(seed)
    limit = 20 * ROW_BYTES
    store = EmbeddingStore(limit)
    model: list[list] = []  # [key, rows, pins], least recent first
    for _ in range(20_000):
        wanted = key(rng.randrange(12))
        entry = next((entry for entry in model if entry[0] == wanted), None)
        size = wanted.identity[-1] % 7 + 1
        if rng.random() < 0.3:
            got = store.acquire(wanted, size, "image")
            assert (got is not None) == (entry is not None), seed
            if entry is not None:
                entry[2] += 1
            elif store.insert(wanted, rows(size)):
                while sum(e[1] for e in model) + size > 20:
                    model.remove(next(e for e in model if e[2] == 0))
                model.append([wanted, size, 1])
            else:
                assert sum(e[1] for e in model if e[2]) + size > 20, seed
        elif entry is not None and entry[2]:
            store.release(wanted)
            entry[2] -= 1
            if entry[2] == 0:
                model.remove(entry)
                model.append(entry)
        stats = store.stats()
        assert stats.current_bytes == ROW_BYTES * sum(e[1] for e in model) <= limit, seed
        assert stats.pinned_count == sum(e[2] > 0 for e in model), seed
    assert store.stats().evictions > 100 and store.stats().rejected > 100, "no pressure"
