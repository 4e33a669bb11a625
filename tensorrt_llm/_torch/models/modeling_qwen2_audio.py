# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Qwen2-Audio: sound and text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from tensorrt_llm._torch.models.modeling_utils import MultimodalDecoderModel, register_model


@register_model("qwen2_audio")
class Qwen2AudioModel(MultimodalDecoderModel):
    """Decoder with a sound encoder.

    It takes ``input_features`` ``[1, mels, frames]``, padded to the encoder's window, and
    ``feature_attention_mask`` ``[1, frames]``, 1 where there is sound.
    """

    modalities = ("audio",)

    def _encode(
        self, modality: str, inputs: Mapping[str, torch.Tensor], **encoder_kwargs: Any
    ) -> torch.Tensor:
        parts: Any = self.hf_model.model
        frames = inputs["feature_attention_mask"].sum(-1)
        heard, num_rows = parts.audio_tower._get_feat_extract_output_lengths(frames)
        # The encoder works on the whole window; no frame may look at the silence behind the clip.
        window = parts.audio_tower.config.max_source_positions
        visible = torch.arange(window, device=self.device) < heard
        encoded = parts.audio_tower(
            inputs["input_features"], attention_mask=visible.expand(1, 1, window, window)
        )
        rows = encoded.last_hidden_state[0, : int(num_rows)]
        return parts.multi_modal_projector(rows)
