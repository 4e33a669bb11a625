# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Small values as bytes: equal bytes exactly for equal values, nothing left to guess.

A value is one tag byte and its content. Integers below are unsigned and big-endian unless said
otherwise; ``lp(x)`` is the byte length of x as u64, then x.

| value | tag | then |
|---|---|---|
| None | 00 | nothing |
| str | 01 | ``lp(utf-8)``, lone surrogates passed through |
| bytes | 02 | ``lp(raw)`` |
| int | 03 | ``lp(signed two's complement, (bit_length + 8) // 8 bytes)`` |
| float | 04 | IEEE double |
| bool | 05 | u8 0 or 1 |
| list or tuple | 20 | u64 count, the values |
| dict with str keys | 22 | u64 count, then key and value, by the UTF-8 order of the keys |

NumPy scalars count as their Python value. Anything else is refused.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any

import numpy as np

from tensorrt_llm.errors import MediaError

# Deeper than any real option tree, shallower than the interpreter's stack.
_MAX_DEPTH = 32


def canonical_value(value: Any) -> bytes:
    """Encodes a value in the form that the module lays out.

    Args:
        value: None, bool, int, float, str, bytes, a NumPy scalar, or lists, tuples and str-keyed
            mappings of those.

    Raises:
        MediaError: If the value, or one inside it, is of another kind or too deeply nested.
    """
    return _encode(value, 0)


def _encode(value: Any, depth: int) -> bytes:
    if depth > _MAX_DEPTH:
        raise MediaError(f"options are nested more than {_MAX_DEPTH} deep")
    if isinstance(value, np.generic):
        value = value.item()
    if value is None:
        return b"\x00"
    if isinstance(value, str):
        return b"\x01" + _lp(value.encode("utf-8", "surrogatepass"))
    if isinstance(value, bytes):
        return b"\x02" + _lp(value)
    if isinstance(value, bool):
        return b"\x05" + bytes((value,))
    if isinstance(value, int):
        size = (value.bit_length() + 8) // 8
        return b"\x03" + _lp(value.to_bytes(size, "big", signed=True))
    if isinstance(value, float):
        return b"\x04" + struct.pack(">d", value)
    if isinstance(value, (list, tuple)):
        return b"\x20" + u64(len(value)) + b"".join(_encode(v, depth + 1) for v in value)
    if isinstance(value, Mapping):
        return b"\x22" + u64(len(value)) + b"".join(_encode_pairs(value, depth + 1))
    raise MediaError(f"a value of type {type(value).__name__} has no canonical form")


def _encode_pairs(mapping: Mapping[Any, Any], depth: int) -> list[bytes]:
    for key in mapping:
        if not isinstance(key, str):
            raise MediaError(f"a key of type {type(key).__name__} has no canonical form")
    keys = sorted(mapping, key=lambda key: key.encode("utf-8", "surrogatepass"))
    return [_encode(key, depth) + _encode(mapping[key], depth) for key in keys]


def u64(number: int) -> bytes:
    """Eight bytes, big-endian."""
    return struct.pack(">Q", number)


def _lp(content: bytes) -> bytes:
    return u64(len(content)) + content
