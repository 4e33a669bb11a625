# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Sound in containers that only FFmpeg reads: whole, at the right length, or refused."""

from __future__ import annotations

import io

import numpy as np
import pytest
import soundfile
from support.av_media import sound_bytes, video_bytes
from support.media import clip

from tensorrt_llm.errors import LimitExceededError, MediaError
from tensorrt_llm.inputs.audio_form import decode_audio
from tensorrt_llm.inputs.av_decode import CONTAINERS, find_container
from tensorrt_llm.inputs.media_limits import MediaLimits

LIMITS = MediaLimits()
# Where the format itself says how much of the coder's filling is no sound, the length is exact.
EXACT = [
    ("mp4", "aac", 44_100),
    ("ipod", "aac", 48_000),
    ("ipod", "alac", 44_100),
    ("mov", "pcm_s16le", 16_000),
    ("matroska", "libopus", 48_000),
    ("webm", "libopus", 48_000),
    ("matroska", "pcm_f32le", 44_100),
    ("ogg", "libopus", 48_000),
]
FILLED = [("adts", "aac", 16_000), ("mpegts", "aac", 44_100), ("avi", "mp3", 44_100)]


def tone(rate: int, seconds: float = 1.0) -> np.ndarray:
    """A tone that rises, so that only the right place correlates."""
    t = np.arange(int(rate * seconds)) / rate
    return (0.5 * np.sin(2 * np.pi * (300 + 400 * t) * t)).astype(np.float32)


def correlation(one: np.ndarray, other: np.ndarray) -> float:
    return float(np.corrcoef(one, other)[0, 1])


@pytest.mark.parametrize(("form", "codec", "rate"), EXACT)
@pytest.mark.parametrize("channels", [1, 2])
def test_the_sound_is_all_there_and_in_place(form, codec, rate, channels) -> None:
    samples = tone(rate)
    given = samples if channels == 1 else np.stack([samples, -samples], axis=1)
    audio = decode_audio(sound_bytes(form, codec, given, rate), LIMITS)
    assert (audio.sample_rate, audio.num_channels, audio.num_frames) == (rate, channels, rate)
    middle = slice(rate // 10, -rate // 10)
    assert correlation(audio.samples.reshape(rate, -1)[middle, 0], samples[middle]) > 0.99
    if channels == 2:
        assert correlation(audio.samples[middle, 1], samples[middle]) < -0.99


@pytest.mark.parametrize(("form", "codec", "rate"), FILLED)
def test_streams_keep_the_filling_of_their_coder(form, codec, rate) -> None:
    audio = decode_audio(sound_bytes(form, codec, tone(rate), rate), LIMITS)
    assert rate <= audio.num_frames < rate + 4 * 1152
    best = max(
        correlation(audio.samples[shift:][5000:12_000], tone(rate)[5000:12_000])
        for shift in range(audio.num_frames - rate)
    )
    assert best > 0.99


def test_lossless_sound_is_the_same_through_every_container() -> None:
    samples = np.rint(clip(1, 1.0) * 2**15).astype(np.float32) / np.float32(2**15)
    wav = io.BytesIO()
    soundfile.write(wav, samples, 16_000, format="WAV", subtype="PCM_16")
    expected = decode_audio(wav.getvalue(), LIMITS)
    for form, codec in (("mov", "pcm_s16le"), ("matroska", "pcm_f32le"), ("matroska", "flac")):
        audio = decode_audio(sound_bytes(form, codec, samples, 16_000), LIMITS)
        np.testing.assert_array_equal(audio.samples, expected.samples, form)


@pytest.mark.parametrize(("form", "codec", "rate"), EXACT + FILLED)
def test_a_cut_file_is_refused_wherever_it_is_cut(form, codec, rate) -> None:
    data = sound_bytes(form, codec, tone(rate), rate)
    decode_audio(data, LIMITS)
    for size in (100, len(data) // 3, len(data) // 2 + 1, len(data) - 1):
        if form == "mpegts" and size % 188 == 0:
            continue
        with pytest.raises(MediaError):
            decode_audio(data[:size], LIMITS)


@pytest.mark.parametrize(("form", "codec", "rate"), EXACT[:3] + FILLED)
def test_limits_hold_whether_or_not_the_file_says_its_length(form, codec, rate) -> None:
    data = sound_bytes(form, codec, tone(rate), rate)
    with pytest.raises(LimitExceededError, match=r"exceed max_audio_seconds \(0\.5 seconds\)"):
        decode_audio(data, MediaLimits(max_audio_seconds=0.5))
    with pytest.raises(LimitExceededError, match=r"exceed max_audio_samples \(9000 samples\)"):
        decode_audio(data, MediaLimits(max_audio_samples=9000))


def test_the_sound_of_a_video_is_sound() -> None:
    samples = tone(48_000)
    audio = decode_audio(video_bytes(sound=samples, frames=15), LIMITS)
    assert audio.num_frames == 48_000
    assert correlation(audio.samples[5000:-5000], samples[5000:-5000]) > 0.99


def test_a_file_without_sound_is_refused() -> None:
    with pytest.raises(MediaError, match="holds no sound"):
        decode_audio(video_bytes(frames=3), LIMITS)


def test_a_codec_that_is_not_listed_is_refused_by_name() -> None:
    data = sound_bytes("matroska", "tta", tone(44_100), 44_100)
    with pytest.raises(MediaError, match="codec tta is not taken; known codecs: aac"):
        decode_audio(data, LIMITS)


@pytest.mark.parametrize(
    "data",
    [
        b"#EXTM3U\n#EXTINF:1,\nfile:///etc/hostname\n",
        b"ffconcat version 1.0\nfile /etc/hostname\n",
        b"v=0\r\no=- 0 0 IN IP4 127.0.0.1\r\nc=IN IP4 127.0.0.1\r\nm=audio 9 RTP/AVP 0\r\n",
        b"<?xml version='1.0'?><MPD></MPD>",
    ],
)
def test_playlists_that_name_other_files_are_no_media(data) -> None:
    assert find_container(data) is None
    with pytest.raises(MediaError, match="no readable audio"):
        decode_audio(data, LIMITS)


def test_containers_are_found_by_content() -> None:
    for form, name in (
        *(("mp4", "mov"), ("mov", "mov"), ("ipod", "mov"), ("webm", "matroska")),
        *(("adts", "aac"), ("mp3", "mp3"), ("ogg", "ogg"), ("avi", "avi"), ("mpegts", "mpegts")),
    ):
        codec = {"mp3": "mp3", "avi": "mp3", "ogg": "libopus", "webm": "libopus"}.get(form, "aac")
        assert find_container(sound_bytes(form, codec, tone(48_000, 0.3))) == name
        assert name in CONTAINERS
    for other in (b"", b"RIFF\0\0\0\0WAVE", b"\x89PNG\r\n\x1a\n", b"fLaC", bytes(1000)):
        assert find_container(other) is None
