# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Qwen2.5-Omni's thinker: pictures, sound, video and text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from tensorrt_llm._torch.models.modeling_qwen2_vl import Qwen2VLModel
from tensorrt_llm._torch.models.modeling_utils import register_model

_OF_SOUND = ("input_features", "feature_attention_mask")


@register_model("qwen2_5_omni_thinker")
class Qwen2_5OmniModel(Qwen2VLModel):
    """Decoder with a picture encoder and a sound encoder; positions are handed in.

    Of a picture and of a video it takes what Qwen2-VL takes; of a clip ``input_features``
    ``[1, mels, frames]`` and ``feature_attention_mask`` ``[1, frames]``, 1 where there is sound; of
    a video with its sound all of these, and ``is_sound``, bool ``[num_rows]``, which rows are of
    the sound.
    """

    modalities = ("image", "audio", "video")

    def _encode(
        self, modality: str, inputs: Mapping[str, torch.Tensor], **encoder_kwargs: Any
    ) -> torch.Tensor:
        if modality == "audio":
            return self._hear(inputs)
        seen = {name: value for name, value in inputs.items() if name not in _OF_SOUND}
        is_sound = seen.pop("is_sound", None)
        rows = super()._encode(modality, seen, **encoder_kwargs)
        if is_sound is None:
            return rows
        both = rows.new_empty(len(is_sound), rows.shape[1])
        both[~is_sound] = rows
        both[is_sound] = self._hear({name: inputs[name] for name in _OF_SOUND}).to(rows.dtype)
        return both

    def _hear(self, inputs: Mapping[str, torch.Tensor]) -> torch.Tensor:
        parts: Any = self.hf_model.model
        return parts.get_audio_features(**inputs).last_hidden_state
