# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Finds Matroska and WebM files in which an element is damaged.

FFmpeg looks for the next cluster behind what it cannot read, and drops blocks of tracks that it
does not know: half a video may be missing, and nothing says so. Here every element down to the
blocks must begin where the one before it ends, and be one that may stand there.

Elements: RFC 8794 section 5 (EBML) and RFC 9559 section 5.1 (Matroska).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from tensorrt_llm.errors import MediaError

# More of them than any writer makes; a file of nothing but empty ones must not keep us busy.
_MAX_ELEMENTS = 1_000_000

_SEGMENT = 0x18538067
_TRACKS, _TRACK_ENTRY, _TRACK_NUMBER = 0x1654AE6B, 0xAE, 0xD7
_CLUSTER, _SIMPLE_BLOCK, _BLOCK_GROUP, _BLOCK = 0x1F43B675, 0xA3, 0xA0, 0xA1
_ANYWHERE = frozenset({0xEC, 0xBF})  # Void and CRC-32
_IN_SEGMENT = _ANYWHERE | {
    *(0x114D9B74, 0x1549A966, _TRACKS, _CLUSTER),  # SeekHead, Info
    *(0x1C53BB6B, 0x1941A469, 0x1043A770, 0x1254C367),  # Cues, Attachments, Chapters, Tags
}
_IN_CLUSTER = _ANYWHERE | {
    *(0xE7, 0x5854, 0xA7, 0xAB),  # Timestamp, SilentTracks, Position, PrevSize
    *(_SIMPLE_BLOCK, _BLOCK_GROUP, 0xAF),  # EncryptedBlock
}


class _Element(NamedTuple):
    name: int
    body: int  # where its content begins
    end: int | None  # None where its size is not told, as in recordings that still went on


def check_segment(data: bytes) -> None:
    """Walks the first segment of a file. One without a told size passes, cut off or not.

    Raises:
        MediaError: If the file ends before the segment does, or an element is damaged.
    """
    position = 0
    for _ in range(_MAX_ELEMENTS):
        element = _element(data, position)
        if element is None or element.end is None:
            return
        if element.name == _SEGMENT:
            if element.end > len(data):
                raise MediaError(f"the file is truncated: {len(data)} of {element.end} bytes")
            _check_parts(data, element.body, element.end)
            return
        position = element.end


def _check_parts(data: bytes, position: int, end: int) -> None:
    """Walks the parts of a segment, and what is in its clusters as if it stood beside them."""
    tracks: set[int] = set()
    cluster: _Element | None = None
    for _ in range(_MAX_ELEMENTS):
        if cluster is not None and position == cluster.end:
            cluster = None
        if position == end:
            return
        element = _element(data, position)
        if element is None:
            raise _damaged(position)
        if cluster is not None and cluster.end is None and element.name in _IN_SEGMENT - _ANYWHERE:
            cluster = None
        allowed, limit = (_IN_SEGMENT, end)
        if cluster is not None:
            allowed, limit = _IN_CLUSTER, end if cluster.end is None else cluster.end
        if element.name not in allowed or (element.end or position) > limit:
            raise _damaged(position)
        if element.name == _CLUSTER:
            cluster, position = element, element.body
            continue
        if element.end is None:
            raise _damaged(position)
        if element.name == _TRACKS:
            tracks = set(_track_numbers(data, element))
        elif element.name in (_SIMPLE_BLOCK, _BLOCK_GROUP):
            _check_block(data, element, tracks)
        position = element.end


def _check_block(data: bytes, element: _Element, tracks: set[int]) -> None:
    blocks = [element]
    if element.name == _BLOCK_GROUP:
        blocks = [child for child in _children(data, element) if child.name == _BLOCK]
    for block in blocks:
        track, _ = _number(data, block.body)
        if tracks and track not in tracks:
            raise _damaged(block.body)


def _track_numbers(data: bytes, tracks: _Element) -> Iterator[int]:
    for entry in _children(data, tracks):
        if entry.name == _TRACK_ENTRY:
            for field in _children(data, entry):
                if field.name == _TRACK_NUMBER:
                    yield int.from_bytes(data[field.body : field.end], "big")


def _children(data: bytes, parent: _Element) -> Iterator[_Element]:
    position = parent.body
    while position != parent.end:
        element = _element(data, position)
        if element is None or element.end is None or element.end > (parent.end or 0):
            raise _damaged(position)
        yield element
        position = element.end


def _damaged(position: int) -> MediaError:
    return MediaError(f"the Matroska or WebM file is truncated or damaged at byte {position}")


def _element(data: bytes, position: int) -> _Element | None:
    """The element at a place; None if none can begin there."""
    _, after = _number(data, position)
    name = int.from_bytes(data[position:after], "big")
    size, body = _number(data, after)
    if after == position or body == after:
        return None
    return _Element(name, body, None if size is None else body + size)


def _number(data: bytes, position: int) -> tuple[int | None, int]:
    """A number of variable length and its end; None if it means "unknown".

    The end is the position itself where there is no such number.
    """
    first = data[position] if position < len(data) else 0
    length = 9 - first.bit_length()
    raw = data[position : position + length]
    if first == 0 or len(raw) < length:
        return None, position
    most = (1 << 7 * length) - 1
    number = int.from_bytes(raw, "big") & most
    return None if number == most else number, position + length
