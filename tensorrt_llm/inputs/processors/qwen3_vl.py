# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Qwen3-VL: pictures as Qwen2-VL, and video with the time of each group of frames as text.

A video is written as ``<0.5 seconds>``, a mark, the rows of the first group of frames, a mark, and
so on: its rows are one run for each group. Each group stands on the grid of a still picture, and
the bounds of its size are of all frames together.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from transformers.image_utils import IMAGENET_STANDARD_MEAN, IMAGENET_STANDARD_STD

from tensorrt_llm.errors import MediaError
from tensorrt_llm.inputs.data import StructuredPrompt
from tensorrt_llm.inputs.positions import grid_positions, joined_positions
from tensorrt_llm.inputs.prepared_item import PreparedItem
from tensorrt_llm.inputs.processors.qwen2_vl import Qwen2VLInputProcessor
from tensorrt_llm.inputs.processors.qwen_pixels import MAX_ASPECT
from tensorrt_llm.inputs.processors.qwen_video import VideoSettings
from tensorrt_llm.inputs.registry import register_input_processor
from tensorrt_llm.inputs.video_data import VideoClip


@dataclass(frozen=True)
class Qwen3VideoSettings(VideoSettings):
    """Settings of a checkpoint's video processor; bounds are of the area of all frames."""

    plain_bounds: ClassVar[bool] = False

    min_pixels: int = 128 * 32 * 32
    max_pixels: int = 768 * 32 * 32
    patch_size: int = 16
    mean: tuple[float, ...] = tuple(IMAGENET_STANDARD_MEAN)
    std: tuple[float, ...] = tuple(IMAGENET_STANDARD_STD)
    max_video_tokens: int = 768

    def frame_size(self, video: VideoClip, min_pixels: int, max_pixels: int) -> tuple[int, int]:
        """See the base class."""
        frames = max(video.num_frames, self.temporal_patch_size)
        if self.cap_pixels_per_frame:
            share = min(self.max_video_tokens * self.square**2, max_pixels // frames)
            max_pixels = max(share, int(min_pixels * 1.05)) * frames
        height, width = video.frames.shape[1:3]
        return scaled_volume(
            frames, height, width, self.temporal_patch_size, self.square, min_pixels, max_pixels
        )


def scaled_volume(
    frames: int, height: int, width: int, depth: int, square: int, min_pixels: int, max_pixels: int
) -> tuple[int, int]:
    """Size (height, width) in pixels that the frames of a video are scaled to.

    Args:
        frames: Number of frames.
        height: Height of a frame in pixels.
        width: Width of a frame in pixels.
        depth: Frames of a group.
        square: Both sides become multiples of it.
        min_pixels: Least area of all frames together.
        max_pixels: Greatest area of them, as far as sides of one square allow.

    Raises:
        MediaError: If a frame is too long and thin.
    """
    if height < square or width < square:
        scale = max(square / height, square / width)
        height, width = int(height * scale), int(width * scale)
    if max(height, width) > MAX_ASPECT * min(height, width):
        raise MediaError(
            f"a video of {width} x {height} pixels is too long and thin: one side may be at most "
            f"{MAX_ASPECT} times the other"
        )
    high, wide = (round(side / square) * square for side in (height, width))
    volume = round(frames / depth) * depth * high * wide
    if volume > max_pixels:
        shrink = math.sqrt(frames * height * width / max_pixels)
        high, wide = (
            max(square, math.floor(side / shrink / square) * square) for side in (height, width)
        )
    elif volume < min_pixels:
        grow = math.sqrt(min_pixels / (frames * height * width))
        high, wide = (math.ceil(side * grow / square) * square for side in (height, width))
    return high, wide


def shown_at(timestamps: Sequence[float], depth: int) -> list[str]:
    """The text before each group of frames: the middle of the times of its first and last."""
    times = [*timestamps, *[timestamps[-1]] * (-len(timestamps) % depth)]
    groups = [times[start : start + depth] for start in range(0, len(times), depth)]
    return [f"<{(group[0] + group[-1]) / 2:.1f} seconds>" for group in groups]


@register_input_processor("qwen3_vl")
class Qwen3VLInputProcessor(Qwen2VLInputProcessor):
    """Processor of Qwen3-VL. Options as of Qwen2-VL, those of video for all frames together."""

    video_settings_class = Qwen3VideoSettings

    @property
    def row_width(self) -> int:
        """Also what is added behind the first layers (deepstack)."""
        return super().row_width * (1 + len(self.config.vision_config.deepstack_visual_indexes))

    def _placed_video(
        self, video: VideoClip, grid: tuple[int, int, int], **fields: Any
    ) -> PreparedItem:
        groups, high, wide = grid
        begin, end = self.config.vision_start_token_id, self.config.vision_end_token_id
        rows = [self.placeholder_token_id("video")] * (high * wide)
        tokens: list[int] = []
        is_row: list[bool] = []
        places: list[Any] = []
        texts = shown_at(video.timestamps, self._video_settings.temporal_patch_size)
        assert len(texts) == groups
        for text in texts:
            words = self._words(text)
            tokens += [*words, begin, *rows, end]
            is_row += [*[False] * (len(words) + 1), *[True] * len(rows), False]
            places += [len(words) + 1, grid_positions(high, wide), 1]
        return PreparedItem(
            np.asarray(tokens, np.int32),
            np.asarray(is_row, bool),
            positions=joined_positions(places),
            **fields,
        )

    def _words(self, text: str) -> list[int]:
        token_ids, _ = self._tokenize(StructuredPrompt(text, add_special_tokens=False))
        return token_ids.tolist()
