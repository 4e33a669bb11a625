# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Gemma 3: pictures of a fixed number of rows, without torchvision.

A picture is squeezed into a square, whatever its shape. Its rows stand between two marks, with an
empty line before and behind, which is tokenised with the text beside it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import torch
from PIL import Image

from tensorrt_llm.errors import ConfigurationError, MediaError
from tensorrt_llm.inputs.data import MediaItem
from tensorrt_llm.inputs.image_form import model_image
from tensorrt_llm.inputs.prepared_item import PreparedItem
from tensorrt_llm.inputs.processors.settings import normalised, read_image_settings
from tensorrt_llm.inputs.registry import InputProcessor, fingerprint, register_input_processor


@dataclass(frozen=True)
class ImageSettings:
    """Settings of a checkpoint's image processor.

    Attributes:
        side: Side in pixels of the square that a picture is squeezed into.
        resample: Pillow's number of the way to scale.
        mean: Mean a channel, of values in 0..1.
        std: Standard deviation a channel.
    """

    side: int
    resample: int = int(Image.Resampling.BILINEAR)
    mean: tuple[float, ...] = (0.5, 0.5, 0.5)
    std: tuple[float, ...] = (0.5, 0.5, 0.5)

    @classmethod
    def from_config(cls, settings: Mapping[str, Any]) -> ImageSettings:
        """Reads the keys of a stock ``preprocessor_config.json``.

        Raises:
            ConfigurationError: If pictures would not become squares, or crops of them be added.
        """
        size = settings.get("size") or {"height": 224, "width": 224}
        if size.get("height") is None or size.get("height") != size.get("width"):
            raise ConfigurationError(f"the image processor's size is {size}, not a square")
        if settings.get("do_pan_and_scan"):
            raise ConfigurationError(
                "the image processor's do_pan_and_scan is true: crops beside the picture are not "
                "made by this release"
            )
        return cls(
            side=int(size["height"]),
            resample=int(settings.get("resample", cls.resample)),
            mean=tuple(settings.get("image_mean", cls.mean)),
            std=tuple(settings.get("image_std", cls.std)),
        )


@register_input_processor("gemma3")
class Gemma3InputProcessor(InputProcessor):
    """Processor of Gemma 3. Takes no options.

    Raises:
        ConfigurationError: If the checkpoint's processor settings are missing, or do not fit its
            encoder.
    """

    modalities = ("image",)
    embedding_modalities = modalities
    frame = ("\n\n", "\n\n")

    def read_settings(self) -> None:
        """Reads them, and sees that they fit the encoder."""
        stock = read_image_settings(self.model_path, ("do_pan_and_scan", "image_seq_length"))
        try:
            self._settings = ImageSettings.from_config(stock)
        except ConfigurationError as error:
            raise ConfigurationError(f"{self.model_path}: {error}") from error
        expected = self.config.vision_config.image_size
        if self._settings.side != expected:
            raise ConfigurationError(
                f"{self.model_path}: the processor makes pictures of {self._settings.side} pixels "
                f"a side, the encoder takes {expected}"
            )
        self._fingerprint = fingerprint("gemma3.image.v1", asdict(self._settings))

    def placeholder_token_id(self, modality: str) -> int:
        """The configured mark in front of a picture's rows."""
        return int(self.config.boi_token_id)

    def prepare(
        self, item: MediaItem, options: Mapping[str, Any], present: frozenset[str]
    ) -> PreparedItem:
        """Preprocesses one picture."""
        settings, config = self._settings, self.config
        square = model_image(item.data).resize(
            (settings.side, settings.side), Image.Resampling(settings.resample)
        )
        pixels = normalised(np.asarray(square), settings.mean, settings.std)
        return replace(
            self.lay_out_rows("image", config.mm_tokens_per_image),
            encoder_inputs={"pixel_values": torch.from_numpy(pixels).permute(2, 0, 1)[None]},
            context={"processor": self._fingerprint},
        )

    def lay_out_rows(
        self, modality: str, num_rows: int, grid: tuple[int, int] | None = None
    ) -> PreparedItem:
        """A picture's rows between two marks.

        Raises:
            MediaError: If they are not as many as every picture has.
        """
        config = self.config
        if num_rows != config.mm_tokens_per_image:
            raise MediaError(
                f"an image has {config.mm_tokens_per_image} rows in this model, not {num_rows}"
            )
        rows = [config.image_token_id] * num_rows
        token_ids = np.array([config.boi_token_id, *rows, config.eoi_token_id], np.int32)
        is_row = np.ones(len(token_ids), bool)
        is_row[[0, -1]] = False
        return PreparedItem(token_ids, is_row, encoder_inputs={})
