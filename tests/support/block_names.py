# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Names of a prompt's blocks, worked out from the byte layout in docs/kv-cache.md."""

from __future__ import annotations

import hashlib
import struct
from typing import Any


def block_names(rendered: dict[str, Any]) -> list[str]:
    """Names of all whole blocks of a prompt, as ``/v1/chat/completions/render`` describes it."""
    salt, mode = (rendered["cache_salt"] or "").encode(), rendered["adapter_mode"].encode()
    root = b"KVR\x01" + struct.pack("<?q", bool(salt), len(salt)) + salt
    root += struct.pack("<?qqq", False, 0, 0, len(mode)) + mode
    parent, size = hashlib.sha256(root).digest(), rendered["tokens_per_block"]
    rows = _rows(rendered["features"] or {"mm_hashes": {}, "mm_runs": {}})
    names, tokens = [], rendered["token_ids"]
    for begin in range(0, len(tokens) // size * size, size):
        spans = []
        for identity, row, first, length in rows:
            start, stop = max(first, begin), min(first + length, begin + size)
            if start < stop:
                place = struct.pack("<qii", row + start - first, start - begin, stop - start)
                spans.append(identity + place)
        layout = b"KVB\x01" + parent + struct.pack("<ii", size, len(spans))
        layout += struct.pack(f"<{size}i", *tokens[begin : begin + size]) + b"".join(spans)
        parent = hashlib.sha256(layout).digest()
        names.append(parent.hex())
    return names


def _rows(features: dict[str, Any]) -> list[tuple[bytes, int, int, int]]:
    """Identity, first row, position and length of each run, in prompt order."""
    found = []
    for kind, hashes in features["mm_hashes"].items():
        for identity, runs in zip(hashes, features["mm_runs"][kind], strict=True):
            row = 0
            for run in runs:
                found.append((bytes.fromhex(identity), row, run["offset"], run["length"]))
                row += run["length"]
    return sorted(found, key=lambda run: run[2])
