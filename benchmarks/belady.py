# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""The most that any cache of a size could have found, had it known what comes.

A request needs all its blocks at once. Room for those that it does not find comes from blocks of
earlier requests, and the best to give up is the one whose next use is the furthest away (Belady).
A block is of use only behind all before it in its request; of those with the same next use the
last goes first, so that no block is left without its beginning.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass

NEVER = 1 << 60


@dataclass(frozen=True)
class Need:
    """What one request needs of a pool.

    Attributes:
        blocks: Its blocks in order, by number; equal numbers mean equal content up to their end.
        findable: How many of the first ones may come from the cache: never the whole prompt.
    """

    blocks: tuple[int, ...]
    findable: int


def next_uses(needs: Sequence[Need]) -> list[list[int]]:
    """For every block of every request, the next request that could find it, or ``NEVER``.

    A request that computes the block again whatever is cached has no use of the old one.
    """
    coming: dict[int, int] = {}
    uses = []
    for number in range(len(needs) - 1, -1, -1):
        need = needs[number]
        uses.append([coming.get(block, NEVER) for block in need.blocks])
        for index, block in enumerate(need.blocks):
            coming[block] = number if index < need.findable else NEVER
    return uses[::-1]


def found(need: Need, cached: set[int] | frozenset[int] | dict[int, int]) -> int:
    """Blocks that a request finds: the first ones, as far as all are cached."""
    for index, block in enumerate(need.blocks[: need.findable]):
        if block not in cached:
            return index
    return need.findable


def most_found(needs: Sequence[Need], capacity: int) -> int:
    """Blocks found over all requests with a pool of ``capacity`` blocks, at the very best.

    Raises:
        ValueError: If a request does not fit into the pool.
    """
    cached: dict[int, int] = {}  # the next use of each block
    furthest: list[tuple[int, int, int]] = []  # (-next use, -depth, block), old entries among them
    hits = 0
    for need, uses in zip(needs, next_uses(needs), strict=True):
        if len(need.blocks) > capacity:
            raise ValueError(f"{len(need.blocks)} blocks do not fit into {capacity}")
        hits += found(need, cached)
        # What the request has is held: it leaves the cache for now, and so cannot be given up.
        for block in need.blocks:
            cached.pop(block, None)
        while len(cached) + len(need.blocks) > capacity:
            use, _, block = heapq.heappop(furthest)
            if cached.get(block) == -use:
                del cached[block]
        for depth, (block, next_use) in enumerate(zip(need.blocks, uses, strict=True)):
            cached[block] = next_use
            heapq.heappush(furthest, (-next_use, -depth, block))
    return hits
