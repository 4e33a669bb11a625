# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Voxtral: sound and text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from tensorrt_llm._torch.models.modeling_utils import MultimodalDecoderModel, register_model


@register_model("voxtral")
class VoxtralModel(MultimodalDecoderModel):
    """Decoder with a sound encoder."""

    modalities = ("audio",)

    @torch.no_grad()
    def encode(
        self, modality: str, encoder_inputs: Mapping[str, torch.Tensor], **encoder_kwargs: Any
    ) -> torch.Tensor:
        """Encodes one clip.

        Args:
            modality: ``"audio"``.
            encoder_inputs: ``input_features`` ``[windows, mels, frames]``.
            encoder_kwargs: None are taken.

        Returns:
            Rows ``[num_rows, hidden_size]``, window by window.

        Raises:
            ValueError: If the model has no such modality.
        """
        self.check_modality(modality)
        parts: Any = self.hf_model.model
        features = encoder_inputs["input_features"].to(self.device)
        return parts.get_audio_features(features).pooler_output
