# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Video: which frames are taken, when each is shown, and decoding them to the canonical form.

The file is read twice. The first pass decodes nothing: it collects when each frame is shown and
which ones can be decoded alone (key frames). The second decodes the chosen frames, each from the
key frame before it, so that ten frames of an hour cost ten short runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np

from tensorrt_llm.errors import LimitExceededError, MediaError, RequestError
from tensorrt_llm.inputs.av_decode import (
    CONTAINERS,
    VIDEO_CONTAINERS,
    MediaFile,
    find_container,
    open_media,
    read_sound,
)
from tensorrt_llm.inputs.media_limits import MediaLimits
from tensorrt_llm.inputs.video_data import VideoClip

DEFAULT_NUM_FRAMES = 10
DEFAULT_FPS = 30.0

_BEFORE_ALL = -(2**62)


@dataclass(frozen=True)
class VideoOptions:
    """Which parts of a video are taken.

    Args:
        num_frames: Most frames; None for no such bound.
        fps: Most frames a second of video; None for no such bound.
        extract_audio: Whether the sound track is part of the item.

    Raises:
        RequestError: If a value is out of range.
    """

    num_frames: int | None = DEFAULT_NUM_FRAMES
    fps: float | None = DEFAULT_FPS
    extract_audio: bool = True

    def __post_init__(self) -> None:
        count, fps = self.num_frames, self.fps
        if count is not None and (type(count) is not int or count < 1):
            raise RequestError(f"num_frames is a whole number from 1 on, or null, not {count!r}")
        if fps is not None and not (type(fps) in (int, float) and 0 < fps < float("inf")):
            raise RequestError(f"fps is a positive number, or null, not {fps!r}")
        if type(self.extract_audio) is not bool:
            raise RequestError(f"extract_audio is true or false, not {self.extract_audio!r}")
        if fps is not None:
            object.__setattr__(self, "fps", float(fps))

    @classmethod
    def resolve(cls, options: Mapping[str, Any]) -> VideoOptions:
        """Fills in the defaults. Where only one bound is given, the other one is off.

        Raises:
            RequestError: If an option is unknown or out of range.
        """
        known = ("num_frames", "fps", "extract_audio")
        for name in options:
            if name not in known:
                raise RequestError(f"unknown video option {name!r}; known: {', '.join(known)}")
        given = dict(options)
        if ("num_frames" in given) != ("fps" in given):
            given.setdefault("num_frames", None)
            given.setdefault("fps", None)
        return cls(**given)

    def count(self, total: int, seconds: float) -> int:
        """How many of a video's frames are taken, at least one."""
        bounds = [total]
        if self.num_frames is not None:
            bounds.append(self.num_frames)
        if self.fps is not None:
            # A hair more, so that 30 fps of 29.999... still mean every frame.
            bounds.append(int(seconds * self.fps + 1e-6))
        return max(min(bounds), 1)


def decode_video(data: bytes, options: VideoOptions, limits: MediaLimits) -> VideoClip:
    """Decodes the chosen frames of a video, upright, in RGB, and its sound.

    Frames are spread evenly over the time from the first to the last frame, both included; at each
    of those times the frame that is shown then is taken.

    Args:
        data: The file, in one of ``VIDEO_CONTAINERS``; the format is found by content.
        options: Which frames.
        limits: Checked against what the file declares before frames are decoded.

    Raises:
        MediaError: If the bytes are empty, no video, truncated or damaged.
        LimitExceededError: If the video is over a limit.
    """
    if not data:
        raise MediaError("the video is empty: 0 bytes")
    name = find_container(data)
    if name not in VIDEO_CONTAINERS:
        known = ", ".join(CONTAINERS[name] for name in VIDEO_CONTAINERS)
        raise MediaError(f"{len(data)} bytes that are no readable video ({known})")
    with open_media(data, name) as file:
        stream = file.stream("video")
        if stream is None:
            raise MediaError(f"the {file.kind} file holds no video")
        index = _FrameIndex.read(file, stream, limits)
        count = options.count(len(index.times), float(index.seconds))
        _check_size(count, stream, limits)
        chosen = index.spread(count)
        frames = _decode(file, stream, index, chosen)
        times = [index.times[number] - index.times[0] for number in chosen]
        # A decoder that was used starts anew only in a file that is opened anew.
        audio = None
    if options.extract_audio:
        with open_media(data, name) as file:
            audio = read_sound(file, limits)
    return VideoClip(
        frames=frames,
        frame_indices=tuple(chosen),
        timestamps=tuple(float(time * index.unit) for time in times),
        fps=float(len(index.times) / index.seconds),
        duration=float(index.seconds),
        total_num_frames=len(index.times),
        audio=audio,
    )


@dataclass(frozen=True)
class _FrameIndex:
    """When the frames of a video are shown, in units of the stream's own clock."""

    times: list[int]  # ascending
    keys: list[int]  # times of the frames that can be decoded alone, ascending
    unit: Fraction  # seconds
    seconds: Fraction  # of the whole video

    @classmethod
    def read(cls, file: MediaFile, stream: Any, limits: MediaLimits) -> _FrameIndex:
        declared = file.seconds
        if declared is not None and declared > limits.max_video_seconds:
            raise LimitExceededError(
                "max_video_seconds", declared, limits.max_video_seconds, "seconds"
            )
        times, keys, end = [], [], 0
        for packet in file.packets():
            if packet.stream.index != stream.index or not packet.size or packet.is_discard:
                continue
            time = packet.dts if packet.pts is None else packet.pts
            if time is None:
                raise MediaError(f"the {file.kind} file does not say when its frames are shown")
            times.append(time)
            end = max(end, time + (packet.duration or 0))
            if packet.is_keyframe:
                keys.append(time)
        if not times or not keys:
            raise MediaError("the video is empty or damaged: 0 frames can be decoded")
        times.sort()
        keys.sort()
        unit = Fraction(stream.time_base)
        span = times[-1] - times[0]
        # Where the last frame has no length of its own, it gets that of the others.
        tail = end - times[-1] or span // max(len(times) - 1, 1) or round(1 / (25 * unit)) or 1
        seconds = (span + tail) * unit
        if seconds > limits.max_video_seconds:
            raise LimitExceededError(
                "max_video_seconds", float(seconds), limits.max_video_seconds, "seconds"
            )
        return cls(times, keys, unit, seconds)

    def spread(self, count: int) -> list[int]:
        """Numbers of the frames shown at that many times, spread evenly."""
        if count == 1:
            return [0]
        if count == len(self.times):
            return list(range(count))
        first, span = self.times[0], self.times[-1] - self.times[0]
        # A unit later where frames are further apart: containers round their times, some up.
        late = min(1, min(b - a for a, b in pairwise(self.times)) // 2)
        shown = [first + step * span // (count - 1) + late for step in range(count)]
        return [int(n) - 1 for n in np.searchsorted(self.times, shown, side="right")]

    def key_before(self, time: int) -> int:
        """Time of the key frame from which the frame at a time can be decoded."""
        number = int(np.searchsorted(self.keys, time, side="right")) - 1
        return self.keys[max(number, 0)]


def _check_size(count: int, stream: Any, limits: MediaLimits) -> None:
    width, height = stream.codec_context.width, stream.codec_context.height
    if width * height > limits.max_pixels:
        raise LimitExceededError("max_pixels", width * height, limits.max_pixels, "pixels")
    if count > limits.max_video_frames:
        raise LimitExceededError("max_video_frames", count, limits.max_video_frames, "frames")
    if count * width * height > limits.max_video_pixels:
        raise LimitExceededError(
            "max_video_pixels", count * width * height, limits.max_video_pixels, "pixels"
        )


def _decode(file: MediaFile, stream: Any, index: _FrameIndex, chosen: list[int]) -> np.ndarray:
    """uint8 ``[len(chosen), height, width, 3]``."""
    wanted = sorted({index.times[number] for number in chosen})
    pictures: dict[int, np.ndarray] = {}
    # Now, for decoding changes it: the limits were held against the size that the file declares.
    size = stream.codec_context.width, stream.codec_context.height
    position = 0
    while position < len(wanted):
        key = index.key_before(wanted[position])
        following = position
        while following < len(wanted) and index.key_before(wanted[following]) == key:
            following += 1
        run = wanted[position:following]
        pictures.update(_decode_run(file, stream, key, run, size))
        position = following
    return np.stack([pictures[index.times[number]] for number in chosen])


def _decode_run(
    file: MediaFile, stream: Any, key: int, run: list[int], size: tuple[int, int]
) -> dict[int, np.ndarray]:
    """The frames shown at some times, decoded from one key frame."""
    found: dict[int, np.ndarray] = {}
    # Where a container has no index, a jump may miss its place: then from the very start.
    for start in (key, _BEFORE_ALL):
        file.container.seek(start, stream=stream)
        for frame in file.container.decode(stream):
            time = frame.dts if frame.pts is None else frame.pts
            if time in run and time not in found:
                _check_frame(frame, size)
                found[time] = _upright(frame)
            if len(found) == len(run):
                return found
            if time is not None and time > run[-1]:
                break
    raise MediaError(
        f"the {file.kind} video is damaged: {len(found)} of {len(run)} frames can be decoded"
    )


def _check_frame(frame: Any, size: tuple[int, int]) -> None:
    if frame.is_corrupt:
        raise MediaError("a frame of the video is damaged")
    if (frame.width, frame.height) != size:
        raise MediaError(
            f"the video changes its size: {size[0]}x{size[1]} and {frame.width}x{frame.height} "
            "pixels"
        )


def _upright(frame: Any) -> np.ndarray:
    pixels = frame.to_ndarray(format="rgb24")
    quarters, rest = divmod(frame.rotation, 90)
    if rest:
        raise MediaError(f"the video is turned by {frame.rotation} degrees, no quarter turn")
    return np.ascontiguousarray(np.rot90(pixels, quarters))
