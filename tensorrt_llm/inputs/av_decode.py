# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Containers that FFmpeg reads: opening them safely, their packets, and their sound.

The container is found by its first bytes and named to FFmpeg, and only the codecs listed here may
be used. Without that, a file could ask for one of the formats that open other files or addresses,
or for one of hundreds of decoders that nobody tests.

FFmpeg plays what is left of a damaged file. A model would hear and see less than was sent, so what
is corrupt, or ends before the length it declares, is refused instead.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import av
import numpy as np
from av.stream import Disposition

from tensorrt_llm.errors import LimitExceededError, MediaError, RequestError
from tensorrt_llm.inputs.container_end import check_whole
from tensorrt_llm.inputs.media_limits import MediaLimits
from tensorrt_llm.inputs.mpeg_audio import check_adts_is_whole, find_mpeg_audio
from tensorrt_llm.inputs.multimodal_data import MAX_CHANNELS, AudioData

AUDIO_CODECS = (
    *("aac", "aac_latm", "alac", "ac3", "eac3", "flac", "mp2float", "mp3float", "opus", "vorbis"),
    *("pcm_u8", "pcm_s16le", "pcm_s16be", "pcm_s24le", "pcm_s24be", "pcm_s32le", "pcm_s32be"),
    *("pcm_f32le", "pcm_f32be", "pcm_f64le", "pcm_f64be", "pcm_alaw", "pcm_mulaw"),
)
VIDEO_CODECS = (
    *("h264", "hevc", "libdav1d", "vp8", "vp9", "mpeg4", "mpeg2video", "mpeg1video", "mjpeg"),
    *("theora", "prores"),
)
CONTAINERS = {
    "mov": "MP4, M4A or QuickTime",
    "matroska": "Matroska or WebM",
    "avi": "AVI",
    "mpegts": "MPEG transport stream",
    "ogg": "Ogg",
    "mp3": "MP3",
    "aac": "AAC",
}
"""Containers by FFmpeg's name, and what people call them."""

VIDEO_CONTAINERS = ("mov", "matroska", "avi", "mpegts", "ogg")
"""Those that may hold video."""

_QUICKTIME_ATOMS = (b"ftyp", b"moov", b"mdat", b"wide", b"free", b"skip")
_TRANSPORT_PACKET = 188
# Containers whose declared length is exact; the others estimate it.
_DECLARE_LENGTH = ("mov", "matroska", "avi")
# Seconds by which a whole file may end before its declared length: rounding, or a cut at its end.
_SLACK = 0.5
_TIME_BASE = 1_000_000  # of the container's own times, in units a second


def find_container(data: bytes) -> str | None:
    """Which container a file is, by its first bytes; a key of ``CONTAINERS``, or None."""
    if data[4:8] in _QUICKTIME_ATOMS:
        return "mov"
    if data[:4] == b"\x1aE\xdf\xa3":
        return "matroska"
    if data[:4] == b"OggS":
        return "ogg"
    if data[:4] == b"RIFF" and data[8:12] == b"AVI ":
        return "avi"
    starts = range(0, 3 * _TRANSPORT_PACKET, _TRANSPORT_PACKET)
    if all(data[start : start + 1] == b"G" for start in starts):
        return "mpegts"
    return find_mpeg_audio(data)


class MediaFile:
    """An opened container. Make one with :func:`open_media`.

    Attributes:
        container: FFmpeg's view of it.
        kind: What people call its format.
    """

    def __init__(self, container: Any, name: str) -> None:
        self.container = container
        self.kind = CONTAINERS[name]
        self._declares_length = name in _DECLARE_LENGTH

    def stream(self, modality: str) -> Any:
        """The first stream of a modality (``"audio"`` or ``"video"``), None if there is none.

        Raises:
            MediaError: If it is in a codec that is not taken.
        """
        streams = getattr(self.container.streams, modality)
        # A cover picture is a video stream of one frame that is no video.
        real = [s for s in streams if not (modality == "video" and _is_cover(s))]
        if not real:
            return None
        stream = real[0]
        known = AUDIO_CODECS if modality == "audio" else VIDEO_CODECS
        codec = stream.codec_context.name if stream.codec_context is not None else "unknown"
        if codec not in known:
            raise MediaError(
                f"{modality} in codec {codec} is not taken; known codecs: {', '.join(known)}"
            )
        return stream

    def packets(self) -> Iterator[Any]:
        """Every packet of the file, from where it stands, in file order.

        Raises:
            MediaError: If one is damaged, or the file ends before its declared length.
        """
        end = 0.0
        for packet in self.container.demux():
            if packet.is_corrupt:
                raise MediaError(f"the {self.kind} file is truncated or damaged")
            start = packet.dts if packet.pts is None else packet.pts
            if start is not None and packet.size:
                last = start + (packet.duration or 0)
                end = max(end, float(last * packet.time_base))
            yield packet
        declared = self.seconds
        if self._declares_length and declared is not None and end < declared - _SLACK:
            raise MediaError(
                f"the {self.kind} file is truncated: {end:.2f} of {declared:.2f} seconds"
            )

    @property
    def seconds(self) -> float | None:
        """Declared length, None if there is none."""
        duration = self.container.duration
        return duration / _TIME_BASE if duration is not None and duration > 0 else None


@contextmanager
def open_media(data: bytes, name: str) -> Iterator[MediaFile]:
    """Opens a file for the length of a ``with`` block.

    Whatever FFmpeg raises inside the block becomes a MediaError.

    Args:
        data: The file.
        name: Its container, from :func:`find_container`.

    Raises:
        MediaError: If it cannot be opened, or ends too early.
    """
    check_whole(data, name)
    options = {
        "format_whitelist": ",".join(CONTAINERS),
        "codec_whitelist": ",".join((*AUDIO_CODECS, *VIDEO_CODECS)),
        "protocol_whitelist": "none",
    }
    try:
        with av.open(io.BytesIO(data), format=name, options=options) as container:
            yield MediaFile(container, name)
    except RequestError:
        raise
    except Exception as error:  # Decoders meet hostile bytes with every kind of exception.
        # FFmpeg also says so of sizes that no machine has, out of damaged headers.
        if isinstance(error, MemoryError) and not isinstance(error, av.error.FFmpegError):
            raise
        raise MediaError(f"the {CONTAINERS[name]} file is truncated or damaged") from error


def decode_sound(data: bytes, name: str, limits: MediaLimits) -> AudioData:
    """Decodes the first sound track of a file, completely.

    Args:
        data: The file.
        name: Its container, from :func:`find_container`.
        limits: Longest clip and most samples, checked against what the file declares and again
            while decoding.

    Raises:
        MediaError: If there is no sound, or the file is truncated or damaged.
        LimitExceededError: If the clip is longer than a limit.
    """
    if name == "aac":
        check_adts_is_whole(data)
    with open_media(data, name) as file:
        audio = read_sound(file, limits)
        if audio is None:
            raise MediaError(f"the {file.kind} file holds no sound")
        return audio


def read_sound(file: MediaFile, limits: MediaLimits) -> AudioData | None:
    """Decodes the first sound track of an opened file from where it stands; None without one.

    Raises:
        MediaError: As :func:`decode_sound`.
        LimitExceededError: As :func:`decode_sound`.
    """
    stream = file.stream("audio")
    if stream is None:
        return None
    track = _Track(limits)
    declared = _declared_frames(stream) if file.kind == CONTAINERS["mov"] else None
    if declared is not None:
        track.check(declared, stream.rate, stream.channels)
    for packet in file.packets():
        if packet.stream.index == stream.index:
            for frame in packet.decode():
                track.add(frame)
    return track.clip(declared)


def _declared_frames(stream: Any) -> int | None:
    if not stream.duration or not stream.rate:
        return None
    return round(stream.duration * stream.time_base * stream.rate)


class _Track:
    """Decoded pieces of a sound track, within the limits."""

    def __init__(self, limits: MediaLimits) -> None:
        self._limits = limits
        self._pieces: list[np.ndarray] = []
        self._form: tuple[int, int] | None = None  # rate and channels
        self._frames = 0

    def add(self, frame: Any) -> None:
        form = (frame.sample_rate, len(frame.layout.channels))
        if self._form is None:
            self._form = form
        if form != self._form:
            raise MediaError(
                f"the sound changes from {self._form[0]} Hz and {self._form[1]} channels to "
                f"{form[0]} Hz and {form[1]} channels"
            )
        self._frames += frame.samples
        self.check(self._frames, *form)
        samples = frame.to_ndarray()
        # Planar sound is [channels, frames], packed sound [1, frames * channels].
        shaped = samples.T if frame.format.is_planar else samples.reshape(-1, form[1])
        self._pieces.append(np.array(shaped))

    def check(self, frames: int, rate: int, channels: int) -> None:
        """Holds a number of frames against the limits."""
        limits = self._limits
        if channels > MAX_CHANNELS:
            raise MediaError(f"the audio has {channels} channels; at most {MAX_CHANNELS} are taken")
        if rate <= 0:
            raise MediaError(f"a sample rate is a positive whole number, not {rate}")
        if frames / rate > limits.max_audio_seconds:
            raise LimitExceededError(
                "max_audio_seconds", frames / rate, limits.max_audio_seconds, "seconds"
            )
        if frames * channels > limits.max_audio_samples:
            raise LimitExceededError(
                "max_audio_samples", frames * channels, limits.max_audio_samples, "samples"
            )

    def clip(self, declared: int | None) -> AudioData:
        """All of it; what a coder added behind the declared length is left out."""
        if self._form is None:
            raise MediaError("the audio is empty or damaged: 0 frames")
        rate = self._form[0]
        if declared is not None and self._frames < declared - _SLACK * rate:
            raise MediaError(f"the audio is truncated: {self._frames} of {declared} frames")
        samples = np.concatenate(self._pieces)
        return AudioData.from_array(samples[:declared], rate)


def _is_cover(stream: Any) -> bool:
    return bool(stream.disposition & Disposition.attached_pic)
