# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""What is kept for later requests of the same tenant: bounded, expiring, forgotten on request."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

_Value = TypeVar("_Value")


@dataclass(frozen=True)
class StoreStats:
    """Counts since start, and what is held now.

    Attributes:
        hits: Values that were there for who asked.
        misses: Ids without one.
        evictions: Values given up to make room.
        nbytes: Bytes of all values.
    """

    hits: int
    misses: int
    evictions: int
    nbytes: int


@dataclass(frozen=True)
class _Entry(Generic[_Value]):
    value: _Value
    nbytes: int
    expires: float


class TenantStore(Generic[_Value]):
    """Values by owner and id. Safe to use from many threads.

    An id of another owner is as unknown as one that never was. Room is made by what was not used
    for longest, of an owner that has more than its share: the same for all that have something. So
    who stays within it loses nothing to others.

    Args:
        max_bytes: Most bytes of all values together.
        max_entries: Most values.
        seconds: Time that a value is kept.
        clock: Gives seconds.
    """

    def __init__(
        self,
        max_bytes: int,
        max_entries: int,
        seconds: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._max_bytes = max_bytes
        self._max_entries = max_entries
        self._seconds = seconds
        self._clock = clock
        self._lock = threading.Lock()
        self._entries: OrderedDict[tuple[str | None, str], _Entry[_Value]] = OrderedDict()
        self._bytes = self._hits = self._misses = self._evictions = 0

    @property
    def stats(self) -> StoreStats:
        """What happened so far."""
        with self._lock:
            self._drop_expired()
            return StoreStats(self._hits, self._misses, self._evictions, self._bytes)

    @property
    def nbytes(self) -> int:
        """Bytes of all values that are held."""
        return self._bytes

    def __len__(self) -> int:
        """Number of values that are held."""
        return len(self._entries)

    def put(self, owner: str | None, name: str, value: _Value, nbytes: int) -> bool:
        """Keeps a value; False if there can be no room for it."""
        with self._lock:
            self._drop_expired()
            if nbytes > self._room(owner) or self._max_entries < 1:
                return False
            self._forget((owner, name))
            while len(self._entries) + 1 > self._max_entries:
                self._drop_one(owner, self._held(lambda entry: 1), 1, self._max_entries)
            while self._bytes + nbytes > self._max_bytes:
                held = self._held(lambda entry: entry.nbytes)
                self._drop_one(owner, held, nbytes, self._max_bytes)
            self._entries[owner, name] = _Entry(value, nbytes, self._clock() + self._seconds)
            self._bytes += nbytes
        return True

    def room(self, owner: str | None) -> int:
        """Most bytes that a value of this owner may have now."""
        with self._lock:
            self._drop_expired()
            return self._room(owner)

    def get(self, owner: str | None, name: str) -> _Value | None:
        """The value, if its owner asks and it is still there."""
        with self._lock:
            entry = self._entries.get((owner, name))
            if entry is not None and entry.expires <= self._clock():
                self._forget((owner, name))
                entry = None
            if entry is None:
                self._misses += 1
                return None
            self._hits += 1
            self._entries.move_to_end((owner, name))
            return entry.value

    def delete(self, owner: str | None, name: str) -> bool:
        """Forgets a value at once; False if there was none."""
        with self._lock:
            self._drop_expired()
            return self._forget((owner, name))

    def list(self, owner: str | None) -> list[_Value]:
        """All values of an owner, the one used last at the end."""
        with self._lock:
            self._drop_expired()
            return [entry.value for (whose, _), entry in self._entries.items() if whose == owner]

    def _room(self, owner: str | None) -> int:
        held = self._held(lambda entry: entry.nbytes)
        share = self._max_bytes // len({*held, owner})
        return self._max_bytes - sum(min(n, share) for who, n in held.items() if who != owner)

    def _held(self, size: Callable[[_Entry[_Value]], int]) -> dict[str | None, int]:
        """What each owner has, of bytes or of values."""
        held: dict[str | None, int] = {}
        for (owner, _), entry in self._entries.items():
            held[owner] = held.get(owner, 0) + size(entry)
        return held

    def _drop_one(
        self, owner: str | None, held: dict[str | None, int], more: int, limit: int
    ) -> None:
        """Makes room for ``more`` of an owner: by its own, if that is beyond its share."""
        share = limit // len({*held, owner})
        whose = owner
        if owner not in held or held[owner] + more <= share:
            whose = max((one for one in held if one != owner), key=lambda one: held[one])
        self._forget(next(key for key in self._entries if key[0] == whose))
        self._evictions += 1

    def _drop_expired(self) -> None:
        now = self._clock()
        for key in [key for key, entry in self._entries.items() if entry.expires <= now]:
            self._forget(key)

    def _forget(self, key: tuple[str | None, str]) -> bool:
        entry = self._entries.pop(key, None)
        if entry is not None:
            self._bytes -= entry.nbytes
        return entry is not None
