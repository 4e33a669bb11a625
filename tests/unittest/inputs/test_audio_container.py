# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import io
import struct

import numpy as np
import pytest
import soundfile

from tensorrt_llm.errors import MediaError
from tensorrt_llm.inputs.audio_container import check_not_truncated

SAMPLES = np.sin(np.arange(1000) / 5).astype(np.float32)


def encode(
    format: str, subtype: str | None = None, channels: int = 1, endian: str = "FILE"
) -> bytes:
    buffer = io.BytesIO()
    samples = np.stack([SAMPLES] * channels, axis=1)
    soundfile.write(buffer, samples, 16000, format=format, subtype=subtype, endian=endian)
    return buffer.getvalue()


def wave(declared: int, present: int, *, before: bytes = b"", align: int = 2) -> bytes:
    header = struct.pack("<HHIIHH", 1, align // 2, 16000, 16000 * align, align, 16)
    body = b"WAVEfmt " + struct.pack("<I", 16) + header + before
    body += b"data" + struct.pack("<I", declared) + bytes(present)
    return b"RIFF" + struct.pack("<I", len(body)) + body


@pytest.mark.parametrize(
    ("format", "subtype", "endian"),
    [
        ("WAV", "PCM_16", "FILE"),
        ("WAV", "PCM_U8", "FILE"),
        ("WAV", "PCM_24", "FILE"),
        ("WAV", "PCM_16", "BIG"),
        ("WAV", "FLOAT", "FILE"),
        ("WAV", "ULAW", "FILE"),
        ("WAV", "IMA_ADPCM", "FILE"),
        ("WAVEX", "PCM_16", "FILE"),
        ("RF64", "PCM_16", "FILE"),
        ("AIFF", "PCM_16", "FILE"),
    ],
)
def test_a_file_cut_anywhere_in_its_samples_is_refused_and_the_whole_is_not(
    format, subtype, endian
):
    data = encode(format, subtype, endian=endian)
    check_not_truncated(data)
    for cut in (2, 100, len(data) // 3):
        with pytest.raises(MediaError, match=r"truncated: \d+ of \d+ (frames|blocks|bytes)"):
            check_not_truncated(data[:-cut])


def test_the_message_carries_both_numbers_of_frames():
    with pytest.raises(MediaError, match=r"truncated: 300 of 1000 frames"):
        check_not_truncated(wave(4000, 1200, align=4))


@pytest.mark.parametrize("size", [0x7FFFFFFF, 0xFFFFFFFF, 0x7FFFF000])
def test_a_size_that_means_until_the_end_is_taken(size):
    check_not_truncated(wave(size, 100))


def test_odd_and_unknown_chunks_are_passed_over():
    odd = b"LIST" + struct.pack("<I", 3) + b"abc\x00"
    check_not_truncated(wave(100, 100, before=odd))
    with pytest.raises(MediaError, match="49 of 50 frames"):
        check_not_truncated(wave(100, 98, before=odd))


def test_more_than_the_samples_is_no_fault():
    check_not_truncated(wave(100, 150))


@pytest.mark.parametrize(
    "data", [b"", b"RIFF", b"RIFF\x00\x00\x00\x00WAVE", b"fLaC" + bytes(100), bytes(50)]
)
def test_what_is_not_chunked_passes(data):
    check_not_truncated(data)


def test_a_header_cut_anywhere_raises_nothing_else():
    for data in (wave(100, 100), encode("AIFF"), encode("RF64")):
        for end in range(len(data)):
            try:
                check_not_truncated(data[:end])
            except MediaError as error:
                assert "truncated" in str(error)


def test_a_file_of_empty_chunks_does_not_keep_us_busy():
    check_not_truncated(b"RIFF\x00\x00\x00\x00WAVE" + b"junk\x00\x00\x00\x00" * 1_000_000)
