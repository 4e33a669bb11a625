# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""What earlier requests found out about media, so that a repeat needs no decoding.

```
bytes as sent ‖ options, limits, scope ──key──▶ payload digest
payload digest ‖ context of the request ──key──▶ an item's tokens, rows and processing context
```

Keys are digests of content, never of a name, an address or an object's id. Only what succeeded is
remembered. Entries are facts that can be found out again, so losing one costs time and nothing
else. Keys hold the scope (a tenant's salt), so that nobody learns from the time an answer takes
what another tenant has sent.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NewType

import blake3

from tensorrt_llm.errors import ConfigurationError
from tensorrt_llm.inputs.canonical_value import canonical_value, u64
from tensorrt_llm.inputs.data import Digest

MemoKey = NewType("MemoKey", bytes)
"""32 bytes that stand for content and all that decides what becomes of it."""

DEFAULT_MEMO_BYTES = 64 * 2**20

# What an entry takes beside its value: key, link and the numbers, rounded up.
_ENTRY_BYTES = 400


@dataclass(frozen=True)
class MemoStats:
    """Counters of a memo since it was made.

    Attributes:
        hits: Look-ups that found something.
        misses: Look-ups that did not.
        entries: Entries held.
        bytes: What they take.
        evictions: Entries dropped to make room.
    """

    hits: int
    misses: int
    entries: int
    bytes: int
    evictions: int


class MediaMemo:
    """A bounded LRU of facts about media. Safe to use from many threads.

    Args:
        max_bytes: Most bytes of all entries together. 0 remembers nothing.

    Raises:
        ConfigurationError: If the bound is negative.
    """

    def __init__(self, max_bytes: int = DEFAULT_MEMO_BYTES) -> None:
        if max_bytes < 0:
            raise ConfigurationError(f"the memo's max_bytes is not negative, not {max_bytes}")
        self._max_bytes = max_bytes
        self._lock = threading.Lock()
        self._entries: OrderedDict[MemoKey, tuple[Any, int]] = OrderedDict()
        self._bytes = self._hits = self._misses = self._evictions = 0

    @staticmethod
    def key(
        modality: str,
        raw: bytes | bytearray | memoryview,
        options: Mapping[str, Any],
        *,
        form: str = "",
        scope: str | None = None,
    ) -> MemoKey:
        """Key of media as it was sent.

        Args:
            modality: What it is taken for.
            raw: The bytes as sent: an encoded file, or text that holds one.
            options: Whatever else decides the outcome: resolved options, and limits, so that what
                passed a wide limit is no way around a narrow one.
            form: How ``raw`` holds the file: empty if it is the file itself.
            scope: Only requests of one scope find each other's entries.

        Raises:
            MediaError: If an option has no canonical form.
        """
        head = canonical_value(["trtllm.media.memo.v2", modality, form, scope, options])
        # Behind the bytes, as in `multimodal_data`: from its start on a stream is hashed fastest.
        stream = blake3.blake3()
        stream.update(raw)
        stream.update(head + u64(len(head)))
        return MemoKey(stream.digest())

    @staticmethod
    def item_key(digest: Digest, *context: Any, scope: str | None = None) -> MemoKey:
        """Key of an item: its payload digest, and values that decide what is made of it.

        Raises:
            MediaError: If a value has no canonical form.
        """
        return _small_key(["trtllm.media.memo.item.v2", bytes(digest), scope, context])

    @staticmethod
    def prompt_key(*decides: Any, scope: str | None = None) -> MemoKey:
        """Key of a prompt: everything that decides its text and tokens.

        Raises:
            MediaError: If a value has no canonical form.
        """
        return _small_key(["trtllm.prompt.memo.v2", scope, decides])

    def payload_digest(self, key: MemoKey) -> Digest | None:
        """The payload digest of media sent before, if it is remembered."""
        return self.get(key)

    def remember_payload(self, key: MemoKey, digest: Digest) -> None:
        """Remembers what media as sent turned out to be."""
        self.put(key, digest, len(digest))

    def get(self, key: MemoKey) -> Any:
        """The value under a key, None if there is none. It must not be changed."""
        with self._lock:
            entry = self._entries.get(key)
            if entry is None:
                self._misses += 1
                return None
            self._hits += 1
            self._entries.move_to_end(key)
            return entry[0]

    def put(self, key: MemoKey, value: Any, nbytes: int) -> None:
        """Puts a value under a key, and drops what was not used for longest to make room.

        Args:
            key: The key.
            value: The value, not None; it must not change any more.
            nbytes: What it takes. A value larger than the whole memo is not kept.
        """
        size = nbytes + _ENTRY_BYTES
        with self._lock:
            if (old := self._entries.pop(key, None)) is not None:
                self._bytes -= old[1]
            if size > self._max_bytes:
                return
            self._entries[key] = (value, size)
            self._bytes += size
            while self._bytes > self._max_bytes:
                _, (_, dropped) = self._entries.popitem(last=False)
                self._bytes -= dropped
                self._evictions += 1

    def clear(self) -> None:
        """Forgets everything."""
        with self._lock:
            self._entries.clear()
            self._bytes = 0

    @property
    def stats(self) -> MemoStats:
        """The counters now."""
        with self._lock:
            return MemoStats(
                self._hits, self._misses, len(self._entries), self._bytes, self._evictions
            )


def _small_key(decides: list[Any]) -> MemoKey:
    """Key of values; read from its end like that of media, so that the two never meet."""
    head = canonical_value(decides)
    return MemoKey(blake3.blake3(head + u64(len(head))).digest())
