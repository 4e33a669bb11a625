# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Audio: decoding to the canonical form, and the form models hear.

The canonical form is :class:`AudioData` exactly as decoded: every channel, the file's own rate,
float32. A family asks :func:`to_model_rate` for what its model takes.
"""

from __future__ import annotations

import io

import numpy as np
import soundfile
import soxr

from tensorrt_llm.errors import LimitExceededError, MediaError
from tensorrt_llm.inputs.audio_container import check_not_truncated
from tensorrt_llm.inputs.mpeg_audio import count_mp3_samples
from tensorrt_llm.inputs.multimodal_data import MAX_CHANNELS, AudioData

# Frames that an encoder adds and a decoder drops: the length header's own, delay and filling.
_MP3_PADDING = 4 * 1152

AUDIO_FORMATS = ("WAV", "WAVEX", "RF64", "FLAC", "OGG", "MP3", "AIFF")


def decode_audio(data: bytes, *, max_seconds: float, max_samples: int) -> AudioData:
    """Decodes an encoded clip, completely.

    Args:
        data: The encoded file, in one of ``AUDIO_FORMATS``; the format is found by content.
        max_seconds: Longest clip, checked before anything is decoded.
        max_samples: Most samples over all channels, checked before anything is decoded.

    Raises:
        MediaError: If the bytes are empty, no audio, truncated or damaged, or the clip is empty.
        LimitExceededError: If the clip is longer than one of the limits.
    """
    if not data:
        raise MediaError("the audio is empty: 0 bytes")
    check_not_truncated(data)
    with _open(data) as file:
        _check_header(file, max_seconds, max_samples)
        try:
            samples = file.read(dtype="float32")
        except Exception as error:  # Whatever a decoder raises over hostile bytes.
            raise MediaError(f"the {file.format} audio is truncated or damaged") from error
        if len(samples) < file.frames:
            raise MediaError(f"the audio is truncated: {len(samples)} of {file.frames} frames")
        if file.format == "MP3":
            _check_mp3_is_whole(data, len(samples))
        return AudioData(samples, file.samplerate)


def _open(data: bytes) -> soundfile.SoundFile:
    try:
        return soundfile.SoundFile(io.BytesIO(data))
    except Exception as error:  # As above.
        known = ", ".join(AUDIO_FORMATS)
        raise MediaError(f"{len(data)} bytes that are no readable audio ({known})") from error


def _check_header(file: soundfile.SoundFile, max_seconds: float, max_samples: int) -> None:
    if file.format not in AUDIO_FORMATS:
        known = ", ".join(AUDIO_FORMATS)
        raise MediaError(f"audio of format {file.format} is not taken; known formats: {known}")
    if file.frames <= 0:
        raise MediaError("the audio is empty or truncated: 0 frames")
    if file.channels > MAX_CHANNELS:
        raise MediaError(
            f"the audio has {file.channels} channels; at most {MAX_CHANNELS} are taken"
        )
    seconds, samples = file.frames / file.samplerate, file.frames * file.channels
    if seconds > max_seconds:
        raise LimitExceededError("max_audio_seconds", seconds, max_seconds, "seconds")
    if samples > max_samples:
        raise LimitExceededError("max_audio_samples", samples, max_samples, "samples")


def _check_mp3_is_whole(data: bytes, decoded: int) -> None:
    """Refuses an MP3 of which the library, misled by the first bit rate, read a part only."""
    held = count_mp3_samples(data)
    if decoded < held - _MP3_PADDING:
        raise MediaError(
            f"the MP3 does not say how long it is, and only {decoded} of its {held} frames can be "
            "decoded; send it with a length header (Xing), or as WAV or FLAC"
        )


def to_model_rate(audio: AudioData, rate: int) -> np.ndarray:
    """Brings a clip to one channel at a model's rate.

    The channels are averaged before the rate changes, so no axis can be taken for another.

    Args:
        audio: The clip.
        rate: Frames a second that the model takes.

    Returns:
        New float32 array ``[frames]``.

    Raises:
        MediaError: If the clip is shorter than one frame at that rate.
    """
    samples = audio.samples
    mono = samples.mean(axis=1) if samples.ndim == 2 else samples
    if audio.sample_rate == rate:
        return np.array(mono, dtype=np.float32)
    resampled = soxr.resample(mono, audio.sample_rate, rate, quality="HQ")
    if resampled.size == 0:
        raise MediaError(
            f"the audio is too short: {audio.num_frames} frames at {audio.sample_rate} Hz are "
            f"less than one at {rate} Hz"
        )
    return np.ascontiguousarray(resampled, dtype=np.float32)
