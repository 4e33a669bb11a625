# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""The door's half: what takes a picture's place in the prompt, and what its encoder gets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from PIL import Image

from tensorrt_llm.errors import ConfigurationError
from tensorrt_llm.inputs.data import MediaItem
from tensorrt_llm.inputs.image_form import model_image
from tensorrt_llm.inputs.prepared_item import PreparedItem
from tensorrt_llm.inputs.processors.settings import normalised, read_image_settings
from tensorrt_llm.inputs.registry import InputProcessor, fingerprint, register_input_processor


@register_input_processor("llava")
class LlavaInputProcessor(InputProcessor):
    """The shorter side is scaled to the encoder's, and the middle square is cut out."""

    modalities = ("image",)

    def read_settings(self) -> None:
        """Reads the processor's settings; what changes rows goes into the fingerprint."""
        settings = read_image_settings(self.model_path, ("crop_size", "image_mean"))
        vision = self.config.vision_config
        self._side = int(vision.image_size)
        self._mean, self._std = settings["image_mean"], settings["image_std"]
        if settings.get("crop_size", {}).get("height", self._side) != self._side:
            raise ConfigurationError(f"{self.model_path}: the encoder takes {self._side} pixels")
        whole = (self._side // vision.patch_size) ** 2
        self._rows = whole + (self.config.vision_feature_select_strategy == "full")
        self._fingerprint = fingerprint(
            "llava.image.v1", {"side": self._side, "mean": self._mean, "std": self._std}
        )

    def placeholder_token_id(self, modality: str) -> int:
        """The configured image token."""
        return int(self.config.image_token_id)

    def prepare(
        self, item: MediaItem, options: Mapping[str, Any], present: frozenset[str]
    ) -> PreparedItem:
        """Preprocesses one picture."""
        square = _middle_square(model_image(item.data), self._side)
        pixels = normalised(np.asarray(square), self._mean, self._std).transpose(2, 0, 1)
        return PreparedItem.of_rows(
            self.placeholder_token_id("image"),
            self._rows,
            encoder_inputs={"pixel_values": torch.from_numpy(np.ascontiguousarray(pixels))[None]},
            context={"processor": self._fingerprint},
        )


def _middle_square(image: Image.Image, side: int) -> Image.Image:
    scale = side / min(image.size)
    width, height = (max(side, int(length * scale)) for length in image.size)
    scaled = image.resize((width, height), Image.Resampling.BICUBIC)
    left, top = (width - side) // 2, (height - side) // 2
    return scaled.crop((left, top, left + side, top + side))
