# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Helpers by upstream's names, for programs beside the server."""

from __future__ import annotations

import blake3

_ID_BYTES = 8


def get_cache_salt_id(cache_salt: str) -> int:
    """The 64-bit number by which upstream's routers know a salt.

    Nothing here depends on it: requests share KV blocks only if their salts are equal texts.

    Args:
        cache_salt: The salt.

    Returns:
        The first 8 bytes of the BLAKE3 digest of its UTF-8 text, as an unsigned little-endian
        number.
    """
    return int.from_bytes(blake3.blake3(cache_salt.encode()).digest()[:_ID_BYTES], "little")
