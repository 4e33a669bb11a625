# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Phi-4-multimodal, in transformers' layout and as it is published: pictures, sound and text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from transformers import PretrainedConfig, PreTrainedModel

from tensorrt_llm._torch.attention_backend import PAGED_ATTENTION
from tensorrt_llm._torch.models import phi4mm_checkpoint
from tensorrt_llm._torch.models.modeling_utils import MultimodalDecoderModel, register_model
from tensorrt_llm.logger import get_logger

logger = get_logger(__name__)


@register_model("phi4_multimodal")
class Phi4MultimodalModel(MultimodalDecoderModel):
    """Decoder with a picture encoder and a sound encoder.

    Of a picture it takes ``image_pixel_values`` ``[1, crops, 3, size, size]``, ``image_sizes``
    ``[1, 2]`` and ``image_attention_mask`` ``[1, crops, patches, patches]``; of a clip
    ``audio_input_features`` ``[1, frames, mels]``, ``audio_embed_sizes`` ``[1]`` and the argument
    ``audio_projection_mode``, ``"speech"`` or ``"vision"``.

    The checkpoint's own adapters are applied by the mode that a request's modalities select.
    """

    modalities = ("image", "audio")

    def __init__(self, hf_model: PreTrainedModel, *, max_seq_len: int) -> None:
        super().__init__(hf_model, max_seq_len=max_seq_len)
        folder = hf_model.name_or_path or ""
        published = getattr(hf_model.config, "published_adapters", None)
        if published is not None:
            adapters = phi4mm_checkpoint.published_adapters(folder, published)
        else:
            adapters = phi4mm_checkpoint.native_adapters(folder) if folder else {}
        for name, adapter in adapters.items():
            fitted = self.lora.fitted(adapter, f"{folder} ({name} adapter)")
            self.lora.attach(fitted)
            self.mode_adapters[name] = fitted
        absent = [name for name in phi4mm_checkpoint.ADAPTER_NAMES if name not in adapters]
        if absent:
            logger.warning(
                "%s has no adapter for %s: media is answered by the decoder alone",
                folder or "the model",
                " and ".join(absent),
            )

    @classmethod
    def read_weights(
        cls, model_path: str, config: PretrainedConfig
    ) -> dict[str, torch.Tensor] | None:
        """Of a folder in the published layout."""
        if getattr(config, "published_adapters", None) is None:
            return None
        return phi4mm_checkpoint.published_weights(model_path)

    @property
    def decoder(self) -> Any:
        """The decoder layers; the encoders live in the same module."""
        return self.hf_model.model

    def set_attention(self) -> None:
        """Paged attention for the decoder; the encoders keep torch's own."""
        self.hf_model.set_attn_implementation(
            {"": PAGED_ATTENTION, "vision_config": "sdpa", "audio_config": "sdpa"}
        )

    def _encode(
        self, modality: str, inputs: Mapping[str, torch.Tensor], **encoder_kwargs: Any
    ) -> torch.Tensor:
        config = self.hf_model.config
        encoders: Any = self.decoder.embed_tokens_extend
        if modality == "image":
            encoder, token = encoders.image_embed, config.vision_config.image_token_id
            crops_high = int(inputs["image_sizes"][0, 0]) // config.vision_config.crop_size
            num_rows = _image_rows(inputs["image_attention_mask"], crops_high)
        else:
            encoder, token = encoders.audio_embed, config.audio_config.audio_token_id
            num_rows = int(inputs["audio_embed_sizes"].sum())
        # The encoders write their rows over placeholder tokens: a prompt of nothing but
        # placeholders comes back as the rows themselves.
        tokens = torch.full((1, num_rows), token, device=self.device)
        blank = torch.zeros(1, num_rows, self.hidden_size, dtype=self.dtype, device=self.device)
        return encoder(tokens, blank, **inputs, **encoder_kwargs)[0]


def _image_rows(mask: torch.Tensor, crops_high: int) -> int:
    """Rows the encoder makes of one picture: two patches a side to a row, and a row end a line."""
    side = (mask.shape[-1] + 1) // 2
    sub_crops = mask[0, 1:, 0::2, 0::2]
    first_column = sub_crops.reshape(crops_high, -1, side, side)[:, 0, :, 0]
    overview = side * (side + 1)
    return overview + 1 + int(sub_crops.sum()) + int(first_column.sum())
