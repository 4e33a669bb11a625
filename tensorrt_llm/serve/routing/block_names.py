# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Names of a prompt's blocks, as cache events have them (the layout is in docs/kv-cache.md)."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tensorrt_llm.executor.request import AdapterIdentity
from tensorrt_llm.inputs.data import ProcessedPrompt

_ROOT, _BLOCK = b"KVR\x01", b"KVB\x01"


@dataclass(frozen=True)
class NameScope:
    """What separates prompts of equal tokens and media.

    Attributes:
        cache_salt: The tenant's salt; None or empty shares with the unsalted.
        adapter: The adapter that answers; None: the model's own weights.
        adapter_mode: What the family selects from the modalities present.
    """

    cache_salt: str | None = None
    adapter: AdapterIdentity | None = None
    adapter_mode: str = ""

    def name(self) -> bytes:
        """The name that the first blocks have as their parent, 32 bytes."""
        salt, mode = (self.cache_salt or "").encode(), self.adapter_mode.encode()
        one = self.adapter
        identity = (False, 0, 0) if one is None else (True, one.adapter_id, one.version)
        layout = _ROOT + struct.pack("<?q", bool(salt), len(salt)) + salt
        return hashlib.sha256(layout + struct.pack("<?qqq", *identity, len(mode)) + mode).digest()


@dataclass(frozen=True)
class _Rows:
    """Consecutive tokens that hold rows of an item."""

    position: int
    length: int
    identity: bytes | None
    first_row: int


def prompt_names(prompt: ProcessedPrompt, tokens_per_block: int, scope: NameScope) -> list[bytes]:
    """Names of the prompt's whole blocks, first to last, 32 bytes each.

    They end before the first block that holds a row of an item without identity: nothing from there
    on is shared.

    Args:
        prompt: Tokens and media.
        tokens_per_block: Tokens of a block.
        scope: The rest of what decides the name; its mode must be the prompt's.
    """
    rows = _rows(prompt)
    ids = np.ascontiguousarray(prompt.token_ids, "<i4").tobytes()
    names, parent, following = [], scope.name(), 0
    for begin in range(0, len(prompt) // tokens_per_block * tokens_per_block, tokens_per_block):
        end = begin + tokens_per_block
        while following < len(rows) and rows[following].position + rows[following].length <= begin:
            following += 1
        spans = _spans(rows, following, begin, end)
        if spans is None:
            break
        layout = b"".join((_BLOCK, parent, struct.pack("<ii", tokens_per_block, len(spans))))
        parent = hashlib.sha256(b"".join((layout, ids[4 * begin : 4 * end], *spans))).digest()
        names.append(parent)
    return names


def _rows(prompt: ProcessedPrompt) -> list[_Rows]:
    found = []
    for item in prompt.items:
        row = 0
        for run in item.runs:
            found.append(_Rows(run.position, run.length, item.identity, row))
            row += run.length
    return sorted(found, key=lambda rows: rows.position)


def _spans(rows: Sequence[_Rows], first: int, begin: int, end: int) -> list[bytes] | None:
    """The layout of each run in a block; None if one of them has no identity."""
    spans = []
    for index in range(first, len(rows)):
        run = rows[index]
        if run.position >= end:
            break
        if run.identity is None:
            return None
        start, stop = max(run.position, begin), min(run.position + run.length, end)
        place = (run.first_row + start - run.position, start - begin, stop - start)
        spans.append(run.identity + struct.pack("<qii", *place))
    return spans
