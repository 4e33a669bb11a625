# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Idefics3 and SmolVLM: pictures in tiles with tags between, without torchvision.

A picture is scaled to a longest edge, then so that both sides hold whole tiles, and cut. The
encoder sees every tile and, after them, all of it squeezed into one more. Each tile makes a fixed
number of rows. Tags for line and column stand before a tile's rows and line ends behind a line of
tiles, so an item is several runs of rows with text between.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from PIL import Image

from tensorrt_llm.errors import ConfigurationError, MediaError, RequestError
from tensorrt_llm.inputs.data import MediaItem
from tensorrt_llm.inputs.image_form import model_image
from tensorrt_llm.inputs.prepared_item import PreparedItem
from tensorrt_llm.inputs.processors.settings import normalised, read_image_settings
from tensorrt_llm.inputs.registry import (
    InputProcessor,
    fingerprint,
    refuse_unknown_options,
    register_input_processor,
)

# The stock processor scales nothing beyond it.
MAX_EDGE = 4096
_EDGE, _OVERVIEW = "<fake_token_around_image>", "<global-img>"


@dataclass(frozen=True)
class ImageSettings:
    """Settings of a checkpoint's image processor.

    Attributes:
        longest_edge: Longer side in pixels that a picture is scaled to.
        tile: Side of a tile in pixels.
        splits: Whether pictures are cut into tiles, unless a request says otherwise.
        resample: Pillow's number of the way to scale.
        mean: Mean a channel, of values in 0..1.
        std: Standard deviation a channel.
    """

    longest_edge: int = 4 * 364
    tile: int = 364
    splits: bool = True
    resample: int = int(Image.Resampling.LANCZOS)
    mean: tuple[float, ...] = (0.5, 0.5, 0.5)
    std: tuple[float, ...] = (0.5, 0.5, 0.5)

    @classmethod
    def from_config(cls, settings: Mapping[str, Any]) -> ImageSettings:
        """Reads the keys of a stock ``preprocessor_config.json``; what is missing has its default.

        Raises:
            ConfigurationError: If the longest edge is more than the stock processor would use.
        """
        made = cls(
            longest_edge=settings.get("size", {}).get("longest_edge", cls.longest_edge),
            tile=settings.get("max_image_size", {}).get("longest_edge", cls.tile),
            splits=bool(settings.get("do_image_splitting", cls.splits)),
            resample=int(settings.get("resample", cls.resample)),
            mean=tuple(settings.get("image_mean", cls.mean)),
            std=tuple(settings.get("image_std", cls.std)),
        )
        if made.longest_edge > MAX_EDGE:
            raise ConfigurationError(
                f"the image processor's longest edge is {made.longest_edge} pixels; at most "
                f"{MAX_EDGE} are taken"
            )
        return made


def edge_size(height: int, width: int, longest: int) -> tuple[int, int]:
    """Size (height, width) scaled so that the longer side is ``longest``, the other one even."""
    ratio = width / height
    if width >= height:
        short = int(longest / ratio)
        return max(short + short % 2, 1), longest
    short = int(longest * ratio)
    return longest, max(short + short % 2, 1)


def tiled_size(height: int, width: int, tile: int) -> tuple[int, int]:
    """Size (height, width) of whole tiles, the longer side rounded up and the other one after."""
    ratio = width / height
    if width >= height:
        wide = math.ceil(width / tile) * tile
        return math.ceil(max(int(wide / ratio), 1) / tile) * tile, wide
    high = math.ceil(height / tile) * tile
    return high, math.ceil(max(int(high * ratio), 1) / tile) * tile


def cut_tiles(
    image: Image.Image, settings: ImageSettings, splits: bool
) -> tuple[np.ndarray, tuple[int, int]]:
    """Scales a picture and cuts it.

    Args:
        image: An RGB picture.
        settings: The checkpoint's settings.
        splits: Whether to cut it, or only to squeeze it into one tile.

    Returns:
        float32 ``[tiles, 3, tile, tile]``, the whole picture last; and the grid (lines, columns),
        ``(0, 0)`` if there is nothing but the whole picture.
    """
    tile, resample = settings.tile, Image.Resampling(settings.resample)

    def scaled(source: Image.Image, size: tuple[int, int]) -> Image.Image:
        return source if source.size == size[::-1] else source.resize(size[::-1], resample)

    picture = scaled(image, edge_size(image.height, image.width, settings.longest_edge))
    lines = columns = 0
    tiles = []
    if splits:
        picture = scaled(picture, tiled_size(picture.height, picture.width, tile))
        if max(picture.size) > tile:
            lines, columns = picture.height // tile, picture.width // tile
            tiles = [
                picture.crop((left, top, left + tile, top + tile))
                for top in range(0, picture.height, tile)
                for left in range(0, picture.width, tile)
            ]
    tiles.append(scaled(picture, (tile, tile)))
    pixels = normalised(np.stack([np.asarray(one) for one in tiles]), settings.mean, settings.std)
    return pixels.transpose(0, 3, 1, 2), (lines, columns)


@register_input_processor("idefics3", "smolvlm")
class Idefics3InputProcessor(InputProcessor):
    """Processor of Idefics3 and SmolVLM.

    One option: ``do_image_splitting``, whether a picture is cut into tiles.

    Raises:
        ConfigurationError: If the checkpoint's processor settings are missing, or do not fit its
            encoder.
    """

    modalities = ("image",)
    embedding_modalities = modalities
    grid_modalities = modalities

    def read_settings(self) -> None:
        """Reads them, and sees that they fit the encoder."""
        self._settings = ImageSettings.from_config(
            read_image_settings(self.model_path, ("max_image_size", "do_image_splitting"))
        )
        vision = self.config.vision_config
        if self._settings.tile != vision.image_size:
            raise ConfigurationError(
                f"{self.model_path}: the processor makes tiles of {self._settings.tile} pixels, "
                f"the encoder takes {vision.image_size}"
            )
        self._rows_per_tile = (vision.image_size // vision.patch_size) ** 2 // (
            self.config.scale_factor**2
        )
        self._fingerprint = fingerprint("idefics3.image.v1", asdict(self._settings))

    def placeholder_token_id(self, modality: str) -> int:
        """The configured image token."""
        return int(self.config.image_token_id)

    def resolve_options(self, mm_processor_kwargs: Mapping[str, Any]) -> Mapping[str, Any]:
        """Checks ``do_image_splitting``; its default is the checkpoint's."""
        refuse_unknown_options(mm_processor_kwargs, ("do_image_splitting",))
        splits = mm_processor_kwargs.get("do_image_splitting")
        if splits is None:
            splits = self._settings.splits
        if type(splits) is not bool:
            raise RequestError(
                f"do_image_splitting must be true or false, not {splits!r:.80}",
                part="mm_processor_kwargs",
            )
        return {"do_image_splitting": splits}

    def prepare(
        self, item: MediaItem, options: Mapping[str, Any], present: frozenset[str]
    ) -> PreparedItem:
        """Preprocesses one picture."""
        splits = options["do_image_splitting"]
        tiles, grid = cut_tiles(model_image(item.data), self._settings, splits)
        return self._tiled(
            grid,
            encoder_inputs={"pixel_values": torch.from_numpy(tiles)[None]},
            context={**options, "processor": self._fingerprint},
        )

    def lay_out_rows(
        self, modality: str, num_rows: int, grid: tuple[int, int] | None
    ) -> PreparedItem:
        """Rows of the tiles, line by line, and then those of the whole picture."""
        assert grid is not None
        lines, columns = grid
        if min(grid) < 0 or (lines == 0) != (columns == 0):
            raise MediaError(f"there is no grid of {lines} x {columns} tiles")
        expected = (lines * columns + 1) * self._rows_per_tile
        if num_rows != expected:
            raise MediaError(
                f"{lines} x {columns} tiles and the whole picture have {expected} rows, not "
                f"{num_rows}"
            )
        return self._tiled(grid, encoder_inputs={})

    def _tiled(self, grid: tuple[int, int], **fields: Any) -> PreparedItem:
        """The item of a picture that is cut into a grid of tiles."""
        # The text begins and ends with a special token: it is tokenised alike wherever it stands.
        encoding = self.tokenizer(self._text(*grid), add_special_tokens=False)
        token_ids = np.asarray(encoding["input_ids"], dtype=np.int32)
        is_row = token_ids == self.placeholder_token_id("image")
        return PreparedItem(token_ids, is_row, grid=grid, **fields)

    def _text(self, lines: int, columns: int) -> str:
        """What stands in the prompt for a picture of so many tiles."""
        rows = self.placeholder_text("image") * self._rows_per_tile
        text = "".join(
            "".join(f"{_EDGE}<row_{line}_col_{column}>{rows}" for column in range(1, columns + 1))
            + "\n"
            for line in range(1, lines + 1)
        )
        if text:
            text += "\n"
        return f"{text}{_EDGE}{_OVERVIEW}{rows}{_EDGE}"
