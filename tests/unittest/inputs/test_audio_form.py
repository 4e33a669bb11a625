# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import io
import wave

import numpy as np
import pytest
import soundfile

from tensorrt_llm.errors import LimitExceededError, MediaError
from tensorrt_llm.inputs.audio_form import decode_audio, to_model_rate
from tensorrt_llm.inputs.media_limits import MediaLimits
from tensorrt_llm.inputs.multimodal_data import AudioData

RATES = (8000, 16000, 22050, 44100, 48000)


def tone(rate: int, seconds: float = 1.0, hertz: float = 440) -> np.ndarray:
    return (0.6 * np.sin(2 * np.pi * hertz * np.arange(int(rate * seconds)) / rate)).astype(
        np.float32
    )


def encode(samples: np.ndarray, rate: int = 16000, format: str = "WAV", subtype: str | None = None):
    buffer = io.BytesIO()
    soundfile.write(buffer, samples, rate, format=format, subtype=subtype)
    return buffer.getvalue()


def decode(data: bytes, seconds: float = 100, samples: int = 10**7) -> AudioData:
    return decode_audio(data, MediaLimits(max_audio_seconds=seconds, max_audio_samples=samples))


def test_pcm_decodes_as_the_standard_library_reads_it():
    data = encode(np.stack([tone(8000), -tone(8000)], axis=1), 8000, subtype="PCM_16")
    with wave.open(io.BytesIO(data)) as file:
        raw = np.frombuffer(file.readframes(file.getnframes()), "<i2").reshape(-1, 2)
    audio = decode(data)
    assert audio.sample_rate == 8000
    np.testing.assert_array_equal(audio.samples, raw.astype(np.float32) / 2**15)


@pytest.mark.parametrize(
    ("format", "subtype"),
    [
        ("WAV", "PCM_16"),
        ("WAV", "PCM_24"),
        ("WAV", "PCM_32"),
        ("WAV", "FLOAT"),
        ("WAV", "DOUBLE"),
        ("WAVEX", "PCM_16"),
        ("RF64", "PCM_16"),
        ("FLAC", "PCM_16"),
        ("AIFF", "PCM_16"),
    ],
)
def test_lossless_containers_give_the_same_samples(format, subtype):
    samples = np.rint(tone(16000) * 2**15).astype(np.float32) / np.float32(2**15)
    audio = decode(encode(samples, 16000, format, subtype))
    np.testing.assert_array_equal(audio.samples, samples)


@pytest.mark.parametrize(
    ("format", "subtype"),
    [
        ("WAV", "PCM_U8"),
        ("WAV", "ULAW"),
        ("WAV", "ALAW"),
        ("OGG", "VORBIS"),
        ("OGG", "OPUS"),
        ("MP3", None),
    ],
)
def test_lossy_containers_decode(format, subtype):
    audio = decode(encode(tone(16000), 16000, format, subtype))
    assert audio.num_frames == 16000
    assert np.corrcoef(audio.samples, tone(16000))[0, 1] > 0.98


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("door", ["file", "frames first", "channels first"])
def test_stereo_is_mixed_down_before_it_is_resampled(rate, door):
    frames = np.stack([tone(rate), np.zeros(rate, np.float32)], axis=1)
    if door == "file":
        audio = decode(encode(frames, rate, subtype="FLOAT"))
    else:
        audio = AudioData.from_array(frames if door == "frames first" else frames.T, rate)
    mono = to_model_rate(audio, 16000)
    assert mono.dtype == np.float32
    assert abs(len(mono) - 16000) <= 1
    reference = 0.5 * tone(16000)
    overlap = slice(0, min(len(mono), 16000))
    assert np.corrcoef(mono[overlap], reference[overlap])[0, 1] > 0.99
    assert np.abs(mono).max() == pytest.approx(0.3, abs=0.02)


def test_the_models_own_rate_is_only_copied():
    audio = AudioData.from_array(tone(16000), 16000)
    samples = to_model_rate(audio, 16000)
    np.testing.assert_array_equal(samples, audio.samples)
    samples[:] = 0
    assert audio.samples.any()


def test_a_clip_shorter_than_one_frame_is_refused():
    with pytest.raises(MediaError, match=r"1 frames at 48000 Hz are less than one at 100 Hz"):
        to_model_rate(AudioData.from_array(np.ones(1, np.float32), 48000), 100)


def broken() -> dict[str, bytes]:
    whole = {
        format: encode(tone(16000), 16000, format)
        for format in ("WAV", "FLAC", "OGG", "MP3", "AIFF")
    }
    return {
        **{f"{format} cut": data[: len(data) // 2] for format, data in whole.items()},
        "WAV one byte short": whole["WAV"][:-1],
        "no bytes": b"",
        "no frames": encode(np.zeros(0, np.float32)),
        "html": b"<html><body>no audio</body></html>",
        "noise": b"\x07\xfe\x11",
        "png": b"\x89PNG\r\n\x1a\n" + bytes(100),
        "exotic format": encode(tone(16000), 16000, "HTK"),
        "not a number": encode(np.array([0, np.nan], np.float32), subtype="FLOAT"),
    }


@pytest.mark.parametrize("name", broken())
def test_broken_clips_are_one_plain_error(name):
    with pytest.raises(MediaError) as raised:
        decode(broken()[name])
    for inside in ("0x", "BytesIO", "soundfile", "Traceback"):
        assert inside not in str(raised.value)


def test_a_cut_clip_names_both_numbers():
    data = encode(tone(16000), subtype="PCM_16")
    with pytest.raises(MediaError, match="truncated: 15950 of 16000 frames"):
        decode(data[:-100])


def test_limits_are_checked_before_decoding_and_carry_both_numbers():
    data = encode(np.stack([tone(16000, 2)] * 2, axis=1), 16000, "FLAC")
    assert decode(data, seconds=2, samples=64000).seconds == 2
    with pytest.raises(
        LimitExceededError, match=r"2.0 seconds exceed max_audio_seconds \(1.5 seconds"
    ):
        decode(data, seconds=1.5)
    with pytest.raises(LimitExceededError, match=r"64000 samples exceed max_audio_samples \(63999"):
        decode(data, samples=63999)


def test_too_many_channels_are_refused():
    with pytest.raises(MediaError, match="40 channels; at most 32"):
        decode(encode(np.zeros((10, 40), np.float32)))
