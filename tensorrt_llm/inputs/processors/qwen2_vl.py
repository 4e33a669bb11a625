# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Qwen2-VL, Qwen2.5-VL and Qwen3-VL: pictures of any size, without torchvision.

A picture keeps its shape: it is scaled so that both sides hold whole squares of patches and its
area lies between two bounds. Each square (2 x 2 patches) makes one row. The rows stand on a grid
of height and width, so the place of the text behind a picture depends on the picture's shape, not
only on its number of rows (see ``positions``).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from PIL import Image
from transformers.image_utils import OPENAI_CLIP_MEAN, OPENAI_CLIP_STD

from tensorrt_llm.errors import ConfigurationError, MediaError, RequestError
from tensorrt_llm.inputs.data import MediaItem
from tensorrt_llm.inputs.image_form import model_image
from tensorrt_llm.inputs.positions import grid_positions
from tensorrt_llm.inputs.processors.settings import normalised, read_image_settings
from tensorrt_llm.inputs.registry import (
    InputProcessor,
    PreparedItem,
    fingerprint,
    refuse_unknown_options,
    register_input_processor,
)

# Longer and thinner pictures are refused, as by the stock processor.
MAX_ASPECT = 200
# Most rows that a request may ask for, unless the checkpoint's own setting is higher.
MAX_ROWS = 16384
_OPTIONS = ("min_pixels", "max_pixels")


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

    min_pixels: int = 56 * 56
    max_pixels: int = 28 * 28 * 1280
    patch_size: int = 14
    merge_size: int = 2
    temporal_patch_size: int = 2
    resample: int = int(Image.Resampling.BICUBIC)
    mean: tuple[float, ...] = tuple(OPENAI_CLIP_MEAN)
    std: tuple[float, ...] = tuple(OPENAI_CLIP_STD)

    @classmethod
    def from_config(cls, settings: Mapping[str, Any]) -> ImageSettings:
        """Reads the keys of a stock ``preprocessor_config.json``; what is missing has its default.

        The bounds stand in ``min_pixels`` and ``max_pixels`` or, in newer files, in ``size``.
        """
        size = settings.get("size") or {}
        return cls(
            min_pixels=settings.get("min_pixels") or size.get("shortest_edge", cls.min_pixels),
            max_pixels=settings.get("max_pixels") or size.get("longest_edge", cls.max_pixels),
            patch_size=settings.get("patch_size", cls.patch_size),
            merge_size=settings.get("merge_size", cls.merge_size),
            temporal_patch_size=settings.get("temporal_patch_size", cls.temporal_patch_size),
            resample=int(settings.get("resample", cls.resample)),
            mean=tuple(settings.get("image_mean", cls.mean)),
            std=tuple(settings.get("image_std", cls.std)),
        )

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
    patch, merge = settings.patch_size, settings.merge_size
    if image.size != size[::-1]:
        image = image.resize(size[::-1], Image.Resampling(settings.resample))
    pixels = normalised(np.asarray(image), settings.mean, settings.std)
    high, wide = (side // settings.square for side in size)
    # (line, patch below, pixel below, column, patch beside, pixel beside, channel)
    parts = pixels.reshape(high, merge, patch, wide, merge, patch, 3)
    parts = parts.transpose(0, 3, 1, 4, 6, 2, 5)[:, :, :, :, :, None]
    frames = np.broadcast_to(parts, (*parts.shape[:5], settings.temporal_patch_size, patch, patch))
    return frames.reshape(high * wide * merge * merge, -1)


@register_input_processor("qwen2_vl", "qwen2_5_vl", "qwen3_vl")
class Qwen2VLInputProcessor(InputProcessor):
    """Processor of Qwen2-VL, Qwen2.5-VL and Qwen3-VL.

    Options: ``min_pixels`` and ``max_pixels``, the bounds of a scaled picture's area.

    Raises:
        ConfigurationError: If the checkpoint's processor settings are missing, or do not fit its
            encoder.
    """

    modalities: tuple[str, ...] = ("image",)

    def read_settings(self) -> None:
        """Reads them, and sees that they fit the encoder."""
        self._settings = ImageSettings.from_config(
            read_image_settings(self.model_path, ("patch_size", "merge_size"))
        )
        vision = self.config.vision_config
        for name, expected in (
            ("patch_size", vision.patch_size),
            ("merge_size", vision.spatial_merge_size),
            ("temporal_patch_size", vision.temporal_patch_size),
        ):
            made = getattr(self._settings, name)
            if made != expected:
                raise ConfigurationError(
                    f"{self.model_path}: the processor has {name} {made}, the encoder {expected}"
                )
        self._fingerprint = fingerprint("qwen2_vl.image.v1", asdict(self._settings))

    def placeholder_token_id(self, modality: str) -> int:
        """The configured image token."""
        return int(self.config.image_token_id)

    def resolve_options(self, mm_processor_kwargs: Mapping[str, Any]) -> Mapping[str, Any]:
        """Checks ``min_pixels`` and ``max_pixels``; their defaults are the checkpoint's."""
        refuse_unknown_options(mm_processor_kwargs, _OPTIONS)
        settings = self._settings
        limit = max(MAX_ROWS * settings.square**2, settings.max_pixels)
        options = {}
        for name in _OPTIONS:
            value = mm_processor_kwargs.get(name)
            if value is None:
                value = getattr(settings, name)
            elif type(value) is not int or not 1 <= value <= limit:
                raise RequestError(
                    f"{name} must be an int from 1 to {limit}, not {value!r:.80}",
                    part="mm_processor_kwargs",
                )
            options[name] = value
        if options["min_pixels"] > options["max_pixels"]:
            raise RequestError(
                f"min_pixels {options['min_pixels']} exceeds max_pixels {options['max_pixels']}",
                part="mm_processor_kwargs",
            )
        return options

    def prepare(
        self, item: MediaItem, options: Mapping[str, Any], present: frozenset[str]
    ) -> PreparedItem:
        """Preprocesses one picture."""
        settings = self._settings
        image = model_image(item.data)
        size = scaled_size(image.height, image.width, settings.square, **options)
        rows_high, rows_wide = (side // settings.square for side in size)
        patches = torch.from_numpy(patch_values(image, size, settings))
        grid = torch.tensor([[1, *(side // settings.patch_size for side in size)]])
        return PreparedItem.of_rows(
            self.placeholder_token_id("image"),
            rows_high * rows_wide,
            encoder_inputs={"pixel_values": patches, "image_grid_thw": grid},
            context={**options, "processor": self._fingerprint},
            positions=grid_positions(rows_high, rows_wide),
        )
