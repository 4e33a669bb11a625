# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Encoder rows kept across requests, bounded in bytes on the device and on the host.

An entry is in one of four states:

- *pinned*: at least one live request still needs rows of it; on the device, never evicted;
- *idle* on the device: evicted in least-recently-used order when room is needed, to the host if
  there is a host level;
- *idle* on the host: comes back to the device when it is wanted, dropped in the same order;
- *lent*: pinned, but there was no room beside the other pinned ones. It is not kept: it is there
  for the requests that need it now, and goes with the last of them. So the bounds hold for all
  that outlives its requests, at every moment, and requests at the same time share an encoder run
  even with a bound of 0.

Owned by the engine's loop; not thread-safe.
"""

from __future__ import annotations

import enum
import heapq
import time
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch

from tensorrt_llm.errors import EmbeddingMismatchError
from tensorrt_llm.inputs.data import Digest
from tensorrt_llm.logger import get_logger

logger = get_logger(__name__)


@dataclass(frozen=True)
class EmbeddingKey:
    """What an entry is found by.

    Attributes:
        identity: The item's identity: payload, resolved options, cross-item context, caller id.
        cache_salt: Tenants do not share rows, so that hits cannot be timed across them.
        adapter: Digest of the adapter that changes the encoder; None if none does.
    """

    identity: Digest
    cache_salt: str | None
    adapter: bytes | None = None


class Place(enum.Enum):
    """Where an entry is; see the module's text."""

    PINNED = enum.auto()
    LENT = enum.auto()
    DEVICE = enum.auto()
    HOST = enum.auto()


@dataclass(eq=False)
class StoredRows:
    """An entry, and while it is pinned what the store and a request share.

    Attributes:
        key: What it is found by.
        rows: ``[num_rows, row_width]``, not to be written to; on the device while pinned.
        device: Where they were made.
        place: Where the entry is.
        modality: What was encoded.
        number: Entries are numbered as they are made.
        made: When, by the monotonic clock.
        pins: Live requests that need it.
        hits: How often it was found.
    """

    key: EmbeddingKey
    rows: torch.Tensor
    device: torch.device
    place: Place
    modality: str
    number: int
    made: float
    pins: int = 0
    hits: int = 0

    @property
    def nbytes(self) -> int:
        """Bytes of the rows."""
        return self.rows.numel() * self.rows.element_size()


class _Level:
    """Entries of one place, least recently used first, and their bytes."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.nbytes = 0
        self._entries: OrderedDict[EmbeddingKey, StoredRows] = OrderedDict()

    def get(self, key: EmbeddingKey) -> StoredRows | None:
        return self._entries.get(key)

    def add(self, entry: StoredRows) -> None:
        entry.place = self.place
        self._entries[entry.key] = entry
        self.nbytes += entry.nbytes

    def remove(self, entry: StoredRows) -> None:
        """Takes an entry out; no effect if it is not there, as after ``clear``."""
        if self._entries.get(entry.key) is entry:
            del self._entries[entry.key]
            self.nbytes -= entry.nbytes

    def oldest(self) -> StoredRows:
        return next(iter(self._entries.values()))

    def clear(self) -> int:
        dropped = len(self._entries)
        self._entries.clear()
        self.nbytes = 0
        return dropped

    def __contains__(self, entry: StoredRows) -> bool:
        return self._entries.get(entry.key) is entry

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[StoredRows]:
        return iter(self._entries.values())


@dataclass(frozen=True)
class EmbeddingStoreStats:
    """Counters since start and present sizes.

    Attributes:
        max_bytes: The bound on the device.
        current_bytes: Bytes of all entries on the device but the lent ones.
        item_count: Those entries.
        pinned_count: Entries that a live request needs, lent ones included.
        lent_bytes: Bytes of lent entries.
        host_max_bytes: The bound on the host.
        host_bytes: Bytes of the entries there.
        host_item_count: Those entries.
        hits: Lookups that found rows.
        misses: Lookups that did not.
        evictions: Idle entries dropped to make room.
        rejected: Entries that were lent because they did not fit.
        offloaded: Entries moved to the host.
        onboarded: Entries moved back.
    """

    max_bytes: int
    current_bytes: int
    item_count: int
    pinned_count: int
    lent_bytes: int
    host_max_bytes: int
    host_bytes: int
    host_item_count: int
    hits: int
    misses: int
    evictions: int
    rejected: int
    offloaded: int
    onboarded: int


class EmbeddingStore:
    """Least-recently-used store of encoder rows with pins.

    Args:
        max_bytes: Most bytes of rows to keep on the device; 0 keeps nothing there.
        host_max_bytes: Most bytes of rows to keep on the host; 0 drops what leaves the device.
    """

    def __init__(self, max_bytes: int, host_max_bytes: int = 0) -> None:
        for name, value in (("max_bytes", max_bytes), ("host_max_bytes", host_max_bytes)):
            if value < 0:
                raise ValueError(f"{name} must be at least 0, got {value}")
        self._max_bytes = max_bytes
        self._host_max_bytes = host_max_bytes
        self._levels = {place: _Level(place) for place in Place}
        self._num_pinned = 0
        self._hits = self._misses = self._evictions = self._rejected = 0
        self._offloaded = self._onboarded = self._made = 0

    def acquire(self, key: EmbeddingKey, expected_rows: int, modality: str) -> StoredRows | None:
        """Finds and pins rows; they are on the device and valid until ``release``.

        Returns:
            The entry; None if there is none.

        Raises:
            EmbeddingMismatchError: If the stored rows are another number than expected. Nothing is
                pinned then.
        """
        entry = self._find(key)
        if entry is None:
            self._misses += 1
            return None
        if entry.rows.shape[0] != expected_rows:
            raise EmbeddingMismatchError(modality, entry.rows.shape[0], expected_rows)
        if entry.place is Place.HOST:
            # Copied first: if the device has no memory for it, the entry stays where it is.
            rows = entry.rows.to(entry.device)
            self._levels[Place.HOST].remove(entry)
            entry.rows = rows
            self._onboarded += 1
            self._pin_first(entry)
        elif entry.place is Place.DEVICE:
            self._levels[Place.DEVICE].remove(entry)
            self._pin_first(entry)
        else:
            entry.pins += 1
        self._hits += 1
        entry.hits += 1
        return entry

    def __contains__(self, key: EmbeddingKey) -> bool:
        """Whether there are rows under a key; changes nothing."""
        return self._find(key) is not None

    def insert(self, key: EmbeddingKey, rows: torch.Tensor, modality: str) -> StoredRows:
        """Makes an entry of rows that were just encoded, pinned for the caller.

        Raises:
            ValueError: If there is an entry of that key.
        """
        if self._find(key) is not None:
            raise ValueError("rows of an item were made that are stored already")
        self._made += 1
        entry = StoredRows(
            *(key, rows.detach(), rows.device, Place.LENT),
            *(modality, self._made, time.monotonic()),
        )
        self._pin_first(entry)
        return entry

    def release(self, entry: StoredRows) -> None:
        """Takes one pin back.

        Raises:
            ValueError: If the entry is not pinned.
        """
        if not entry.pins:
            raise ValueError("release without a pin")
        entry.pins -= 1
        if entry.pins:
            return
        self._num_pinned -= 1
        level = self._levels[entry.place]
        if entry not in level:
            return  # cleared meanwhile: nobody is to find it any more
        level.remove(entry)
        if entry.place is Place.PINNED:
            self._levels[Place.DEVICE].add(entry)
        else:
            self._to_host(entry)

    def clear(self) -> int:
        """Forgets everything; rows that live requests need go with the last of these.

        Returns:
            How many entries are not found any more.
        """
        return sum(level.clear() for level in self._levels.values())

    def stats(self) -> EmbeddingStoreStats:
        """Counters and sizes."""
        pinned, device = self._levels[Place.PINNED], self._levels[Place.DEVICE]
        host, lent = self._levels[Place.HOST], self._levels[Place.LENT]
        return EmbeddingStoreStats(
            max_bytes=self._max_bytes,
            current_bytes=device.nbytes + pinned.nbytes,
            item_count=len(device) + len(pinned),
            pinned_count=self._num_pinned,
            lent_bytes=lent.nbytes,
            host_max_bytes=self._host_max_bytes,
            host_bytes=host.nbytes,
            host_item_count=len(host),
            hits=self._hits,
            misses=self._misses,
            evictions=self._evictions,
            rejected=self._rejected,
            offloaded=self._offloaded,
            onboarded=self._onboarded,
        )

    def top(self, most: int) -> list[dict[str, Any]]:
        """The entries found most often, in numbers; of equals the youngest first.

        ``identity`` and ``cacheSalt`` are for the door alone: told to one tenant, they would say
        whether another had sent what it knows. For people an entry's name is ``number``, by when
        it was made.
        """
        now = time.monotonic()
        entries = (entry for level in self._levels.values() for entry in level)
        chosen = heapq.nlargest(most, entries, key=lambda entry: (entry.hits, entry.number))
        return [
            {
                "number": entry.number,
                "modality": entry.modality,
                "rows": entry.rows.shape[0],
                "bytes": entry.nbytes,
                "hits": entry.hits,
                "pins": entry.pins,
                "place": entry.place.name.lower(),
                "ageSeconds": round(now - entry.made, 1),
                "identity": entry.key.identity.hex(),
                "cacheSalt": entry.key.cache_salt,
            }
            for entry in chosen
        ]

    def _find(self, key: EmbeddingKey) -> StoredRows | None:
        for level in self._levels.values():
            entry = level.get(key)
            if entry is not None:
                return entry
        return None

    def _pin_first(self, entry: StoredRows) -> None:
        """Pins an entry that is in no level; it is lent if there is no room for it."""
        entry.pins = 1
        self._num_pinned += 1
        kept = self._make_room(entry.nbytes)
        self._rejected += not kept
        self._levels[Place.PINNED if kept else Place.LENT].add(entry)

    def _make_room(self, nbytes: int) -> bool:
        """Moves idle entries out until nbytes fit; none if they cannot."""
        pinned, idle = self._levels[Place.PINNED], self._levels[Place.DEVICE]
        if pinned.nbytes + nbytes > self._max_bytes:
            return False
        while pinned.nbytes + idle.nbytes + nbytes > self._max_bytes:
            victim = idle.oldest()
            idle.remove(victim)
            if not self._to_host(victim):
                self._evictions += 1
        return True

    def _to_host(self, entry: StoredRows) -> bool:
        """Moves an entry that is in no level to the host; False if it is dropped instead."""
        host = self._levels[Place.HOST]
        if entry.nbytes > self._host_max_bytes:
            return False
        try:
            rows = entry.rows.cpu()
        except (MemoryError, RuntimeError) as error:
            # The host has no memory for it: a copy less, and no reason to fail who lets it go.
            logger.warning("encoder rows of %d bytes not kept on the host: %s", entry.nbytes, error)
            return False
        while host.nbytes + entry.nbytes > self._host_max_bytes:
            host.remove(host.oldest())
            self._evictions += 1
        entry.rows = rows
        host.add(entry)
        self._offloaded += 1
        return True
