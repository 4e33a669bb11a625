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
from functools import lru_cache
from typing import Any

import numpy as np

from tensorrt_llm.errors import MediaError

# Deeper than any real option tree, shallower than the interpreter's stack.
_MAX_DEPTH = 32
# Sets of keys whose order is remembered: there are as many as there are kinds of descriptions.
_KNOWN_KEYS = 64
_MAX_KNOWN_KEYS = 16

_pack_u64 = struct.Struct(">Q").pack
_pack_double = struct.Struct(">d").pack


def canonical_value(value: Any) -> bytes:
    """Encodes a value in the form that the module lays out.

    Args:
        value: None, bool, int, float, str, bytes, a NumPy scalar, or lists, tuples and str-keyed
            mappings of those.

    Raises:
        MediaError: If the value, or one inside it, is of another kind or too deeply nested.
    """
    return _encode(value, 0)


def plain_value(value: str | bytes | bool | float) -> bytes:
    """Encodes a value of a kind that is written alike here and in ``mm_hashes``."""
    if isinstance(value, str):
        return b"\x01" + lp(value.encode("utf-8", "surrogatepass"))
    if isinstance(value, bytes):
        return b"\x02" + lp(value)
    if isinstance(value, bool):
        return b"\x05" + bytes((value,))
    return b"\x04" + _pack_double(value)


def u64(number: int) -> bytes:
    """Eight bytes, big-endian."""
    return _pack_u64(number)


def lp(content: bytes) -> bytes:
    """Bytes after their length."""
    return _pack_u64(len(content)) + content


def _encode(value: Any, depth: int) -> bytes:
    # Every payload's description comes through here, so the usual kinds are asked for first.
    kind = type(value)
    if kind is str:
        raw = value.encode("utf-8", "surrogatepass")
        return b"\x01" + _pack_u64(len(raw)) + raw
    if kind is int:
        size = (value.bit_length() + 8) // 8
        return b"\x03" + _pack_u64(size) + value.to_bytes(size, "big", signed=True)
    if depth > _MAX_DEPTH:
        raise MediaError(f"options are nested more than {_MAX_DEPTH} deep")
    if isinstance(value, np.generic):
        return _encode(value.item(), depth)
    if value is None:
        return b"\x00"
    if isinstance(value, (str, bytes, bool, float)):
        return plain_value(value)
    if isinstance(value, int):
        return _encode(int(value), depth)
    if isinstance(value, (list, tuple)):
        return b"\x20" + _pack_u64(len(value)) + b"".join([_encode(v, depth + 1) for v in value])
    if isinstance(value, Mapping):
        order = _ordered_known if len(value) <= _MAX_KNOWN_KEYS else _ordered
        parts = [b"\x22", _pack_u64(len(value))]
        for key, encoded in order(tuple(value)):
            parts += (encoded, _encode(value[key], depth + 1))
        return b"".join(parts)
    raise MediaError(f"a value of type {type(value).__name__} has no canonical form")


def _ordered(keys: tuple[Any, ...]) -> tuple[tuple[str, bytes], ...]:
    """Keys in their order, each with its encoding."""
    for key in keys:
        if not isinstance(key, str):
            raise MediaError(f"a key of type {type(key).__name__} has no canonical form")
    return tuple(
        (key, plain_value(key))
        for key in sorted(keys, key=lambda key: key.encode("utf-8", "surrogatepass"))
    )


_ordered_known = lru_cache(_KNOWN_KEYS)(_ordered)
