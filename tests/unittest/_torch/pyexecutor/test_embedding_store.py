# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""The embedding store against a slow obvious model, and its near-misses."""

from __future__ import annotations

import random

import pytest
import torch

from tensorrt_llm._torch.pyexecutor.embedding_store import EmbeddingKey, EmbeddingStore, Place
from tensorrt_llm.errors import EmbeddingMismatchError
from tensorrt_llm.inputs.data import Digest

ROW_BYTES = 16  # 4 float32 columns


def key(number: int, salt: str | None = None) -> EmbeddingKey:
    return EmbeddingKey(Digest(number.to_bytes(32, "big")), salt)


def rows(count: int, fill: float = 0.0) -> torch.Tensor:
    return torch.full((count, 4), fill)


def put(store: EmbeddingStore, number: int, count: int = 1) -> None:
    """Stores rows that nobody needs any more."""
    store.release(store.insert(key(number), rows(count, float(number)), "image"))


def test_rows_come_back_for_the_same_identity_and_salt_only() -> None:
    store = EmbeddingStore(1000)
    store.release(store.insert(key(1, "a"), rows(3, 7.0), "image"))
    found = store.acquire(key(1, "a"), 3, "image")
    assert found is not None and torch.equal(found.rows, rows(3, 7.0))
    for other in (key(2, "a"), key(1, "b"), key(1), key(1, "")):
        assert store.acquire(other, 3, "image") is None


@pytest.mark.parametrize(("device", "host"), [(1000, 0), (0, 1000)])
def test_another_number_of_rows_is_an_error_and_pins_nothing(device: int, host: int) -> None:
    store = EmbeddingStore(device, host)
    put(store, 1, 3)
    with pytest.raises(EmbeddingMismatchError, match=r"3 rows .* run of 4 tokens"):
        store.acquire(key(1), 4, "image")
    assert store.stats().pinned_count == 0
    assert store.acquire(key(1), 3, "image") is not None


def test_pinned_rows_are_never_evicted_and_idle_ones_go_oldest_first() -> None:
    store = EmbeddingStore(3 * ROW_BYTES)
    pinned = store.insert(key(1), rows(1), "image")
    put(store, 2)
    put(store, 3)
    second = store.acquire(key(2), 1, "image")
    assert second is not None
    store.release(second)  # 2 is now more recent than 3
    store.insert(key(4), rows(1), "image")
    assert store.acquire(key(3), 1, "image") is None, "the oldest idle entry had to go"
    assert store.acquire(key(2), 1, "image") is not None
    assert pinned.place is Place.PINNED
    assert store.stats().evictions == 1


def test_rows_that_do_not_fit_beside_pinned_ones_are_lent_and_go_with_who_needs_them() -> None:
    store = EmbeddingStore(3 * ROW_BYTES)
    first = store.insert(key(1), rows(2), "image")
    second = store.insert(key(2), rows(2), "image")
    assert second.place is Place.LENT
    assert store.acquire(key(2), 2, "image") is second, "shared while it is needed"
    store.release(second)
    store.release(first)
    stats = store.stats()
    assert (stats.rejected, stats.lent_bytes, stats.current_bytes) == (1, 32, 32)
    store.release(second)
    assert store.stats().lent_bytes == 0
    assert store.acquire(key(2), 2, "image") is None
    assert store.insert(key(2), rows(2), "image").place is Place.PINNED, (
        "room once the first is idle"
    )
    assert store.stats().current_bytes == 2 * ROW_BYTES


def test_zero_bytes_keep_nothing_beyond_the_requests_that_need_it() -> None:
    store = EmbeddingStore(0)
    entry = store.insert(key(1), rows(1), "image")
    assert store.acquire(key(1), 1, "image") is entry
    store.release(entry)
    store.release(entry)
    assert store.acquire(key(1), 1, "image") is None
    assert store.stats().current_bytes == store.stats().lent_bytes == 0


def test_what_leaves_the_device_waits_on_the_host_and_comes_back_as_it_was() -> None:
    store = EmbeddingStore(2 * ROW_BYTES, 2 * ROW_BYTES)
    for number in (1, 2, 3, 4):
        put(store, number)
    stats = store.stats()
    assert (stats.item_count, stats.host_item_count, stats.evictions) == (2, 2, 0)
    back = store.acquire(key(1), 1, "image")
    assert back is not None and torch.equal(back.rows, rows(1, 1.0))
    stats = store.stats()
    assert (stats.offloaded, stats.onboarded, stats.evictions) == (3, 1, 0)
    put(store, 5)
    assert store.stats().evictions == 1, "both levels are full"
    assert store.stats().host_bytes == 2 * ROW_BYTES


def test_rows_larger_than_a_level_pass_it_by() -> None:
    store = EmbeddingStore(2 * ROW_BYTES, 4 * ROW_BYTES)
    put(store, 1, 3)
    assert store.stats().host_item_count == 1, "too large for the device's level only"
    put(store, 2, 5)
    assert store.stats().host_item_count == 1
    assert store.acquire(key(2), 5, "image") is None
    lent = store.acquire(key(1), 3, "image")
    assert lent is not None and lent.place is Place.LENT


def test_release_without_a_pin_is_refused() -> None:
    store = EmbeddingStore(1000)
    entry = store.insert(key(1), rows(1), "image")
    store.release(entry)
    with pytest.raises(ValueError, match="without a pin"):
        store.release(entry)
    with pytest.raises(ValueError, match="stored already"):
        store.insert(key(1), rows(1), "image")


def test_a_cleared_store_finds_nothing_and_lets_live_requests_finish() -> None:
    store = EmbeddingStore(2 * ROW_BYTES, 1000)
    for number in (2, 3, 4):
        put(store, number)
    live = store.insert(key(1), rows(1), "image")
    assert store.clear() == 4
    assert store.acquire(key(1), 1, "image") is None, "not even what is needed still"
    again = store.insert(key(1), rows(1), "image")
    assert store.stats().pinned_count == 2
    store.release(live)
    assert store.acquire(key(1), 1, "image") is again
    store.release(again)
    store.release(again)
    stats = store.stats()
    assert (stats.pinned_count, stats.item_count, stats.host_item_count) == (0, 1, 0)


def test_the_items_found_most_often_come_first() -> None:
    store = EmbeddingStore(4 * ROW_BYTES, 8 * ROW_BYTES)
    for number, size in ((1, 1), (2, 2), (3, 3)):  # the third moves the others to the host
        put(store, number, size)
    for number, size, times in ((1, 1, 1), (2, 2, 3)):
        for _ in range(times):
            store.release(store.acquire(key(number), size, "image"))
    held = store.insert(key(4), rows(9), "audio")
    told = store.top(3)
    assert [(one["number"], one["hits"], one["rows"]) for one in told] == [
        (2, 3, 2),
        (1, 1, 1),
        (4, 0, 9),
    ]
    assert told[2] | {"ageSeconds": 0} == {
        **{"number": 4, "modality": "audio", "rows": 9, "bytes": 9 * ROW_BYTES},
        **{"hits": 0, "pins": 1, "place": "lent", "ageSeconds": 0},
        **{"identity": key(4).identity.hex(), "cacheSalt": key(4).cache_salt},
    }
    stats = store.stats()
    everything = store.top(99)
    assert len(everything) == 4 and stats.host_item_count == 1
    assert {one["place"] for one in everything} == {"device", "host", "lent"}
    assert sum(one["hits"] for one in everything) == stats.hits
    store.release(held)
    assert store.clear() == 3 and store.top(9) == []


@pytest.mark.parametrize("host_rows", [0, 9])
def test_random_operations_agree_with_lists(host_rows: int) -> None:
    seed = random.randrange(2**32)
    rng = random.Random(seed)
    store = EmbeddingStore(20 * ROW_BYTES, host_rows * ROW_BYTES)
    pinned: dict[int, list] = {}  # number -> [rows, pins, entry, lent]
    idle: list[tuple[int, int]] = []  # number, rows; least recent first
    host: list[tuple[int, int]] = []

    def to_host(number: int, size: int) -> None:
        if size <= host_rows:
            while sum(entry[1] for entry in host) + size > host_rows:
                host.pop(0)
            host.append((number, size))

    def pin(number: int, size: int, entry) -> None:
        kept = sum(e[0] for e in pinned.values() if not e[3]) + size <= 20
        pinned[number] = [size, 1, entry, not kept]
        while (
            kept and sum(e[0] for e in pinned.values() if not e[3]) + sum(e[1] for e in idle) > 20
        ):
            to_host(*idle.pop(0))

    for _ in range(20_000):
        number = rng.randrange(12)
        size = number % 7 + 1
        there = number in pinned or (number, size) in idle or (number, size) in host
        if rng.random() < 0.4:
            got = store.acquire(key(number), size, "image")
            assert (got is not None) == there, seed
            if number in pinned:
                pinned[number][1] += 1
                continue
            for level in (idle, host):
                if (number, size) in level:
                    level.remove((number, size))
            pin(number, size, got or store.insert(key(number), rows(size, float(number)), "image"))
            assert bool((pinned[number][2].rows == number).all()), seed
        elif number in pinned:
            store.release(pinned[number][2])
            pinned[number][1] -= 1
            if pinned[number][1] == 0:
                lent = pinned.pop(number)[3]
                if lent:
                    to_host(number, size)
                else:
                    idle.append((number, size))
        stats = store.stats()
        kept = sum(e[0] for e in pinned.values() if not e[3]) + sum(e[1] for e in idle)
        assert stats.current_bytes == ROW_BYTES * kept <= 20 * ROW_BYTES, seed
        assert stats.lent_bytes == ROW_BYTES * sum(e[0] for e in pinned.values() if e[3]), seed
        assert stats.host_bytes == ROW_BYTES * sum(e[1] for e in host), seed
        assert stats.pinned_count == len(pinned), seed
    stats = store.stats()
    assert stats.evictions > 100 and stats.rejected > 100, "no pressure"
    assert (stats.offloaded > 100 and stats.onboarded > 100) == (host_rows > 0), "no pressure"


class Unmovable(torch.Tensor):
    """Rows for which the host has no memory."""

    def cpu(self, *_: object) -> torch.Tensor:
        raise RuntimeError("not enough memory")


def test_rows_that_the_host_cannot_take_are_dropped_and_nothing_else() -> None:
    store = EmbeddingStore(2 * ROW_BYTES, 2 * ROW_BYTES)
    put(store, 1)
    put(store, 2)
    put(store, 3)  # moves the first to the host
    assert store.stats().host_item_count == 1
    for number in (2, 3):
        entry = store.acquire(key(number), 1, "image")
        assert entry is not None
        entry.rows = entry.rows.as_subclass(Unmovable)
        store.release(entry)
    put(store, 4, 2)
    stats = store.stats()
    assert (stats.evictions, stats.host_item_count, stats.pinned_count) == (2, 1, 0)
    assert key(1) in store and key(4) in store and key(2) not in store and key(3) not in store
