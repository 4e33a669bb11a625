# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Keys of made-up chains of blocks."""

from __future__ import annotations

import hashlib

from tensorrt_llm.serve.routing.block_index import key_of


def chain_names(*parts: int) -> list[bytes]:
    """Names of a chain of blocks, one a part; equal beginnings give equal ones."""
    names, parent = [], b""
    for part in parts:
        parent = hashlib.sha256(parent + part.to_bytes(4, "little")).digest()
        names.append(parent)
    return names


def chain(*parts: int) -> list[int]:
    """The keys of these names."""
    return [key_of(name) for name in chain_names(*parts)]
