# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Encoder rows kept across requests, bounded in bytes.

An entry is in one of two states. *Pinned*: at least one live request still needs rows of it;
never evicted. *Idle*: in least-recently-used order, evicted when room is needed. Rows that do not
fit beside the pinned ones are not stored: the request that encoded them holds them itself and
they go when it goes, so the bound holds at every moment.

Owned by the engine's loop; not thread-safe.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

import torch

from tensorrt_llm.errors import EmbeddingMismatchError
from tensorrt_llm.inputs.data import Digest


@dataclass(frozen=True)
class EmbeddingKey:
    """What an entry is found by.

    Attributes:
        identity: The item's identity: payload, resolved options, cross-item context, caller id.
        cache_salt: Tenants do not share rows, so that hits cannot be timed across them.
    """

    identity: Digest
    cache_salt: str | None


@dataclass
class _Entry:
    rows: torch.Tensor
    pins: int

    @property
    def nbytes(self) -> int:
        return self.rows.numel() * self.rows.element_size()


@dataclass(frozen=True)
class EmbeddingStoreStats:
    """Counters since start and present sizes.

    Attributes:
        max_bytes: The bound.
        current_bytes: Bytes of all entries.
        item_count: Entries.
        pinned_count: Entries that a live request needs.
        hits: Lookups that found rows.
        misses: Lookups that did not.
        evictions: Idle entries dropped to make room.
        rejected: Insertions that did not fit.
    """

    max_bytes: int
    current_bytes: int
    item_count: int
    pinned_count: int
    hits: int
    misses: int
    evictions: int
    rejected: int


class EmbeddingStore:
    """Least-recently-used store of encoder rows with pins.

    Args:
        max_bytes: Most bytes of rows to keep; 0 keeps nothing across requests.
    """

    def __init__(self, max_bytes: int) -> None:
        if max_bytes < 0:
            raise ValueError(f"max_bytes must be at least 0, got {max_bytes}")
        self._max_bytes = max_bytes
        self._idle: OrderedDict[EmbeddingKey, _Entry] = OrderedDict()  # least recent first
        self._pinned: dict[EmbeddingKey, _Entry] = {}
        self._idle_bytes = self._pinned_bytes = 0
        self._hits = self._misses = self._evictions = self._rejected = 0

    def acquire(self, key: EmbeddingKey, expected_rows: int, modality: str) -> torch.Tensor | None:
        """Finds and pins rows.

        Returns:
            ``[expected_rows, hidden_size]``, not to be written to and valid until ``release``;
            None if not stored.

        Raises:
            EmbeddingMismatchError: If the stored rows are another number than expected. Nothing is
                pinned then.
        """
        entry = self._pinned.get(key) or self._idle.get(key)
        if entry is None:
            self._misses += 1
            return None
        if entry.rows.shape[0] != expected_rows:
            raise EmbeddingMismatchError(modality, entry.rows.shape[0], expected_rows)
        self._hits += 1
        if entry.pins == 0:
            del self._idle[key]
            self._idle_bytes -= entry.nbytes
            self._pin_first(key, entry)
        else:
            entry.pins += 1
        return entry.rows

    def __contains__(self, key: EmbeddingKey | None) -> bool:
        """Whether there are rows under a key; changes nothing."""
        return key in self._pinned or key in self._idle

    def insert(self, key: EmbeddingKey, rows: torch.Tensor) -> bool:
        """Stores rows and pins them for the caller.

        Returns:
            Whether they were stored and pinned; False if they do not fit beside the pinned ones or
            the key is there already, then the caller keeps its own.
        """
        entry = _Entry(rows.detach(), pins=0)
        if key in self._pinned or key in self._idle or not self._make_room(entry.nbytes):
            self._rejected += 1
            return False
        self._pin_first(key, entry)
        return True

    def release(self, key: EmbeddingKey) -> None:
        """Takes one pin back.

        Raises:
            ValueError: If the entry is not pinned.
        """
        entry = self._pinned.get(key)
        if entry is None:
            raise ValueError("release without a pin")
        entry.pins -= 1
        if entry.pins == 0:
            del self._pinned[key]
            self._pinned_bytes -= entry.nbytes
            self._idle[key] = entry
            self._idle_bytes += entry.nbytes

    def clear(self) -> int:
        """Drops every idle entry; returns how many."""
        dropped = len(self._idle)
        self._idle.clear()
        self._idle_bytes = 0
        return dropped

    def stats(self) -> EmbeddingStoreStats:
        """Counters and sizes."""
        return EmbeddingStoreStats(
            max_bytes=self._max_bytes,
            current_bytes=self._idle_bytes + self._pinned_bytes,
            item_count=len(self._idle) + len(self._pinned),
            pinned_count=len(self._pinned),
            hits=self._hits,
            misses=self._misses,
            evictions=self._evictions,
            rejected=self._rejected,
        )

    def _pin_first(self, key: EmbeddingKey, entry: _Entry) -> None:
        entry.pins = 1
        self._pinned[key] = entry
        self._pinned_bytes += entry.nbytes

    def _make_room(self, nbytes: int) -> bool:
        """Evicts idle entries until nbytes fit; evicts none if they cannot."""
        if self._pinned_bytes + nbytes > self._max_bytes:
            return False
        while self._pinned_bytes + self._idle_bytes + nbytes > self._max_bytes:
            _, victim = self._idle.popitem(last=False)
            self._idle_bytes -= victim.nbytes
            self._evictions += 1
        return True
