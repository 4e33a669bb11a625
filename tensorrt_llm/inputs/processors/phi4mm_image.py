# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Pictures for Phi-4-multimodal: one overview and a grid of crops, without torchvision.

The picture is scaled to fit a grid of square crops and padded with white to the right and below.
The encoder sees every crop and, before them, the whole padded grid squeezed into one crop. A mask
of patches says which of them are padding. Two by two patches make one row; a row end closes every
line of rows, and one separator stands between the crops and the overview.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from PIL import Image

from tensorrt_llm.errors import ConfigurationError, MediaError

# Below this many pixels a side is a line, not a picture, and the encoder was never trained on it.
MIN_SIDE = 10
WHITE = 255


@dataclass(frozen=True)
class ImageSettings:
    """Settings of the image half of a checkpoint's processor.

    Attributes:
        crop_size: Side of a crop in pixels.
        patch_size: Side of a patch in pixels.
        max_crops: Most crops a picture is cut into, the overview not counted.
        mean: Mean a channel, of values in 0..1.
        std: Standard deviation a channel.
    """

    crop_size: int = 448
    patch_size: int = 14
    max_crops: int = 36
    mean: tuple[float, ...] = (0.5, 0.5, 0.5)
    std: tuple[float, ...] = (0.5, 0.5, 0.5)

    @classmethod
    def from_config(cls, settings: Mapping[str, Any]) -> ImageSettings:
        """Reads the keys of a stock ``preprocessor_config.json``; what is missing has its default.

        Raises:
            ConfigurationError: If crops are not square or hold no whole number of patches.
        """
        size = settings.get("size", {"height": cls.crop_size, "width": cls.crop_size})
        height, width = (
            (size, size) if isinstance(size, int) else (size.get("height"), size.get("width"))
        )
        patch_size = settings.get("patch_size", cls.patch_size)
        if height != width or not height or height % patch_size:
            raise ConfigurationError(
                f"image crops must be square and a multiple of the patch of {patch_size} pixels, "
                f"not {height} x {width}"
            )
        return cls(
            crop_size=height,
            patch_size=patch_size,
            max_crops=settings.get("dynamic_hd", cls.max_crops),
            mean=tuple(settings.get("image_mean", cls.mean)),
            std=tuple(settings.get("image_std", cls.std)),
        )

    @property
    def patches(self) -> int:
        """Patches along one side of a crop."""
        return self.crop_size // self.patch_size


@dataclass(frozen=True)
class CropPlan:
    """How one picture falls into crops. Sizes are (height, width).

    Attributes:
        grid: Crops below and beside each other.
        scaled: Size of the picture inside the grid, in pixels.
        useful: Patches that are not all padding.
    """

    grid: tuple[int, int]
    scaled: tuple[int, int]
    useful: tuple[int, int]


def plan_crops(height: int, width: int, settings: ImageSettings, max_crops: int) -> CropPlan:
    """Decides the grid of a picture.

    Args:
        height: Height of the picture in pixels.
        width: Width of the picture in pixels.
        settings: The checkpoint's settings.
        max_crops: Most crops for this picture.

    Raises:
        MediaError: If the picture is so long and thin that it would become a line.
    """
    size = settings.crop_size
    across, down = math.ceil(width / size), math.ceil(height / size)
    if across * down > max_crops:
        across, down = _closest_grid(height, width, size, max_crops)
    scale_x, scale_y = across * size / width, down * size / height
    if scale_x < scale_y:
        scaled = (int(height * scale_x), across * size)
    else:
        scaled = (down * size, int(width * scale_y))
    if min(scaled) < MIN_SIDE:
        raise MediaError(
            f"an image of {width} x {height} pixels is too long and thin: it would be scaled to "
            f"{scaled[1]} x {scaled[0]}, and no side may be below {MIN_SIDE} pixels"
        )
    patch = settings.patch_size
    useful = (
        down * settings.patches - (down * size - scaled[0]) // patch,
        across * settings.patches - (across * size - scaled[1]) // patch,
    )
    return CropPlan((down, across), scaled, useful)


def _closest_grid(height: int, width: int, size: int, max_crops: int) -> tuple[int, int]:
    """The grid (across, down) of at most ``max_crops`` whose shape is nearest to the picture's.

    Of grids of one shape the larger wins if the picture has more than half of its pixels.
    """
    grids = [
        (across, down)
        for across in range(1, max_crops + 1)
        for down in range(1, max_crops // across + 1)
    ]
    best, best_difference = (1, 1), math.inf
    for across, down in sorted(grids, key=lambda grid: grid[0] * grid[1]):
        difference = abs(width / height - across / down)
        large_enough = width * height > 0.5 * size * size * across * down
        if difference < best_difference or (difference == best_difference and large_enough):
            best, best_difference = (across, down), difference
    return best


def num_rows(plan: CropPlan, settings: ImageSettings) -> int:
    """Embedding rows of a picture: overview, separator and crops, a row end for every line."""
    side = math.ceil(settings.patches / 2)
    high, wide = (_useful_rows(patches, settings) for patches in plan.useful)
    return side * (side + 1) + 1 + high * (wide + 1)


def _useful_rows(patches: int, settings: ImageSettings) -> int:
    # Every second patch of each crop starts a row; in crops of an odd number of patches the last
    # one stands alone, so crops are counted one by one.
    whole, rest = divmod(patches, settings.patches)
    return whole * math.ceil(settings.patches / 2) + math.ceil(rest / 2)


def encoder_inputs(
    image: Image.Image, plan: CropPlan, settings: ImageSettings
) -> dict[str, torch.Tensor]:
    """Makes the encoder's tensors for one picture.

    Args:
        image: The picture.
        plan: What ``plan_crops`` decided for its size.
        settings: The checkpoint's settings.

    Returns:
        ``image_pixel_values`` float32 ``[1, 1 + crops, 3, crop, crop]``, ``image_sizes`` int64
        ``[1, 2]`` (height and width of the grid in pixels) and ``image_attention_mask`` float32
        ``[1, 1 + crops, patches, patches]``, 1 for patches of the picture and 0 for padding.
    """
    down, across = plan.grid
    crop, patches = settings.crop_size, settings.patches
    pixels = torch.from_numpy(np.array(image.convert("RGB"))).permute(2, 0, 1)[None]
    if pixels.shape[-2:] != plan.scaled:
        pixels = F.interpolate(pixels, plan.scaled, mode="bilinear", antialias=True)
    padding = (0, across * crop - plan.scaled[1], 0, down * crop - plan.scaled[0])
    grid = _normalise(F.pad(pixels, padding, value=WHITE), settings)
    overview = F.interpolate(grid, (crop, crop), mode="bicubic", align_corners=False)
    mask = torch.zeros(1, 1, down * patches, across * patches)
    mask[..., : plan.useful[0], : plan.useful[1]] = 1
    return {
        "image_pixel_values": torch.cat([overview, _tiles(grid, crop)])[None],
        "image_sizes": torch.tensor([[down * crop, across * crop]]),
        "image_attention_mask": torch.cat(
            [torch.ones(1, patches, patches), _tiles(mask, patches)[:, 0]]
        )[None],
    }


def _normalise(pixels: torch.Tensor, settings: ImageSettings) -> torch.Tensor:
    mean, std = (torch.tensor(values)[:, None, None] for values in (settings.mean, settings.std))
    return (pixels.float() / WHITE - mean) / std


def _tiles(plane: torch.Tensor, side: int) -> torch.Tensor:
    """``[1, channels, high * side, wide * side]`` to ``[high * wide, channels, side, side]``."""
    channels, height, width = plane.shape[1:]
    tiles = plane.reshape(channels, height // side, side, width // side, side)
    return tiles.permute(1, 3, 0, 2, 4).reshape(-1, channels, side, side)
