# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Sound and video files of known content, written with FFmpeg's encoders."""

from __future__ import annotations

import io
from fractions import Fraction
from typing import Any

import av
import numpy as np

from support.media import data_uri

SOUND_RATE = 48_000


def sound_bytes(
    form: str, codec: str, samples: np.ndarray, rate: int = SOUND_RATE, options: dict | None = None
) -> bytes:
    """A file with one sound track. ``samples`` is float32 ``[frames]`` or ``[frames, 2]``."""
    buffer = io.BytesIO()
    with av.open(buffer, "w", format=form, options=options or {}) as container:
        stream = container.add_stream(codec, rate=rate)
        stream.layout = "mono" if samples.ndim == 1 else "stereo"
        _write_sound(container, stream, samples, rate)
    return buffer.getvalue()


def _write_sound(container, stream, samples: np.ndarray, rate: int) -> None:
    planes = np.ascontiguousarray(np.atleast_2d(samples.T), dtype=np.float32)
    layout = "mono" if len(planes) == 1 else "stereo"
    frame = av.AudioFrame.from_ndarray(planes, format="fltp", layout=layout)
    frame.sample_rate, frame.pts, frame.time_base = rate, 0, Fraction(1, rate)
    resampler = av.AudioResampler(format=stream.format.name, layout=layout, rate=rate)
    for piece in (*resampler.resample(frame), None):
        container.mux(stream.encode(piece))


def frame_pixels(number: int, total: int, width: int = 96, height: int = 64) -> np.ndarray:
    """uint8 ``[height, width, 3]``: a bar that grows and changes its colour."""
    pixels = np.zeros((height, width, 3), np.uint8)
    shade = 255 * number // max(total - 1, 1)
    pixels[:, : max(1, width * (number + 1) // total)] = (shade, 255 - shade, 128)
    return pixels


def video_bytes(
    form: str = "mp4",
    codec: str = "libx264",
    *,
    frames: int = 30,
    fps: int = 15,
    times: list[int] | None = None,
    sound: np.ndarray | None = None,
    pixels=frame_pixels,
) -> bytes:
    """A video. ``times`` gives when frames are shown, in milliseconds, instead of ``fps``."""
    buffer = io.BytesIO()
    with av.open(buffer, "w", format=form) as container:
        stream = container.add_stream(codec, rate=fps)
        stream.width, stream.height = 96, 64
        stream.pix_fmt = "yuvj420p" if codec == "mjpeg" else "yuv420p"
        stream.gop_size = 6
        if codec == "libx264":
            stream.options = {"crf": "8", "preset": "veryfast", "bf": "2"}
        if codec == "libx265":
            stream.options = {"x265-params": "log-level=none"}
        if times is not None:
            stream.codec_context.time_base = Fraction(1, 1000)
        track = None
        if sound is not None:
            track = container.add_stream("libopus" if form == "webm" else "aac", rate=SOUND_RATE)
            track.layout = "mono"
        for number in range(frames):
            frame = av.VideoFrame.from_ndarray(pixels(number, frames), format="rgb24")
            if times is not None:
                frame.pts, frame.time_base = times[number], Fraction(1, 1000)
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
        if track is not None:
            _write_sound(container, track, sound, SOUND_RATE)
    return buffer.getvalue()


def video_part() -> dict[str, Any]:
    """A short video as a part of a chat message."""
    return {"type": "video_url", "video_url": {"url": data_uri(video_bytes(), "video/mp4")}}


def all_frames(data: bytes) -> list[tuple[int, np.ndarray]]:
    """Every frame and when it is shown, decoded straight through: the oracle of frame choice."""
    with av.open(io.BytesIO(data)) as container:
        stream = container.streams.video[0]
        return [(f.pts, f.to_ndarray(format="rgb24")) for f in container.decode(stream)]
