# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Prompts as a model of the cache sees them: what each token means, and the names of blocks.

Names are worked out from the byte layout in docs/kv-cache.md, not from the manager's code.
"""

from __future__ import annotations

import hashlib
import struct
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tensorrt_llm.bindings import MediaBatch, MediaRuns, ReuseScope

Span = tuple[int, int, int, int]  # look, first row, offset in the block, length
Name = bytes


class Scope(NamedTuple):
    salt: str | None
    adapter_id: int | None
    adapter_version: int
    mode: str

    def reuse_scope(self) -> ReuseScope:
        return ReuseScope(*self)


class Run(NamedTuple):
    item: int
    position: int
    length: int


class Item(NamedTuple):
    look: int  # the byte that fills its digest
    identified: bool


@dataclass(frozen=True)
class Prompt:
    """What a request asks for. Runs are in order; an item's rows go on from run to run."""

    tokens: tuple[int, ...]
    scope: Scope
    items: tuple[Item, ...] = ()
    runs: tuple[Run, ...] = ()

    def spans(self) -> list[tuple[Item, int, int, int]]:
        """Item, first row, position and length of each run."""
        seen = [0] * len(self.items)
        found = []
        for run in self.runs:
            found.append((self.items[run.item], seen[run.item], run.position, run.length))
            seen[run.item] += run.length
        return found

    def meanings(self, secret: int) -> list[object]:
        """What decides the KV of each token, but for what stands before it.

        Args:
            secret: What items without identity look like this time.
        """
        found: list[object] = list(self.tokens)
        for item, first_row, position, length in self.spans():
            look = item.look if item.identified else ("secret", secret)
            for row in range(length):
                found[position + row] = (self.tokens[position + row], look, first_row + row)
        return found

    def block_spans(self, begin: int, end: int) -> tuple[Span, ...]:
        """The parts of runs in tokens [begin, end), as a block's key has them."""
        found = []
        for item, first_row, position, length in self.spans():
            start, stop = max(position, begin), min(position + length, end)
            if start < stop:
                row = first_row + start - position
                found.append((item.look, row, start - begin, stop - start))
        return tuple(found)

    def first_unidentified(self) -> int | None:
        unknown = [position for item, _, position, _ in self.spans() if not item.identified]
        return min(unknown, default=None)

    def media(self) -> MediaRuns | None:
        return join_media([self]) if self.runs else None


def join_media(prompts: list[Prompt]) -> MediaRuns:
    """The media of several prompts, end to end."""
    items = [item for prompt in prompts for item in prompt.items]
    runs = [run for prompt in prompts for run in prompt.runs]
    rows = [
        sum(run.length for run in prompt.runs if run.item == index)
        for prompt in prompts
        for index in range(len(prompt.items))
    ]
    looks = np.array([item.look for item in items], np.uint8).reshape(-1, 1)
    return MediaRuns(
        np.repeat(looks, 32, axis=1),
        np.array([item.identified for item in items], np.bool_),
        np.array([run.item for run in runs], np.int32),
        np.array([run.position for run in runs], np.int64),
        np.array([run.length for run in runs], np.int64),
        np.array(rows, np.int64),
    )


def media_batch(prompts: list[Prompt]) -> MediaBatch:
    counts = [(0, 0), *((len(prompt.items), len(prompt.runs)) for prompt in prompts)]
    offsets = np.cumsum(np.array(counts, np.int64), axis=0)
    return MediaBatch(join_media(prompts), offsets[:, 0].copy(), offsets[:, 1].copy())


def root_name(scope: Scope) -> Name:
    salt, mode = (scope.salt or "").encode(), scope.mode.encode()
    layout = b"KVR\x01" + struct.pack("<BQ", scope.salt is not None, len(salt)) + salt
    layout += struct.pack("<Bq", scope.adapter_id is not None, scope.adapter_id or 0)
    layout += struct.pack("<qQ", scope.adapter_version, len(mode)) + mode
    return hashlib.sha256(layout).digest()


def block_name(parent: Name, tokens: tuple[int, ...], spans: tuple[Span, ...]) -> Name:
    layout = b"KVB\x01" + parent + struct.pack("<II", len(tokens), len(spans))
    layout += struct.pack(f"<{len(tokens)}i", *tokens)
    for look, row, offset, length in spans:
        layout += bytes([look]) * 32 + struct.pack("<qii", row, offset, length)
    return hashlib.sha256(layout).digest()


class Contents:
    """A number for the KV of each token: equal only for equal scope, tokens, items and rows."""

    def __init__(self) -> None:
        self.numbers: dict[tuple[object, object], int] = {}

    def after(self, before: object, meaning: object) -> int:
        return self.numbers.setdefault((before, meaning), len(self.numbers) + 1)

    def of(self, scope: Scope, meanings: list[object]) -> list[int]:
        found: list[int] = []
        for meaning in meanings:
            found.append(self.after(found[-1] if found else scope, meaning))
        return found
