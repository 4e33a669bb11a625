# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""The number of a salt, against BLAKE3's published test vector."""

from __future__ import annotations

from tensorrt_llm.inputs.utils import get_cache_salt_id


def test_the_number_is_the_head_of_the_digest() -> None:
    # Official vector of the empty input: af1349b9f5f9a1a6...
    assert get_cache_salt_id("") == int.from_bytes(bytes.fromhex("af1349b9f5f9a1a6"), "little")
    assert get_cache_salt_id("a") != get_cache_salt_id("b")
    assert 0 <= get_cache_salt_id("schl\u00fcssel") < 2**64
