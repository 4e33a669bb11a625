# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Video of the Qwen families: sizes and patches, and when each group of frames is shown.

Frames go in groups (two in all published checkpoints); the last frame is repeated to fill the last
group. All frames are scaled to one size.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tensorrt_llm.errors import MediaError
from tensorrt_llm.inputs.processors.qwen_pixels import ImageSettings, cut_patches, scaled_size
from tensorrt_llm.inputs.processors.video_rows import scaled_frames
from tensorrt_llm.inputs.video_data import VideoClip

# Frames that are handed in decoded may name any rate; positions are 32-bit numbers.
MAX_SECONDS = 1_000_000


@dataclass(frozen=True)
class VideoSettings(ImageSettings):
    """Settings of a checkpoint's video processor; bounds are of one frame's area.

    Attributes:
        cap_pixels_per_frame: Whether ``max_pixels`` shrinks with the number of frames.
        max_video_tokens: Rows that a capped video is to keep below, about.
    """

    min_pixels: int = 128 * 28 * 28
    max_pixels: int = 768 * 28 * 28
    cap_pixels_per_frame: bool = False
    max_video_tokens: int = 128_000

    @classmethod
    def more_from_config(cls, settings: Mapping[str, Any]) -> Mapping[str, Any]:
        """The settings that pictures do not have."""
        return {
            "cap_pixels_per_frame": bool(settings.get("cap_pixels_per_frame")),
            "max_video_tokens": int(settings.get("max_video_tokens", cls.max_video_tokens)),
        }

    def frame_size(self, video: VideoClip, min_pixels: int, max_pixels: int) -> tuple[int, int]:
        """Size (height, width) in pixels that the frames are scaled to.

        Args:
            video: The video.
            min_pixels: Least area, as ``scaled_size`` takes it.
            max_pixels: Greatest area.

        Raises:
            MediaError: If the frames are too long and thin.
        """
        if self.cap_pixels_per_frame:
            total = int(self.max_video_tokens * self.square**2 * 0.9)
            share = total * self.temporal_patch_size // video.num_frames
            max_pixels = max(min(max_pixels, share), int(min_pixels * 1.05))
        height, width = video.frames.shape[1:3]
        return scaled_size(height, width, self.square, min_pixels, max_pixels)

    def num_groups(self, video: VideoClip) -> int:
        """Groups of frames."""
        return -(-video.num_frames // self.temporal_patch_size)


def video_patches(video: VideoClip, size: tuple[int, int], settings: VideoSettings) -> np.ndarray:
    """Scales, normalises and cuts a video.

    Args:
        video: The video.
        size: Result of ``frame_size``.
        settings: The checkpoint's settings.

    Returns:
        float32 ``[patches, 3 * temporal_patch_size * patch_size ** 2]``, group by group.
    """
    frames = scaled_frames(video.frames, size, settings.resample)
    lacking = -len(frames) % settings.temporal_patch_size
    return cut_patches(np.concatenate([frames, *[frames[-1:]] * lacking]), settings)


def seconds_per_group(video: VideoClip, settings: VideoSettings) -> float:
    """Seconds from one group of frames to the next, were the frames taken at one rate.

    Raises:
        MediaError: If that makes the video longer than places can be counted.
    """
    rate = video.num_frames / video.total_num_frames * video.fps
    if video.num_frames > MAX_SECONDS * rate:
        raise MediaError(
            f"{video.num_frames} of {video.total_num_frames} frames at {video.fps} a second are "
            f"more than {MAX_SECONDS} seconds"
        )
    return settings.temporal_patch_size / rate


def group_times(groups: int, step: np.float32, rate: float = 1.0) -> Sequence[int]:
    """Places of groups on the time axis: in float32, as the stock models do.

    Args:
        groups: Their number.
        step: From one to the next, in places or in seconds.
        rate: Places a unit of ``step``.
    """
    return (np.arange(groups, dtype=np.float32) * step * np.float32(rate)).astype(np.int32).tolist()
