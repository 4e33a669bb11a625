# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""The decision: which replica a prompt goes to.

Every replica's cost is an estimate of the tokens that would be computed before the prompt's first
token is there: what the replica has to do already, and what it has not cached of the prompt. To
that comes the *excess*: how many new tokens the replica was given beyond what the least laden one
was, as far as the prompt is new. So a prompt that is cached goes where it is cached unless waiting
costs more than computing it again, while one that only begins like others (the same instructions,
another picture) goes where there is room: otherwise the first replica to see the instructions
would get all pictures. Where nothing is known of a prompt only load decides.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tensorrt_llm.serve.routing.block_index import BlockIndex

REQUEST_TOKENS = 64
"""What a request that runs counts beside its prompt: its answer takes turns too."""

_FORGET_SPENT = 0.5
_SPENT_EACH = 4_000_000


@dataclass(frozen=True)
class Placement:
    """Where a request goes. To be handed to ``finish`` once.

    Attributes:
        replica: Which one.
        expected_tokens: Prompt tokens that it is expected to have cached.
        work: Tokens that it counts as busy with until ``finish``.
    """

    replica: str
    expected_tokens: int
    work: int


class NoReplicaError(LookupError):
    """There is no replica that a request may go to."""


class Placer:
    """Knows replicas, what they have and what they do, and chooses among them.

    Not thread-safe: belongs to one thread or event loop.

    Args:
        tokens_per_block: Tokens of a block, the same on all replicas.
        max_blocks: Bound of the index.
    """

    def __init__(self, tokens_per_block: int, max_blocks: int = 10_000_000) -> None:
        self.index = BlockIndex(max_blocks)
        self._size = tokens_per_block
        self._slots: dict[str, int] = {}
        self._names: dict[int, str] = {}
        self._busy = np.zeros(0)
        self._spent = np.zeros(0)
        self._open = np.zeros(0, bool)

    @property
    def replicas(self) -> list[str]:
        """Those there are."""
        return list(self._slots)

    def add(self, replica: str) -> None:
        """Begins with a replica that has nothing cached; no effect if it is there."""
        if replica not in self._slots:
            spent = self._spent[self._open]
            self._take_slot(replica, 0.0, float(spent.min()) if len(spent) else 0.0)

    def remove(self, replica: str) -> None:
        """A replica is gone; no effect if it is not there."""
        slot = self._slots.pop(replica, None)
        if slot is not None:
            self._end_slot(slot)

    def clear(self, replica: str) -> None:
        """A replica has nothing cached any more, or nobody knows what."""
        slot = self._slots.get(replica)
        if slot is not None:
            busy, spent = self._busy[slot], self._spent[slot]
            self._end_slot(slot)
            self._take_slot(replica, busy, spent)

    def stored(self, replica: str, keys: Sequence[int]) -> None:
        """A replica has cached blocks; no effect if it is not there."""
        if replica in self._slots:
            self.index.store(self._slots[replica], keys)

    def removed(self, replica: str, keys: Sequence[int]) -> None:
        """A replica has dropped blocks; no effect if it is not there."""
        if replica in self._slots:
            self.index.remove(self._slots[replica], keys)

    def place(
        self, keys: Sequence[int], prompt_tokens: int, among: Sequence[str] | None = None
    ) -> Placement:
        """Chooses a replica and counts the request there.

        The prompt's blocks count as cached there from now on: equals that follow at once go after
        it, and if they are not cached after all, the next one that comes caches them.

        Args:
            keys: The prompt's whole blocks, as far as they are known.
            prompt_tokens: Its length, or a guess.
            among: Replicas that may be chosen; all of them if None. Unknown names are ignored.

        Raises:
            NoReplicaError: If there is none.
        """
        allowed = self._allowed(among)
        hits = self._hits(keys, prompt_tokens)
        fresh = prompt_tokens - hits
        cost = self._busy + fresh
        least = int(fresh[allowed].min())
        if least > self._size:  # otherwise all that can be cached is
            spent = self._spent - self._spent[allowed].min()
            cost = cost + spent * (least / prompt_tokens)
        costs = cost[allowed]
        tied = allowed[costs == costs.min()]
        slot = int(tied[self._spent[tied].argmin()])
        return self._count(slot, keys, prompt_tokens, int(hits[slot]))

    def finish(self, placement: Placement) -> None:
        """A request that was placed has ended, whatever way."""
        slot = self._slots.get(placement.replica)
        if slot is not None:
            self._busy[slot] = max(0.0, self._busy[slot] - placement.work)

    def _count(self, slot: int, keys: Sequence[int], prompt_tokens: int, hit: int) -> Placement:
        fresh = prompt_tokens - hit
        work = fresh + REQUEST_TOKENS
        self._busy[slot] += work
        # The last token of a repeat is computed too, and takes no room.
        self._spent[slot] += fresh if fresh > self._size else 1
        if self._spent[slot] > _SPENT_EACH:
            self._spent *= _FORGET_SPENT
        self.index.store(slot, keys)
        return Placement(self._names[slot], hit, work)

    def _allowed(self, among: Sequence[str] | None) -> np.ndarray:
        """Slots that may be chosen, ascending."""
        if among is None:
            slots = np.flatnonzero(self._open)
        else:
            slots = np.array([self._slots[name] for name in among if name in self._slots], int)
        if not len(slots):
            raise NoReplicaError("no replica can take the request")
        return slots

    def _hits(self, keys: Sequence[int], prompt_tokens: int) -> np.ndarray:
        """Tokens that each slot is expected to have, int64 ``[slots]``."""
        hits = np.zeros(len(self._open), np.int64)
        width = (len(hits) + 7) // 8
        for holders in self.index.look_up(keys):
            raw = np.frombuffer(holders.slots.to_bytes(width, "little"), np.uint8)
            bits = np.unpackbits(raw, bitorder="little", count=len(hits))
            # The last token of a prompt is always computed.
            hits[bits.view(bool)] = min(holders.blocks * self._size, max(0, prompt_tokens - 1))
        return hits

    def _take_slot(self, replica: str, busy: float, spent: float) -> None:
        slot = self.index.open_slot()
        while len(self._open) <= slot:
            self._busy = np.append(self._busy, 0.0)
            self._spent = np.append(self._spent, 0.0)
            self._open = np.append(self._open, False)
        self._slots[replica], self._names[slot] = slot, replica
        self._busy[slot], self._spent[slot], self._open[slot] = busy, spent, True

    def _end_slot(self, slot: int) -> None:
        self.index.forget(slot)
        self._open[slot] = False
        del self._names[slot]
