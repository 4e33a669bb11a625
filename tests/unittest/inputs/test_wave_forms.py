# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""WAV in every form that recorders write, against samples worked out by hand."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from tensorrt_llm.inputs.audio_form import decode_audio
from tensorrt_llm.inputs.media_limits import MediaLimits
from tensorrt_llm.inputs.multimodal_data import AudioData, MediaHasher

LIMITS = MediaLimits()
PCM, FLOAT, A_LAW, MU_LAW, EXTENSIBLE = 1, 3, 6, 7, 0xFFFE


def wav(
    tag: int,
    bits: int,
    data: bytes,
    *,
    rate: int = 8000,
    channels: int = 1,
    extra: bytes = b"",
    before: bytes = b"",
    after: bytes = b"",
    size: int | None = None,
) -> bytes:
    """A WAV file, byte by byte."""
    align = channels * bits // 8
    form = struct.pack("<HHIIHH", tag, channels, rate, rate * align, align, bits) + extra
    body = b"WAVEfmt " + struct.pack("<I", len(form)) + form + before
    body += b"data" + struct.pack("<I", len(data) if size is None else size) + data
    body += bytes(len(data) & 1) + after
    return b"RIFF" + struct.pack("<I", min(len(body), 0xFFFFFFFF)) + body


def decode(data: bytes) -> AudioData:
    return decode_audio(data, LIMITS)


def g711_mu(code: int) -> float:
    """ITU-T G.711, table 2a, by its formula."""
    code = ~code & 0xFF
    magnitude = ((code & 15) * 2 + 33 << (code >> 4 & 7)) - 33
    return (-magnitude if code & 128 else magnitude) * 4 / 2**15


def g711_a(code: int) -> float:
    """ITU-T G.711, table 1a, by its formula."""
    code ^= 0x55
    segment, step = code >> 4 & 7, code & 15
    magnitude = step * 2 + 1 if segment == 0 else step * 2 + 33 << segment - 1
    return (magnitude if code & 128 else -magnitude) * 8 / 2**15


ALL_BYTES = bytes(range(256))
WORDS = np.arange(-(2**15), 2**15, 37)
WIDE = np.arange(-(2**23), 2**23, 70_001)
WHOLE = np.arange(-(2**31), 2**31, 30_000_001)
FLOATS = np.linspace(-1, 1, 501)
FORMS = {
    "8 bits": (wav(PCM, 8, ALL_BYTES), (np.arange(256) - 128) / 128),
    "16 bits": (wav(PCM, 16, WORDS.astype("<i2").tobytes()), WORDS / 2**15),
    "24 bits": (
        wav(PCM, 24, b"".join(int(w).to_bytes(3, "little", signed=True) for w in WIDE)),
        WIDE / 2**23,
    ),
    "32 bits": (wav(PCM, 32, WHOLE.astype("<i4").tobytes()), WHOLE / 2**31),
    "float": (wav(FLOAT, 32, FLOATS.astype("<f4").tobytes()), FLOATS),
    "double": (wav(FLOAT, 64, FLOATS.astype("<f8").tobytes()), FLOATS),
    "mu-law": (wav(MU_LAW, 8, ALL_BYTES), [g711_mu(code) for code in range(256)]),
    "A-law": (wav(A_LAW, 8, ALL_BYTES), [g711_a(code) for code in range(256)]),
}


@pytest.mark.parametrize("name", FORMS)
def test_every_sample_is_the_one_that_was_written(name) -> None:
    data, expected = FORMS[name]
    audio = decode(data)
    assert audio.sample_rate == 8000
    np.testing.assert_array_equal(audio.samples, np.asarray(expected, dtype=np.float32))


@pytest.mark.parametrize("valid", [16, 12])
def test_the_extensible_form(valid) -> None:
    kind = struct.pack("<H", PCM) + bytes.fromhex("0000000010008000 00aa00389b71")
    extra = struct.pack("<HHI", 22, valid, 4) + kind
    data = wav(EXTENSIBLE, 16, WORDS.astype("<i2").tobytes(), extra=extra)
    np.testing.assert_array_equal(decode(data).samples, (WORDS / 2**15).astype(np.float32))


def test_other_chunks_of_odd_length_change_nothing() -> None:
    odd = b"LIST" + struct.pack("<I", 3) + b"abc\0"
    data = WORDS[:-1].astype("<i2").tobytes()
    plain = decode(wav(PCM, 16, data))
    hasher = MediaHasher()
    for before, after in ((odd, b""), (b"", odd), (odd * 3, odd)):
        other = decode(wav(PCM, 16, data, before=before, after=after))
        assert hasher.payload_digest("audio", other) == hasher.payload_digest("audio", plain)
    one_less = decode(wav(PCM, 8, ALL_BYTES[:-1]))
    assert one_less.num_frames == 255


@pytest.mark.parametrize("size", [0xFFFFFFFF, 0x7FFFFFFF])
def test_a_recorder_that_could_not_seek_back(size) -> None:
    data = wav(PCM, 16, WORDS.astype("<i2").tobytes(), size=size)
    np.testing.assert_array_equal(decode(data).samples, (WORDS / 2**15).astype(np.float32))


@pytest.mark.parametrize("rate", [8000, 11_025, 16_000, 44_100, 96_000, 192_000])
@pytest.mark.parametrize("channels", [1, 2, 6])
def test_any_rate_and_number_of_channels(rate, channels) -> None:
    frames = (WORDS[: len(WORDS) // channels * channels].reshape(-1, channels) / 2**15).astype("f4")
    data = (frames * 2**15).astype("<i2").tobytes()
    audio = decode(wav(PCM, 16, data, rate=rate, channels=channels))
    assert (audio.sample_rate, audio.num_channels) == (rate, channels)
    np.testing.assert_array_equal(audio.samples.reshape(-1, channels), frames)
