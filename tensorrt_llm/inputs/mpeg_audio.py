# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""How much sound an MP3 file holds, counted header by header.

Without a length header in front (Xing, Info or VBRI) the sound library estimates the length from
the first bit rate, and reads no further than that. The count tells when it stopped early.

Header layout and tables: ISO/IEC 11172-3 section 2.4.2.3 and ISO/IEC 13818-3, layer III.
"""

from __future__ import annotations

_KBITS_MPEG1 = (0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320)
_KBITS_MPEG2 = (0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160)
_RATES_MPEG1 = (44_100, 48_000, 32_000)
_RATE_DIVISORS = {3: 1, 2: 2, 0: 4}  # version bits: MPEG 1, 2, 2.5
_LAYER_3 = 1


def count_mp3_samples(data: bytes) -> int:
    """Counts the samples of one channel that an MP3 file's frames hold.

    Args:
        data: The file. Counting ends at the first bytes that are no frame.

    Returns:
        The number of samples, 0 if the file does not begin with a frame.
    """
    position = _skip_id3(data)
    samples = 0
    while (frame := _frame(data, position)) is not None:
        length, in_frame = frame
        samples += in_frame
        position += length
    return samples


def _skip_id3(data: bytes) -> int:
    if data[:3] != b"ID3" or len(data) < 10:
        return 0
    size = 0
    for byte in data[6:10]:  # seven bits a byte
        size = size << 7 | byte & 0x7F
    return 10 + size


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
