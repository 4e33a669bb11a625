# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Qwen2-VL and Qwen2.5-VL: pictures and text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from tensorrt_llm._torch.models.modeling_utils import MultimodalDecoderModel, register_model


@register_model("qwen2_vl", "qwen2_5_vl")
class Qwen2VLModel(MultimodalDecoderModel):
    """Decoder with a picture encoder.

    Positions are always handed in. Left to itself the stock model would compute them and keep
    what it found on the module, where requests would meet.
    """

    modalities: tuple[str, ...] = ("image",)
    position_axes = 3

    @torch.no_grad()
    def encode(
        self, modality: str, encoder_inputs: Mapping[str, torch.Tensor], **encoder_kwargs: Any
    ) -> torch.Tensor:
        """Encodes one picture.

        Args:
            modality: ``"image"``.
            encoder_inputs: ``pixel_values`` ``[patches, values of a patch]`` and
                ``image_grid_thw`` ``[1, 3]``, patches in time, height and width.
            encoder_kwargs: None are taken.

        Returns:
            Rows ``[num_rows, hidden_size]``.

        Raises:
            ValueError: If the model has no such modality.
        """
        self.check_modality(modality)
        inputs = {name: tensor.to(self.device) for name, tensor in encoder_inputs.items()}
        parts: Any = self.hf_model.model
        (rows,) = parts.get_image_features(**inputs).pooler_output
        return rows
