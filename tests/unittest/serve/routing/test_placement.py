# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Where requests go: to what they share, unless that is busy, and evenly where nothing is known."""

from __future__ import annotations

import random
from collections import Counter, OrderedDict

import numpy as np
import pytest
from support.block_keys import chain

from tensorrt_llm.inputs.data import ProcessedPrompt
from tensorrt_llm.serve.routing.block_index import key_of
from tensorrt_llm.serve.routing.block_names import NameScope, prompt_names
from tensorrt_llm.serve.routing.placement import NoReplicaError, Placer

SIZE = 16


def placer(*replicas: str) -> Placer:
    made = Placer(SIZE, 100_000)
    for replica in replicas:
        made.add(replica)
    return made


def send(to: Placer, keys: list[int], tokens: int | None = None) -> str:
    """Places a request that ends at once."""
    placed = to.place(keys, len(keys) * SIZE + 1 if tokens is None else tokens)
    to.finish(placed)
    return placed.replica


def test_a_repeat_goes_where_it_was() -> None:
    choose, to = random.Random(1), placer("a", "b", "c")
    items = [chain(number, *range(choose.randrange(2, 60))) for number in range(40)]
    first = [send(to, keys) for keys in items]
    repeats = [number for number in range(40) for _ in range(5)]
    choose.shuffle(repeats)
    assert all(send(to, items[number]) == first[number] for number in repeats)
    share = Counter(first)
    assert set(share) == {"a", "b", "c"}


def test_one_beginning_for_all_does_not_draw_all_to_one() -> None:
    """The twin of the repeat: what follows the shared instructions is new each time."""
    to, instructions = placer("a", "b"), tuple(range(20))
    items = [chain(*instructions, 100 + number, *range(10)) for number in range(60)]
    first = [send(to, keys) for keys in items]
    share = Counter(first)
    assert min(share.values()) >= 24, share
    assert [send(to, keys) for keys in items] == first


def test_a_busy_replica_is_passed_over_once_waiting_costs_more() -> None:
    to, keys = placer("a", "b"), chain(*range(10))
    home = send(to, keys)
    running = []
    while True:
        placed = to.place(keys, 161)
        running.append(placed)
        if placed.replica != home:
            break
        assert len(running) < 20, "never spilled"
        assert placed.expected_tokens == 160
    # What waited there is more than what had to be computed again.
    assert sum(one.work for one in running[:-1]) >= 160
    assert running[-1].expected_tokens == 0
    for one in running:
        to.finish(one)
    assert send(to, keys) in ("a", "b")


def test_where_nothing_is_known_load_decides() -> None:
    to = placer("a", "b", "c")
    held = [to.place([], 100) for _ in range(30)]
    assert Counter(one.replica for one in held) == {"a": 10, "b": 10, "c": 10}
    for one in held:
        if one.replica != "b":
            to.finish(one)
    more = [to.place([], 100).replica for _ in range(12)]
    assert "b" not in more


def test_salts_share_nothing() -> None:
    prompt = ProcessedPrompt(np.arange(200, dtype=np.int32))

    def keys(salt: str | None) -> list[int]:
        return [key_of(name) for name in prompt_names(prompt, SIZE, NameScope(salt))]

    def expected(salt: str | None) -> int:
        placed = to.place(keys(salt), 200)
        to.finish(placed)
        return placed.expected_tokens

    to = placer("a", "b")
    assert [expected(salt) for salt in ("one", "two", None)] == [0, 0, 0]
    assert [expected(salt) for salt in ("one", "two", None, "")] == [192, 192, 192, 192]


def test_what_a_replica_tells_outweighs_what_was_expected() -> None:
    to, keys = placer("a", "b"), chain(*range(8))
    home = send(to, keys)
    other = "b" if home == "a" else "a"

    def expected(replica: str) -> int:
        placed = to.place(keys, 129, among=[replica])
        to.finish(placed)
        return placed.expected_tokens

    to.removed(home, keys[4:])
    assert expected(home) == 64
    to.clear(home)
    assert expected(home) == 0
    to.stored(other, keys[:6])
    assert expected(other) == 96
    to.remove(other)
    assert to.replicas == [home]
    # A name that comes back begins with nothing.
    to.add(other)
    assert expected(other) == 0
    to.stored("unknown", keys)
    to.removed("unknown", keys)
    to.clear("unknown")
    to.remove("unknown")


def test_only_those_allowed_are_chosen() -> None:
    to, keys = placer("a", "b"), chain(1, 2, 3)
    home = send(to, keys)
    other = "b" if home == "a" else "a"
    assert to.place(keys, 49, among=[other, "unknown"]).replica == other
    for among in ([], ["unknown"]):
        with pytest.raises(NoReplicaError):
            to.place(keys, 49, among=among)
    with pytest.raises(NoReplicaError):
        Placer(SIZE).place(keys, 49)


def test_a_new_replica_is_not_flooded() -> None:
    to = placer("a", "b")
    for number in range(100):
        send(to, chain(number, *range(20)))
    to.add("c")
    share = Counter(send(to, chain(1000 + number, *range(20))) for number in range(60))
    assert set(share.values()) == {20}


def test_a_request_that_outlives_its_replica_is_no_fault() -> None:
    to = placer("a", "b")
    placed = to.place([], 10)
    to.remove(placed.replica)
    to.finish(placed)
    to.add(placed.replica)
    to.finish(placed)
    assert {to.place([], 10).replica for _ in range(2)} == {"a", "b"}


class Replica:
    """A cache of so many blocks, least recently used out first."""

    def __init__(self, size: int) -> None:
        self.size, self.blocks = size, OrderedDict[int, None]()

    def run(self, keys: list[int]) -> tuple[int, list[int]]:
        hit = next((n for n, key in enumerate(keys) if key not in self.blocks), len(keys))
        for key in reversed(keys):  # leaves go first
            self.blocks[key] = None
            self.blocks.move_to_end(key)
        gone = []
        while len(self.blocks) > self.size:
            gone.append(self.blocks.popitem(last=False)[0])
        return hit, gone


@pytest.mark.parametrize("seed", range(3))
def test_four_small_caches_hit_nearly_as_often_as_a_big_one(seed: int) -> None:
    choose, names = random.Random(seed), ["a", "b", "c", "d"]
    to, one = placer(*names), Replica(4 * 400)
    small = {name: Replica(400) for name in names}
    lengths = [choose.randrange(4, 40) for _ in range(90)]
    hits = big = total = evicted = 0
    for _ in range(4000):
        item = min(int(choose.expovariate(1 / 25)), 89)
        keys = chain(0, 0, item, *range(lengths[item]))
        placed = to.place(keys, len(keys) * SIZE + 1)
        hit, gone = small[placed.replica].run(keys)
        to.removed(placed.replica, gone)
        to.finish(placed)
        hits, total, evicted = hits + hit, total + len(keys), evicted + len(gone)
        big += one.run(keys)[0]
    assert evicted > 1000, "the caches were never full"
    assert hits / total >= 0.95 * big / total, (hits / total, big / total)
