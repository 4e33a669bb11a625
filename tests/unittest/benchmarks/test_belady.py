# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""The optimum for a pool, against a search through everything that a cache could do."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from benchmarks.belady import Need, found, most_found


def by_search(needs: list[Need], capacity: int) -> int:
    """Tries every choice of what to keep after every request."""
    best: dict[frozenset[int], int] = {frozenset(): 0}
    for need in needs:
        after: dict[frozenset[int], int] = {}
        for cached, hits in best.items():
            now = hits + found(need, cached)
            others = cached.difference(need.blocks)
            for size in range(min(len(others), capacity - len(need.blocks)) + 1):
                for kept in combinations(sorted(others), size):
                    state = frozenset((*need.blocks, *kept))
                    after[state] = max(now, after.get(state, 0))
        best = after
    return max(best.values())


def random_needs(rng: np.random.Generator) -> list[Need]:
    """Requests of one to three blocks that share beginnings: block 3 is behind 1, and so on."""
    needs = []
    for _ in range(12):
        block, blocks = 0, []
        for _ in range(int(rng.integers(1, 4))):
            block = 2 * block + int(rng.integers(1, 3))
            blocks.append(block)
        needs.append(Need(tuple(blocks), len(blocks) - int(rng.integers(0, 2))))
    return needs


@pytest.mark.parametrize("capacity", [3, 4, 5])
def test_no_choice_finds_more_and_one_finds_as_much(capacity) -> None:
    rng = np.random.default_rng(capacity)
    short = 0
    for _ in range(25):
        needs = random_needs(rng)
        assert most_found(needs, capacity) == by_search(needs, capacity), needs
        short += most_found(needs, capacity) < most_found(needs, 100)
    assert short > 5  # the pool was too small for some, or nothing was tried


def test_a_block_that_is_computed_again_anyway_is_not_kept_for_it() -> None:
    # Block 1 may not be found by its next request, so block 2 is the one to keep.
    needs = [Need((1,), 1), Need((2,), 1), Need((3,), 1), Need((1,), 0), Need((2,), 1)]
    assert most_found(needs, 2) == 1


def test_a_request_larger_than_the_pool_is_refused() -> None:
    with pytest.raises(ValueError, match="2 blocks do not fit into 1"):
        most_found([Need((1, 2), 1)], 1)
