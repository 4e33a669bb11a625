# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Finds chunked sound files (WAV, RF64, AIFF) whose sample data ends early.

The sound library shortens such a file silently to what is there. A clip cut off on its way is not
the clip that its header promises, so it is refused, with both numbers.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from tensorrt_llm.errors import MediaError

# Writers that cannot seek back leave a size near the top of 31 or 32 bits: "until the end".
_UNKNOWN_SIZE = 0x7FFF0000
# More chunks than any writer makes; a file of nothing but empty chunks must not keep us busy.
_MAX_CHUNKS = 1024
_WAVE_KINDS_OF_ONE_FRAME_A_BLOCK = (0x0001, 0x0003, 0x0006, 0x0007, 0xFFFE)


@dataclass(frozen=True)
class _Chunk:
    name: bytes
    start: int
    size: int


def check_not_truncated(data: bytes) -> None:
    """Compares the sample data that a chunked sound file declares with what it holds.

    Args:
        data: The encoded file. Files that are not chunked pass.

    Raises:
        MediaError: If the sample data ends early.
    """
    kind, form = data[:4], data[8:12]
    if kind in (b"RIFF", b"RIFX", b"RF64") and form == b"WAVE":
        _check_wave(data, ">" if kind == b"RIFX" else "<")
    elif kind == b"FORM" and form in (b"AIFF", b"AIFC"):
        _check_aiff(data)


def _chunks(data: bytes, order: str) -> Iterator[_Chunk]:
    start = 12
    for _ in range(_MAX_CHUNKS):
        if start + 8 > len(data):
            return
        name, size = struct.unpack_from(f"{order}4sI", data, start)
        yield _Chunk(name, start + 8, size)
        start += 8 + size + (size & 1)


def _check_wave(data: bytes, order: str) -> None:
    block, unit, long_size = 1, "bytes", None
    for chunk in _chunks(data, order):
        if chunk.name == b"fmt " and chunk.start + 14 <= len(data):
            tag, align = struct.unpack_from(f"{order}H10xH", data, chunk.start)
            block = max(align, 1)
            unit = "frames" if tag in _WAVE_KINDS_OF_ONE_FRAME_A_BLOCK else "blocks"
        elif chunk.name == b"ds64" and chunk.start + 16 <= len(data):
            (long_size,) = struct.unpack_from(f"{order}Q", data, chunk.start + 8)
        elif chunk.name == b"data":
            size = chunk.size
            if size >= _UNKNOWN_SIZE:
                if long_size is None:
                    return
                size = long_size
            _compare(len(data) - chunk.start, size, block, unit)
            return


def _check_aiff(data: bytes) -> None:
    for chunk in _chunks(data, ">"):
        if chunk.name == b"SSND" and chunk.size < _UNKNOWN_SIZE:
            _compare(len(data) - chunk.start, chunk.size, 1, "bytes")
            return


def _compare(present: int, declared: int, block: int, unit: str) -> None:
    if present < declared:
        raise MediaError(
            f"the audio is truncated: {present // block} of {declared // block} {unit}"
        )
