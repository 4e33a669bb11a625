# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Gemma 3: pictures and text, layers that see a window, and rows of a picture that see each other.

The KV of layers with a window is kept in full, like that of the others; the window is a mask.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from tensorrt_llm._torch.models.modeling_utils import MultimodalDecoderModel, register_model


@register_model("gemma3")
class Gemma3Model(MultimodalDecoderModel):
    """Decoder with a picture encoder."""

    modalities = ("image",)
    bidirectional_modalities = frozenset({"image"})

    @torch.no_grad()
    def encode(
        self, modality: str, encoder_inputs: Mapping[str, torch.Tensor], **encoder_kwargs: Any
    ) -> torch.Tensor:
        """Encodes one picture.

        Args:
            modality: ``"image"``.
            encoder_inputs: ``pixel_values`` ``[1, 3, side, side]``.
            encoder_kwargs: None are taken.

        Returns:
            Rows ``[num_rows, hidden_size]``, line by line.

        Raises:
            ValueError: If the model has no such modality.
        """
        self.check_modality(modality)
        parts: Any = self.hf_model.model
        (rows,) = parts.get_image_features(
            encoder_inputs["pixel_values"].to(self.device)
        ).pooler_output
        return rows
