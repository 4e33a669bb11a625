# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""What the Qwen families make of pixels: sizes of whole squares of patches, and the patches.

A picture keeps its shape: it is scaled so that both sides hold whole squares of patches and its
area lies between two bounds. Each square (2 x 2 patches) makes one row.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

import numpy as np
from PIL import Image
from transformers.image_utils import OPENAI_CLIP_MEAN, OPENAI_CLIP_STD

from tensorrt_llm.errors import MediaError
from tensorrt_llm.inputs.processors.settings import normalised

# Longer and thinner pictures are refused, as by the stock processor.
MAX_ASPECT = 200

_Settings = TypeVar("_Settings", bound="ImageSettings")


@dataclass(frozen=True)
class ImageSettings:
    """Settings of a checkpoint's image processor.

    Attributes:
        min_pixels: Least area of a scaled picture.
        max_pixels: Greatest area of a scaled picture.
        patch_size: Side of a patch in pixels.
        merge_size: Patches along the side of the square that makes a row.
        temporal_patch_size: Frames that make one patch; a still picture is repeated.
        resample: Pillow's number of the way to scale.
        mean: Mean a channel, of values in 0..1.
        std: Standard deviation a channel.
    """

    plain_bounds: ClassVar[bool] = True
    """Whether bounds may stand in ``min_pixels`` and ``max_pixels``; always in ``size``."""

    min_pixels: int = 56 * 56
    max_pixels: int = 28 * 28 * 1280
    patch_size: int = 14
    merge_size: int = 2
    temporal_patch_size: int = 2
    resample: int = int(Image.Resampling.BICUBIC)
    mean: tuple[float, ...] = tuple(OPENAI_CLIP_MEAN)
    std: tuple[float, ...] = tuple(OPENAI_CLIP_STD)

    @classmethod
    def from_config(cls: type[_Settings], settings: Mapping[str, Any]) -> _Settings:
        """Reads the keys of a stock ``preprocessor_config.json``; what is missing has its default.

        The bounds stand in ``min_pixels`` and ``max_pixels`` or, in newer files, in ``size``.
        """
        size = settings.get("size") or {}
        plain = settings if cls.plain_bounds else {}
        return cls(
            min_pixels=plain.get("min_pixels") or size.get("shortest_edge", cls.min_pixels),
            max_pixels=plain.get("max_pixels") or size.get("longest_edge", cls.max_pixels),
            patch_size=settings.get("patch_size", cls.patch_size),
            merge_size=settings.get("merge_size", cls.merge_size),
            temporal_patch_size=settings.get("temporal_patch_size", cls.temporal_patch_size),
            resample=int(settings.get("resample", cls.resample)),
            mean=tuple(settings.get("image_mean", cls.mean)),
            std=tuple(settings.get("image_std", cls.std)),
            **cls.more_from_config(settings),
        )

    @classmethod
    def more_from_config(cls, settings: Mapping[str, Any]) -> Mapping[str, Any]:
        """What a class with further settings reads."""
        return {}

    @property
    def square(self) -> int:
        """Side in pixels of the square that makes a row."""
        return self.patch_size * self.merge_size


def scaled_size(
    height: int, width: int, square: int, min_pixels: int, max_pixels: int
) -> tuple[int, int]:
    """Size (height, width) in pixels that a picture is scaled to.

    Args:
        height: Height of the picture in pixels.
        width: Width of the picture in pixels.
        square: Both sides become multiples of it.
        min_pixels: Least area.
        max_pixels: Greatest area, as far as sides of one square allow.

    Raises:
        MediaError: If the picture is too long and thin.
    """
    if max(height, width) > MAX_ASPECT * min(height, width):
        raise MediaError(
            f"an image of {width} x {height} pixels is too long and thin: one side may be at most "
            f"{MAX_ASPECT} times the other"
        )
    high, wide = (round(side / square) * square for side in (height, width))
    if high * wide > max_pixels:
        shrink = math.sqrt(height * width / max_pixels)
        high, wide = (
            max(square, math.floor(side / shrink / square) * square) for side in (height, width)
        )
    elif high * wide < min_pixels:
        grow = math.sqrt(min_pixels / (height * width))
        high, wide = (math.ceil(side * grow / square) * square for side in (height, width))
    return high, wide


def patch_values(image: Image.Image, size: tuple[int, int], settings: ImageSettings) -> np.ndarray:
    """Scales, normalises and cuts a picture.

    Args:
        image: An RGB picture.
        size: Result of ``scaled_size``.
        settings: The checkpoint's settings.

    Returns:
        float32 ``[patches, 3 * temporal_patch_size * patch_size ** 2]``, the patches of each
        square together, the squares line by line.
    """
    if image.size != size[::-1]:
        image = image.resize(size[::-1], Image.Resampling(settings.resample))
    frame = np.asarray(image)
    repeated = np.broadcast_to(frame, (settings.temporal_patch_size, *frame.shape))
    return cut_patches(repeated, settings)


def cut_patches(frames: np.ndarray, settings: ImageSettings) -> np.ndarray:
    """Normalises and cuts frames, ``temporal_patch_size`` of them making a patch.

    Args:
        frames: uint8 ``[frames, height, width, 3]``, whole groups of whole squares.
        settings: The checkpoint's settings.

    Returns:
        float32 ``[patches, 3 * temporal_patch_size * patch_size ** 2]``, group by group, the
        patches of each square together, the squares line by line.
    """
    patch, merge, depth = settings.patch_size, settings.merge_size, settings.temporal_patch_size
    pixels = normalised(frames, settings.mean, settings.std)
    groups = len(frames) // depth
    high, wide = (side // settings.square for side in frames.shape[1:3])
    # (group, frame, line, patch below, pixel below, column, patch beside, pixel beside, channel)
    parts = pixels.reshape(groups, depth, high, merge, patch, wide, merge, patch, 3)
    parts = parts.transpose(0, 2, 5, 3, 6, 8, 1, 4, 7)
    return parts.reshape(groups * high * wide * merge * merge, -1)
