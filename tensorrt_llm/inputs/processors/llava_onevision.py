# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""LLaVA-OneVision: pictures in tiles of any resolution, and video, without torchvision.

Of the grids that the checkpoint names, a picture gets the one that keeps most of it. It is scaled
into the grid, centred on black and cut into tiles; before them the encoder sees all of it, squeezed
into one tile. The rows of the tiles are put together as the picture was, those of the black edge
dropped, and made fewer where there are too many; a line end stands behind each line.

Each frame of a video is squeezed into one tile, of which a quarter of the rows is kept, and one
line end stands behind all of them.

The stock processor cuts a picture into tiles if it is the only one of its list. Here every picture
is cut, whatever stands beside it, so that its rows depend on nothing but itself.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from PIL import Image
from transformers.image_utils import OPENAI_CLIP_MEAN, OPENAI_CLIP_STD

from tensorrt_llm.errors import ConfigurationError
from tensorrt_llm.inputs.data import MediaItem
from tensorrt_llm.inputs.image_form import model_image
from tensorrt_llm.inputs.prepared_item import PreparedItem
from tensorrt_llm.inputs.processors.settings import (
    normalised,
    read_image_settings,
    read_video_settings,
)
from tensorrt_llm.inputs.processors.video_rows import check_rows, scaled_frames
from tensorrt_llm.inputs.registry import InputProcessor, fingerprint, register_input_processor
from tensorrt_llm.inputs.video_data import VideoClip

# A picture's rows are made fewer where they exceed the allowed ones by more than this factor a
# side.
_SLACK = 1.1


@dataclass(frozen=True)
class ImageSettings:
    """Settings of a checkpoint's image processor.

    Attributes:
        tile: Side of a tile in pixels.
        grids: Sizes (height, width) in pixels that a picture may be scaled into.
        resample: Pillow's number of the way to scale.
        mean: Mean a channel, of values in 0..1.
        std: Standard deviation a channel.
    """

    tile: int
    grids: tuple[tuple[int, int], ...]
    resample: int = int(Image.Resampling.BICUBIC)
    mean: tuple[float, ...] = tuple(OPENAI_CLIP_MEAN)
    std: tuple[float, ...] = tuple(OPENAI_CLIP_STD)

    @classmethod
    def from_config(
        cls, settings: Mapping[str, Any], tile: int, grids: Sequence[Sequence[int]]
    ) -> ImageSettings:
        """Reads the keys of a stock ``preprocessor_config.json``.

        Args:
            settings: The keys.
            tile: Side of a tile where they do not say it.
            grids: Grids where they do not name them.
        """
        size = settings.get("size") or {}
        named = settings.get("image_grid_pinpoints", grids)
        return cls(
            tile=int(size.get("height") or size.get("shortest_edge") or tile),
            grids=tuple((int(height), int(width)) for height, width in named),
            resample=int(settings.get("resample", cls.resample)),
            mean=tuple(settings.get("image_mean", cls.mean)),
            std=tuple(settings.get("image_std", cls.std)),
        )


def best_grid(height: int, width: int, grids: Sequence[tuple[int, int]]) -> tuple[int, int]:
    """The grid (height, width) in pixels that keeps most of a picture and wastes least."""

    def worth(grid: tuple[int, int]) -> tuple[int, int]:
        high, wide = grid
        scale = min(wide / width, high / height)
        kept = min(int(width * scale) * int(height * scale), width * height)
        return kept, kept - high * wide

    return max(grids, key=worth)


def cut_tiles(image: Image.Image, grid: tuple[int, int], settings: ImageSettings) -> np.ndarray:
    """Scales a picture into a grid and cuts it.

    Args:
        image: An RGB picture.
        grid: Result of ``best_grid``.
        settings: The checkpoint's settings.

    Returns:
        float32 ``[1 + tiles, 3, tile, tile]``, the whole picture first.
    """
    tile, resample = settings.tile, Image.Resampling(settings.resample)
    high, wide = grid
    by_width, by_height = wide / image.width, high / image.height
    if by_width < by_height:
        size = wide, min(math.ceil(image.height * by_width), high)
    else:
        size = min(math.ceil(image.width * by_height), wide), high
    ground = Image.new("RGB", (wide, high))
    ground.paste(image.resize(size, resample), ((wide - size[0]) // 2, (high - size[1]) // 2))
    tiles = [image.resize((tile, tile), resample)]
    tiles += [
        ground.crop((left, top, left + tile, top + tile))
        for top in range(0, high, tile)
        for left in range(0, wide, tile)
    ]
    pixels = normalised(np.stack([np.asarray(one) for one in tiles]), settings.mean, settings.std)
    return pixels.transpose(0, 3, 1, 2)


def num_rows(height: int, width: int, lines: int, columns: int, side: int, most: int) -> int:
    """Rows of a picture.

    Args:
        height: Height of the picture in pixels.
        width: Width of the picture in pixels.
        lines: Tiles of its grid from top to bottom.
        columns: Tiles of its grid from left to right.
        side: Rows along a tile's side.
        most: Tiles whose rows are kept at most.
    """
    high, wide = side * lines, side * columns
    if width / height > wide / high:
        high -= (high - int(round(height * (wide / width), 7))) // 2 * 2
    else:
        wide -= (wide - int(round(width * (high / height), 7))) // 2 * 2
    shrink = math.sqrt(high * wide / (most * side**2))
    if shrink > _SLACK:
        high, wide = int(high // shrink), int(wide // shrink)
    return side * side + high * (wide + 1)


@register_input_processor("llava_onevision")
class LlavaOnevisionInputProcessor(InputProcessor):
    """Processor of LLaVA-OneVision. Takes no options.

    Raises:
        ConfigurationError: If the checkpoint's processor settings are missing, or do not fit its
            encoder.
    """

    modalities = ("image", "video")
    embedding_modalities = modalities

    def read_settings(self) -> None:
        """Reads them, and sees that they fit the encoder."""
        vision, config = self.config.vision_config, self.config
        if config.vision_feature_select_strategy != "full":
            raise ConfigurationError(
                f"{self.model_path}: vision_feature_select_strategy "
                f"{config.vision_feature_select_strategy!r} is not taken, only 'full'"
            )
        tiles = re.fullmatch(r"anyres_max_(\d+)", config.vision_aspect_ratio)
        if tiles is None:
            raise ConfigurationError(
                f"{self.model_path}: vision_aspect_ratio {config.vision_aspect_ratio!r} is not "
                "taken, only 'anyres_max_N'"
            )
        self._settings = settings = ImageSettings.from_config(
            read_image_settings(self.model_path, ("image_grid_pinpoints",)),
            vision.image_size,
            config.image_grid_pinpoints,
        )
        self._video_settings = ImageSettings.from_config(
            {**read_video_settings(self.model_path), "image_grid_pinpoints": ()},
            vision.image_size,
            (),
        )
        made = {settings.tile, self._video_settings.tile} - {vision.image_size}
        if made:
            raise ConfigurationError(
                f"{self.model_path}: the processor makes tiles of {made.pop()} pixels, the "
                f"encoder takes {vision.image_size}"
            )
        if settings.grids != tuple(map(tuple, config.image_grid_pinpoints)):
            raise ConfigurationError(
                f"{self.model_path}: the processor and the encoder name other grids: "
                f"{len(settings.grids)} and {len(config.image_grid_pinpoints)} of them"
            )
        self._side = vision.image_size // vision.patch_size
        self._most = int(tiles[1])
        self._fingerprint = fingerprint(
            "llava_onevision.image.v1", asdict(settings) | {"most": self._most}
        )

        self._video_fingerprint = fingerprint(
            "llava_onevision.video.v1", asdict(self._video_settings)
        )

    def placeholder_token_id(self, modality: str) -> int:
        """The configured image or video token."""
        return int(getattr(self.config, f"{modality}_token_id"))

    def prepare(
        self, item: MediaItem, options: Mapping[str, Any], present: frozenset[str]
    ) -> PreparedItem:
        """Preprocesses one picture or video."""
        if item.modality == "video":
            return self._prepare_video(item.data)
        settings, image = self._settings, model_image(item.data)
        grid = best_grid(image.height, image.width, settings.grids)
        lines, columns = (side // settings.tile for side in grid)
        rows = num_rows(image.height, image.width, lines, columns, self._side, self._most)
        return PreparedItem.of_rows(
            self.placeholder_token_id("image"),
            rows,
            encoder_inputs={
                "pixel_values": torch.from_numpy(cut_tiles(image, grid, settings))[None],
                "image_sizes": torch.tensor([[image.height, image.width]]),
            },
            context={"processor": self._fingerprint},
        )

    def _prepare_video(self, video: VideoClip) -> PreparedItem:
        settings = self._video_settings
        rows = video.num_frames * math.ceil(self._side / 2) ** 2 + 1
        check_rows(rows)
        pixels = scaled_frames(video.frames, (settings.tile, settings.tile), settings.resample)
        values = normalised(pixels, settings.mean, settings.std).transpose(0, 3, 1, 2)
        return PreparedItem.of_rows(
            self.placeholder_token_id("video"),
            rows,
            encoder_inputs={"pixel_values_videos": torch.from_numpy(values.copy())[None]},
            context={"processor": self._video_fingerprint},
        )
