# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""LLaVA-OneVision: pictures and text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from tensorrt_llm._torch.models.modeling_utils import MultimodalDecoderModel, register_model


@register_model("llava_onevision")
class LlavaOnevisionModel(MultimodalDecoderModel):
    """Decoder with a picture encoder."""

    modalities = ("image",)

    @torch.no_grad()
    def encode(
        self, modality: str, encoder_inputs: Mapping[str, torch.Tensor], **encoder_kwargs: Any
    ) -> torch.Tensor:
        """Encodes one picture.

        Args:
            modality: ``"image"``.
            encoder_inputs: ``pixel_values`` ``[1, 1 + tiles, 3, side, side]`` and ``image_sizes``
                ``[1, 2]``, height and width in pixels.
            encoder_kwargs: None are taken.

        Returns:
            Rows ``[num_rows, hidden_size]``: those of the whole picture, then line by line.

        Raises:
            ValueError: If the model has no such modality.
        """
        self.check_modality(modality)
        inputs = {name: tensor.to(self.device) for name, tensor in encoder_inputs.items()}
        parts: Any = self.hf_model.model
        (rows,) = parts.get_image_features(**inputs).pooler_output
        return rows
