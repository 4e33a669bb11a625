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
    """Decoder with a sound encoder, which takes ``input_features`` ``[windows, mels, frames]``.

    Rows come window by window.
    """

    modalities = ("audio",)

    def _encode(
        self, modality: str, inputs: Mapping[str, torch.Tensor], **encoder_kwargs: Any
    ) -> torch.Tensor:
        parts: Any = self.hf_model.model
        return parts.get_audio_features(**inputs).pooler_output
