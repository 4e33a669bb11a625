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
from tensorrt_llm.inputs.av_decode import CONTAINERS, decode_sound, find_container
from tensorrt_llm.inputs.container_end import check_whole
from tensorrt_llm.inputs.media_limits import MediaLimits
from tensorrt_llm.inputs.mpeg_audio import count_mp3_samples
from tensorrt_llm.inputs.multimodal_data import MAX_CHANNELS, AudioData

# Frames that an encoder adds and a decoder drops: the length header's own, delay and filling.
_MP3_PADDING = 4 * 1152

AUDIO_FORMATS = ("WAV", "WAVEX", "RF64", "FLAC", "OGG", "MP3", "AIFF")
"""Formats that the sound library reads. What it cannot read is tried with FFmpeg."""

# Of these the sound library reads nothing, or another track than the sound.
_ONLY_FFMPEG = ("mov", "matroska", "avi", "mpegts", "aac")


def decode_audio(data: bytes, limits: MediaLimits) -> AudioData:
    """Decodes an encoded clip, completely.

    Args:
        data: The encoded file, in one of ``AUDIO_FORMATS`` or of ``av_decode.CONTAINERS``; the
            format is found by content.
        limits: Longest clip and most samples over all channels, checked before anything is
            decoded where the file says how long it is, and again while decoding.

    Raises:
        MediaError: If the bytes are empty, no audio, truncated or damaged, or the clip is empty.
        LimitExceededError: If the clip is longer than one of the limits.
    """
    if not data:
        raise MediaError("the audio is empty: 0 bytes")
    container = find_container(data)
    if container in _ONLY_FFMPEG:
        return decode_sound(data, container, limits)
    check_not_truncated(data)
    if container is not None:
        check_whole(data, container)
    try:
        file = soundfile.SoundFile(_Source(data))
    except Exception as error:  # Whatever a decoder raises over hostile bytes.
        if container is not None:
            return decode_sound(data, container, limits)
        known = ", ".join((*AUDIO_FORMATS, *(CONTAINERS[name] for name in _ONLY_FFMPEG)))
        raise MediaError(f"{len(data)} bytes that are no readable audio ({known})") from error
    with file:
        audio = _read(file, limits)
        return _whole_mp3(data, audio, limits) if file.format == "MP3" else audio


class _Source(io.BytesIO):
    """Bytes for the sound library, which damaged files send to places before the first one."""

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        try:
            return super().seek(offset, whence)
        except ValueError:
            return self.tell()


def _read(file: soundfile.SoundFile, limits: MediaLimits) -> AudioData:
    _check_header(file, limits)
    try:
        samples = file.read(dtype="float32")
    except MemoryError:
        raise
    except Exception as error:  # As above.
        raise MediaError(f"the {file.format} audio is truncated or damaged") from error
    if len(samples) < file.frames:
        raise MediaError(f"the audio is truncated: {len(samples)} of {file.frames} frames")
    return AudioData(samples, file.samplerate)


def _check_header(file: soundfile.SoundFile, limits: MediaLimits) -> None:
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
    if seconds > limits.max_audio_seconds:
        raise LimitExceededError("max_audio_seconds", seconds, limits.max_audio_seconds, "seconds")
    if samples > limits.max_audio_samples:
        raise LimitExceededError("max_audio_samples", samples, limits.max_audio_samples, "samples")


def _whole_mp3(data: bytes, audio: AudioData, limits: MediaLimits) -> AudioData:
    """The clip, read again where the library, misled by the first bit rate, stopped early."""
    held = count_mp3_samples(data)
    if audio.num_frames >= held - _MP3_PADDING:
        return audio
    again = decode_sound(data, "mp3", limits)
    if again.num_frames < held - _MP3_PADDING:
        raise MediaError(f"the MP3 is damaged: {again.num_frames} of {held} frames can be decoded")
    return again


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
