# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Finds MP4, Matroska, AVI, Ogg and transport stream files that end too early.

Players go on with what is there. A recording cut off on its way is not the recording that was
sent, so it is refused. Only the outermost structure is walked, which costs nothing;
Matroska has a file of its own.

MP4 boxes: ISO/IEC 14496-12 section 4.2. Ogg pages: RFC 3533. AVI: RIFF chunks.
"""

from __future__ import annotations

import struct

from tensorrt_llm.errors import MediaError
from tensorrt_llm.inputs.matroska_structure import check_segment

# More of them than any writer makes; a file of nothing but empty ones must not keep us busy.
_MAX_PARTS = 1_000_000
_OGG_LAST_PAGE = 0x04
_TRANSPORT_PACKET = 188


def check_whole(data: bytes, container: str) -> None:
    """Compares where the outermost parts of a file end with where the file ends.

    Args:
        data: The file.
        container: A key of ``av_decode.CONTAINERS``. Those without such parts pass.

    Raises:
        MediaError: If the file ends too early.
    """
    if container == "mov":
        _check_boxes(data)
    elif container == "matroska":
        check_segment(data)
    elif container == "ogg":
        _check_pages(data)
    elif container == "avi":
        _check_end(data, 8 + int.from_bytes(data[4:8], "little"))
    elif container == "mpegts" and (rest := len(data) % _TRANSPORT_PACKET):
        raise MediaError(
            f"the file is truncated: {rest} of {_TRANSPORT_PACKET} bytes of its last packet"
        )


def _check_end(data: bytes, end: int) -> None:
    if end > len(data):
        raise MediaError(f"the file is truncated: {len(data)} of {end} bytes")


def _check_boxes(data: bytes) -> None:
    position = 0
    for _ in range(_MAX_PARTS):
        if position + 8 > len(data):
            break
        (size,) = struct.unpack_from(">I", data, position)
        if size == 1 and position + 16 <= len(data):
            (size,) = struct.unpack_from(">Q", data, position + 8)
        if size < 8:  # 0: until the end of the file. Others are none; FFmpeg says what it is.
            return
        position += size
        _check_end(data, position)


def _check_pages(data: bytes) -> None:
    position, flags = 0, 0
    for _ in range(_MAX_PARTS):
        if data[position : position + 4] != b"OggS" or position + 27 > len(data):
            break
        flags, segments = data[position + 5], data[position + 26]
        lacing = data[position + 27 : position + 27 + segments]
        position += 27 + segments + sum(lacing)
        _check_end(data, position)
    if not flags & _OGG_LAST_PAGE:
        raise MediaError("the Ogg file is truncated: its last page is missing")
