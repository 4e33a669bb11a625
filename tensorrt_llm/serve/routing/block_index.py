# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Which replicas have which blocks, approximately and within a bound.

Approximately in three ways, none of which can make an answer wrong, for a replica compares whole
keys: 60 bits of a block's name stand for it; events come late or never; and where the bound is
reached, what nobody named for longest is forgotten.

The replicas that have a block are the bits of one number. A prompt is looked up by narrowing that
number from block to block, so a look-up costs one dictionary access a block however many replicas
there are, and most blocks, which one replica has, cost nothing but their key.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice

_SHARDS = 256
_NAME_SHIFT = 4


def key_of(name: bytes) -> int:
    """What the index keeps of a name: 60 bits, which CPython holds in 32 bytes."""
    return int.from_bytes(name[:8], "little") >> _NAME_SHIFT


@dataclass(frozen=True)
class Holders:
    """Replicas that have a prompt's blocks up to some depth, and no deeper.

    Attributes:
        blocks: Leading blocks that they have, at least 1.
        slots: Their slots, as the bits of a number.
    """

    blocks: int
    slots: int


class BlockIndex:
    """Slots of replicas by block.

    A slot is a number from 0 that stands for a replica until that is forgotten. Not thread-safe.

    Args:
        max_blocks: Most blocks that are kept, each counted once however many replicas have it.
    """

    def __init__(self, max_blocks: int) -> None:
        self._most = max(1, max_blocks // _SHARDS)
        self._shards: list[dict[int, int]] = [{} for _ in range(_SHARDS)]
        self._live = 0
        # Slots that were forgotten: their bits are still set in shards not swept since.
        self._dead = 0
        self._sweep_at = 0
        self._sweep_left = 0
        self._sweeping = 0
        self._bits: list[int] = []

    def __len__(self) -> int:
        return sum(map(len, self._shards))

    @property
    def num_slots(self) -> int:
        """Slots ever in use at the same time: all are below it."""
        return len(self._bits)

    def open_slot(self) -> int:
        """A slot that nothing is known of."""
        free = ~(self._live | self._dead)
        bit = free & -free
        slot = bit.bit_length() - 1
        if slot == len(self._bits):
            self._bits.append(bit)
        self._live |= bit
        return slot

    def forget(self, slot: int) -> None:
        """Drops all that is known of a slot, and ends it; its memory is given back in steps."""
        self._live &= ~self._bits[slot]
        self._dead |= self._bits[slot]

    def store(self, slot: int, keys: Iterable[int]) -> None:
        """Notes that a replica has blocks, and that they were named just now."""
        bit, shards = self._bits[slot], self._shards
        for key in keys:
            shard = shards[key % _SHARDS]
            # Taken out and put back: a dictionary keeps the order in which keys came.
            held = shard.pop(key, bit)
            shard[key] = held if held & bit else held | bit
            if len(shard) > self._most:
                self._make_room(key % _SHARDS)
        if self._dead:
            self._sweep_one()

    def remove(self, slot: int, keys: Iterable[int]) -> None:
        """Notes that a replica has blocks no more."""
        bit, shards = self._bits[slot], self._shards
        for key in keys:
            shard = shards[key % _SHARDS]
            held = shard.get(key, 0)
            if held & bit:
                self._put(shard, key, held ^ bit)

    def look_up(self, keys: Sequence[int]) -> list[Holders]:
        """Who has the beginning of a chain of blocks, deepest first."""
        shards, alive, found = self._shards, self._live, []
        depth = 0
        for key in keys:
            still = shards[key % _SHARDS].get(key, 0) & alive
            if still != alive:
                if depth:
                    found.append(Holders(depth, alive ^ still))
                alive = still
                if not alive:
                    break
            depth += 1
        if alive and depth:
            found.append(Holders(depth, alive))
        found.reverse()
        return found

    def _put(self, shard: dict[int, int], key: int, held: int) -> None:
        if not held:
            del shard[key]
        elif held & (held - 1):
            shard[key] = held
        else:  # one holder: all such blocks share one number
            shard[key] = self._bits[held.bit_length() - 1]

    def _make_room(self, number: int) -> None:
        """Sweeps a shard, then forgets the eighth that was not named for longest."""
        self._sweep(number)
        shard = self._shards[number]
        if len(shard) > self._most:
            drop = max(1, len(shard) // 8)
            # Made anew: deleting from the front of a dictionary makes the next look there slow.
            self._shards[number] = dict(islice(shard.items(), drop, None))

    def _sweep(self, number: int) -> None:
        shard = self._shards[number]
        kept: dict[int, int] = {}
        for key, held in shard.items():
            if held & self._dead:
                held &= ~self._dead
                if not held:
                    continue
                if not held & (held - 1):
                    held = self._bits[held.bit_length() - 1]
            kept[key] = held
        self._shards[number] = kept

    def _sweep_one(self) -> None:
        """Sweeps the next shard; after a whole round the slots dead at its begin are free."""
        if not self._sweep_left:
            self._sweeping, self._sweep_left = self._dead, _SHARDS
        self._sweep(self._sweep_at)
        self._sweep_at = (self._sweep_at + 1) % _SHARDS
        self._sweep_left -= 1
        if not self._sweep_left:
            self._dead &= ~self._sweeping
