# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Qwen2.5-Omni's thinker: pictures, sound and text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from tensorrt_llm._torch.models.modeling_qwen2_vl import Qwen2VLModel
from tensorrt_llm._torch.models.modeling_utils import register_model


@register_model("qwen2_5_omni_thinker")
class Qwen2_5OmniModel(Qwen2VLModel):
    """Decoder with a picture encoder and a sound encoder; positions are handed in.

    Of a picture it takes what Qwen2-VL takes; of a clip ``input_features`` ``[1, mels, frames]``
    and ``feature_attention_mask`` ``[1, frames]``, 1 where there is sound.
    """

    modalities = ("image", "audio")

    def _encode(
        self, modality: str, inputs: Mapping[str, torch.Tensor], **encoder_kwargs: Any
    ) -> torch.Tensor:
        if modality != "audio":
            return super()._encode(modality, inputs, **encoder_kwargs)
        parts: Any = self.hf_model.model
        return parts.get_audio_features(**inputs).last_hidden_state
