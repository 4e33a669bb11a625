# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""MPEG audio streams, header by header: which kind, how much sound an MP3 holds, a cut AAC file.

Without a length header in front (Xing, Info or VBRI) the sound library estimates the length of an
MP3 file from the first bit rate, and reads no further than that. The count tells when it stopped
early.

MP3: ISO/IEC 11172-3 section 2.4.2.3 and ISO/IEC 13818-3, layer III. AAC in ADTS frames:
ISO/IEC 13818-7 section 6.2.
"""

from __future__ import annotations

from tensorrt_llm.errors import MediaError

_KBITS_MPEG1 = (0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320)
_KBITS_MPEG2 = (0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160)
_RATES_MPEG1 = (44_100, 48_000, 32_000)
_RATE_DIVISORS = {3: 1, 2: 2, 0: 4}  # version bits: MPEG 1, 2, 2.5
_LAYER_3 = 1
_MAX_FILLING = 16_384


def count_mp3_samples(data: bytes) -> int:
    """Counts the samples of one channel that an MP3 file's frames hold.

    Args:
        data: The file. Counting ends at the first bytes that are no frame.

    Returns:
        The number of samples, 0 if the file does not begin with a frame.
    """
    position = _first_frame(data)
    samples = 0
    while (frame := _frame(data, position)) is not None:
        length, in_frame = frame
        samples += in_frame
        position += length
    return samples


def find_mpeg_audio(data: bytes) -> str | None:
    """``"mp3"`` or ``"aac"`` if a file begins with a frame of one, behind any tags; else None."""
    if _adts_length(data, _after_tags(data)) is not None:
        return "aac"
    return "mp3" if _frame(data, _first_frame(data)) is not None else None


def check_adts_is_whole(data: bytes) -> None:
    """Refuses a stream of AAC frames whose last frame is cut.

    Raises:
        MediaError: If it is.
    """
    position = _after_tags(data)
    while (length := _adts_length(data, position)) is not None:
        position += length
    if position > len(data):
        raise MediaError(
            f"the AAC audio is truncated: {len(data)} bytes, its last frame ends at {position}"
        )


def _adts_length(data: bytes, position: int) -> int | None:
    header = data[position : position + 7]
    if len(header) < 7 or header[0] != 0xFF or header[1] & 0xF6 != 0xF0:
        return None
    length = (header[3] & 3) << 11 | header[4] << 3 | header[5] >> 5
    return length if length >= len(header) else None


def _after_tags(data: bytes) -> int:
    """Where the first frame is expected: behind the ID3 tags in front."""
    position = 0
    while data[position : position + 3] == b"ID3" and len(data) >= position + 10:
        size = 0
        for byte in data[position + 6 : position + 10]:  # seven bits a byte
            size = size << 7 | byte & 0x7F
        position += 10 + size
    return position


def _first_frame(data: bytes) -> int:
    """Where the first MP3 frame is; where it is expected if none is found near.

    Behind a tag there may be filling that the tag does not count. Two frames in a row are asked
    for, since filling may look like one.
    """
    expected = _after_tags(data)
    if expected == 0:
        return expected
    for position in range(expected, min(expected + _MAX_FILLING, len(data))):
        frame = _frame(data, position) if data[position] == 0xFF else None
        if frame is not None and _frame(data, position + frame[0]) is not None:
            return position
    return expected


def _frame(data: bytes, position: int) -> tuple[int, int] | None:
    """Bytes and samples of the frame at a position; None if there is none, or not all of it."""
    if position + 4 > len(data):
        return None
    header = int.from_bytes(data[position : position + 4], "big")
    version, layer = header >> 19 & 3, header >> 17 & 3
    bit_rate, rate, padding = header >> 12 & 15, header >> 10 & 3, header >> 9 & 1
    if header >> 21 != 0x7FF or layer != _LAYER_3 or version not in _RATE_DIVISORS:
        return None
    if bit_rate in (0, 15) or rate == 3:
        return None
    mpeg1 = version == 3
    kbits = (_KBITS_MPEG1 if mpeg1 else _KBITS_MPEG2)[bit_rate]
    samples = 1152 if mpeg1 else 576
    length = samples // 8 * kbits * 1000 // (_RATES_MPEG1[rate] // _RATE_DIVISORS[version])
    length += padding
    return (length, samples) if position + length <= len(data) else None
