# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Qwen3-VL: pictures, video and text, and features that go into the decoder's first layers.

Beside what stands in a token's place, the encoder gives features of some of its own layers, which
are added behind the first layers of the decoder (deepstack). They are part of an item's rows: they
are stored with it, and a chunk takes its slice of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from tensorrt_llm._torch.models.modeling_qwen2_vl import Qwen2VLModel
from tensorrt_llm._torch.models.modeling_utils import register_model


@register_model("qwen3_vl")
class Qwen3VLModel(Qwen2VLModel):
    """Decoder with a picture encoder; inputs and positions are those of Qwen2-VL."""

    @property
    def row_width(self) -> int:
        """An embedding, and the features of each of the encoder's layers that give any."""
        layers = self.hf_model.config.vision_config.deepstack_visual_indexes
        return self.hidden_size * (1 + len(layers))

    def _encode(
        self, modality: str, inputs: Mapping[str, torch.Tensor], **encoder_kwargs: Any
    ) -> torch.Tensor:
        parts: Any = self.hf_model.model
        encode = parts.get_video_features if modality == "video" else parts.get_image_features
        encoded = encode(**inputs)
        features = [one for (one,) in encoded.deepstack_features]
        return torch.cat([*encoded.pooler_output, *features], dim=-1)

    def layer_inputs(self, is_media: torch.Tensor, extra: torch.Tensor) -> Mapping[str, Any]:
        """See the base class."""
        return {
            "visual_pos_masks": is_media[None],
            "deepstack_visual_embeds": list(extra.split(self.hidden_size, dim=-1)),
        }
