# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Which live requests begin like a given prompt, told by all that decides the content of KV.

Two prompts begin alike as far as scope, token ids and the rows of media are equal: the equality of
a block's key. Nothing is shared on the word of this index: it only says for whom waiting may pay,
and the KV cache manager compares the keys themselves.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from itertools import islice, zip_longest
from typing import Generic, NamedTuple, TypeVar

import numpy as np

from tensorrt_llm.executor.request import AdapterIdentity
from tensorrt_llm.inputs.data import ProcessedPrompt

# Requests that begin with the same blocks and are compared token by token: the newest so many.
MAX_COMPARED = 16


class _Rows(NamedTuple):
    """Rows ``row`` and following of an item at tokens ``[position, position + length)``."""

    position: int
    length: int
    row: int
    identity: bytes

    def within(self, begin: int, end: int) -> _Rows | None:
        """The part at tokens ``[begin, end)``."""
        first = max(self.position, begin)
        last = min(self.position + self.length, end)
        if first >= last:
            return None
        return _Rows(first, last - first, self.row + first - self.position, self.identity)


@dataclass(frozen=True, eq=False)
class PromptContent:
    """What decides the KV of a prompt.

    Attributes:
        token_ids: int32 ``[prompt_len]``.
        rows: Media rows among the shareable tokens, in prompt order.
        shareable: Leading tokens that may be shared: whole blocks before an unidentified item.
        tokens_per_block: Tokens of a block.
        chain: Digest of the scope and the first n shareable blocks, for n = 0, 1, ...
    """

    token_ids: np.ndarray
    rows: tuple[_Rows, ...]
    shareable: int
    tokens_per_block: int
    chain: tuple[bytes, ...]

    @classmethod
    def of(
        cls,
        prompt: ProcessedPrompt,
        cache_salt: str | None,
        tokens_per_block: int,
        adapter: AdapterIdentity | None = None,
    ) -> PromptContent:
        """Digests a prompt; about a microsecond a block."""
        shareable = len(prompt)
        rows = []
        for item in prompt.items:
            row = 0
            for run in item.runs:
                if item.identity is None:
                    shareable = min(shareable, run.position // tokens_per_block * tokens_per_block)
                else:
                    rows.append(_Rows(run.position, run.length, row, bytes(item.identity)))
                row += run.length
        rows.sort()
        scope = repr((cache_salt, prompt.adapter_mode, adapter)).encode()
        token_ids = np.ascontiguousarray(prompt.token_ids, np.int32)
        chain = _chain(scope, token_ids[:shareable], rows, tokens_per_block)
        return cls(token_ids, tuple(rows), shareable, tokens_per_block, chain)

    def common_tokens(self, other: PromptContent, blocks: int) -> int:
        """Leading tokens in common, given that so many blocks are, and looking at one more."""
        begin = blocks * self.tokens_per_block
        end = min(begin + self.tokens_per_block, self.shareable, other.shareable)
        if begin >= end:
            return begin
        differs = np.flatnonzero(self.token_ids[begin:end] != other.token_ids[begin:end])
        if differs.size:
            end = begin + int(differs[0])
        if not self.rows and not other.rows:
            return end
        for mine, theirs in zip_longest(self._rows_in(begin, end), other._rows_in(begin, end)):
            if mine != theirs:
                return min(part.position for part in (mine, theirs) if part is not None)
        return end

    def _rows_in(self, begin: int, end: int) -> Iterator[_Rows]:
        return (part for rows in self.rows if (part := rows.within(begin, end)) is not None)


def _chain(
    scope: bytes, token_ids: np.ndarray, rows: list[_Rows], tokens_per_block: int
) -> tuple[bytes, ...]:
    digest = hashlib.blake2b(scope, digest_size=16)
    chain = [digest.digest()]
    data = memoryview(token_ids.tobytes())
    size = tokens_per_block * token_ids.itemsize
    first = 0  # of the rows that may touch the block
    for block in range(len(token_ids) // tokens_per_block):
        begin = block * tokens_per_block
        digest.update(data[block * size : (block + 1) * size])
        while first < len(rows) and rows[first].position + rows[first].length <= begin:
            first += 1
        for entry in islice(rows, first, None):
            part = entry.within(begin, begin + tokens_per_block)
            if part is None:
                break
            digest.update(struct.pack("<qqq", part.position, part.length, part.row))
            digest.update(part.identity)
        digest.update(b"|")
        chain.append(digest.digest())
    return tuple(chain)


RequestT = TypeVar("RequestT", bound=Hashable)


class PrefixIndex(Generic[RequestT]):
    """Requests by the blocks that their prompts begin with."""

    def __init__(self) -> None:
        self._content: dict[RequestT, PromptContent] = {}
        self._by_chain: dict[bytes, dict[RequestT, None]] = {}

    def add(self, request: RequestT, content: PromptContent) -> None:
        """Adds a request that is not there."""
        self._content[request] = content
        for link in content.chain:
            self._by_chain.setdefault(link, {})[request] = None

    def remove(self, request: RequestT) -> None:
        """Takes a request out, if it is there."""
        content = self._content.pop(request, None)
        for link in content.chain if content is not None else ():
            sharing = self._by_chain[link]
            del sharing[request]
            if not sharing:
                del self._by_chain[link]

    def __len__(self) -> int:
        return len(self._content)

    def nearest(self, content: PromptContent) -> Iterator[tuple[RequestT, int]]:
        """Requests that share the most whole blocks, newest first, and the tokens in common."""
        low, high = -1, len(content.chain) - 1
        while low < high:  # who shares n blocks shares n - 1
            middle = (low + high + 1) // 2
            if content.chain[middle] in self._by_chain:
                low = middle
            else:
                high = middle - 1
        if low < 0:
            return
        sharing = self._by_chain[content.chain[low]]
        for request in islice(reversed(sharing), MAX_COMPARED):
            yield request, content.common_tokens(self._content[request], low)
