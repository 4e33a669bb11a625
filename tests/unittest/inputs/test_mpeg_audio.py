# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""MP3 files without a length header are read whole, never shortened in silence."""

from __future__ import annotations

import io

import numpy as np
import pytest
import soundfile

from tensorrt_llm.errors import MediaError
from tensorrt_llm.inputs.audio_form import decode_audio
from tensorrt_llm.inputs.media_limits import MediaLimits
from tensorrt_llm.inputs.mpeg_audio import (
    check_adts_is_whole,
    count_mp3_samples,
    find_mpeg_audio,
)

LIMITS = MediaLimits()


def mp3(seconds: float, rate: int, level: float) -> bytes:
    samples = 0.3 * np.random.default_rng(0).standard_normal(int(seconds * rate))
    buffer = io.BytesIO()
    soundfile.write(
        buffer,
        samples,
        rate,
        format="MP3",
        subtype="MPEG_LAYER_III",
        compression_level=level,
        bitrate_mode="CONSTANT",
    )
    return buffer.getvalue()


def without_length_header(data: bytes) -> bytes:
    """Drops the first frame where it holds nothing but the length."""
    if b"Info" not in data[:200] and b"Xing" not in data[:200]:
        return data
    second = data.index(data[:2], 4)
    while count_mp3_samples(data[second:]) == 0:
        second = data.index(data[:2], second + 1)
    return data[second:]


@pytest.mark.parametrize("rate", [8000, 16_000, 44_100])
def test_counts_what_was_encoded(rate) -> None:
    data = mp3(2.0, rate, 0.5)
    per_frame = 1152 if rate == 44_100 else 576
    assert 2 * rate < count_mp3_samples(data) <= 2 * rate + 4 * per_frame
    tagged = b"ID3\x04\x00\x00\x00\x00\x02\x01" + bytes(257) + data
    assert count_mp3_samples(tagged) == count_mp3_samples(data)


@pytest.mark.parametrize("data", [b"", b"ID3", b"\xff\xfb", b"RIFF....WAVE", b"\xff" * 100])
def test_what_does_not_begin_with_a_frame_holds_nothing(data) -> None:
    assert count_mp3_samples(data) == 0


def test_one_bit_rate_is_read_whole_without_a_header() -> None:
    data = without_length_header(mp3(2.0, 16_000, 0.5))
    assert decode_audio(data, LIMITS).num_frames == count_mp3_samples(data)


def test_a_file_that_the_sound_library_would_shorten_is_read_whole() -> None:
    high = without_length_header(mp3(1.0, 16_000, 0.0))
    low = without_length_header(mp3(6.0, 16_000, 0.99))
    assert len(low) < 3 * len(high), "the second part must have a much lower bit rate"
    whole, held = high + low, count_mp3_samples(high + low)
    assert soundfile.info(io.BytesIO(whole)).frames < held // 2
    audio = decode_audio(whole, LIMITS)
    assert held - 4 * 576 <= audio.num_frames <= held
    # The sound is that of the parts, each decoded by the other library.
    apart = [soundfile.read(io.BytesIO(part), dtype="float32")[0] for part in (high, low)]
    for part, start in zip(apart, (0, count_mp3_samples(high)), strict=True):
        middle = slice(4000, 12_000)
        assert best_correlation(audio.samples[start:][middle], part[middle]) > 0.99


def best_correlation(one: np.ndarray, other: np.ndarray) -> float:
    """Correlation at the best of all small shifts: decoders differ in the delay they remove."""
    core = slice(2000, -2000)
    return max(
        float(np.corrcoef(np.roll(one, shift)[core], other[core])[0, 1])
        for shift in range(-1500, 1501)
    )


def test_the_same_with_a_header_is_read_whole() -> None:
    assert decode_audio(mp3(6.0, 16_000, 0.5), LIMITS).num_frames == 96_000


def test_filling_behind_a_tag_is_passed_over() -> None:
    data = mp3(2.0, 16_000, 0.5)
    tag = b"ID3\x04\x00\x00\x00\x00\x02\x01" + bytes(257)
    for filling in (bytes(500), b"\xff" * 500, b"\xff\xfb\x90\x00" + bytes(20)):
        assert count_mp3_samples(tag + filling + data) == count_mp3_samples(data)
        assert find_mpeg_audio(tag + filling + data) == "mp3"
    assert count_mp3_samples(tag + bytes(10**6)) == 0


def adts(payload: int = 100) -> bytes:
    """A frame of AAC: header by ISO/IEC 13818-7, payload of zeros."""
    length = 7 + payload
    return bytes(
        (0xFF, 0xF1, 0x50, 0x80 | length >> 11, length >> 3 & 255, (length & 7) << 5, 0)
    ) + (bytes(payload))


def test_aac_frames_are_found_and_counted() -> None:
    tag = b"ID3\x04\x00\x00\x00\x00\x00\x05" + bytes(5)
    for data in (adts(), adts() * 3, tag + adts(), adts(2000)):
        assert find_mpeg_audio(data) == "aac"
        check_adts_is_whole(data)
        check_adts_is_whole(data + b"TAG")
    for data in (b"", b"\xff\xf1", bytes(100), mp3(0.5, 16_000, 0.5)):
        assert find_mpeg_audio(data) != "aac"
        check_adts_is_whole(data)
    for cut in (1, 50, 99):
        with pytest.raises(MediaError, match=rf"{214 - cut} bytes, its last frame ends at 214"):
            check_adts_is_whole((adts() * 2)[:-cut])
