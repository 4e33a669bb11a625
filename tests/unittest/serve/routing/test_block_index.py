# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""The index against a dictionary of sets, and what it does at its bound."""

from __future__ import annotations

import random

import pytest
from support.block_keys import chain

from tensorrt_llm.serve.routing.block_index import BlockIndex


def depths(index: BlockIndex, keys: list[int]) -> dict[int, int]:
    found = {}
    for holders in index.look_up(keys):
        for slot in range(index.num_slots):
            if holders.slots >> slot & 1:
                assert slot not in found
                found[slot] = holders.blocks
    return found


@pytest.mark.parametrize("seed", range(4))
def test_it_agrees_with_sets_under_random_operations(seed: int) -> None:
    choose = random.Random(seed)
    index, has = BlockIndex(1_000_000), {}
    prompts = [
        chain(choose.randrange(2), choose.randrange(3), *choose.choices(range(3), k=6))
        for _ in range(40)
    ]
    hits = forgotten = removed = 0
    for step in range(3000):
        what = choose.random()
        if len(has) < 3 or (what < 0.02 and len(has) < 9):
            slot = index.open_slot()
            assert slot not in has
            has[slot] = set()
        elif what < 0.03:
            slot = choose.choice(sorted(has))
            index.forget(slot)
            forgotten += len(has.pop(slot)) > 0
        elif what < 0.4:
            slot, keys = choose.choice(sorted(has)), choose.choice(prompts)
            keys = keys[: choose.randrange(1, 9)]
            index.store(slot, keys)
            has[slot] |= set(keys)
        elif what < 0.6:
            slot, keys = choose.choice(sorted(has)), choose.choice(prompts)
            keys = keys[choose.randrange(8) :]
            index.remove(slot, keys)
            removed += bool(has[slot] & set(keys))
            has[slot] -= set(keys)
        else:
            keys = choose.choice(prompts)
            expected = {}
            for slot, known in has.items():
                held = [key in known for key in keys]
                depth = held.index(False) if False in held else len(held)
                if depth:
                    expected[slot] = depth
            assert depths(index, keys) == expected, (seed, step)
            hits += len(expected)
    assert hits > 500 and forgotten > 3 and removed > 50, "the run met too little"
    # The memory of those that are gone is given back, and their slots used again.
    for _ in range(600):
        index.store(next(iter(has)), ())
    assert len(index) == len(set().union(*has.values()))
    assert index.num_slots < 40


def test_deepest_come_first_and_a_hole_ends_a_match() -> None:
    index, keys = BlockIndex(1000), chain(1, 2, 3, 4)
    one, two, three = (index.open_slot() for _ in range(3))
    index.store(one, keys)
    index.store(two, keys[:2])
    index.store(three, [keys[0], keys[2], keys[3]])
    assert [found.blocks for found in index.look_up(keys)] == [4, 2, 1]
    assert depths(index, keys) == {one: 4, two: 2, three: 1}
    assert index.look_up(chain(9, 2)) == []
    assert index.look_up([]) == []


def test_at_its_bound_what_was_named_last_is_kept() -> None:
    bound = 256 * 64
    index = BlockIndex(bound)
    slot = index.open_slot()
    hot = chain(*range(100))
    made = 0
    for number in range(4 * bound // 50):
        index.store(slot, chain(*range(1_000_000 + 50 * number, 1_000_050 + 50 * number)))
        made += 50
        if number % 20 == 0:
            index.store(slot, hot)
        assert len(index) <= bound
    assert made > 3 * bound, "never full"
    assert len(index) > bound // 2
    assert depths(index, hot) == {slot: 100}


def test_a_block_of_two_replicas_outlives_one_of_them() -> None:
    index, keys = BlockIndex(1000), chain(1, 2)
    one, two = index.open_slot(), index.open_slot()
    index.store(one, keys)
    index.store(two, keys)
    index.forget(one)
    assert depths(index, keys) == {two: 2}
    three = index.open_slot()
    assert three not in (one, two), "a slot came back before its bits were gone"
    assert depths(index, keys) == {two: 2}
