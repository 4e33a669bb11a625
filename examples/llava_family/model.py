# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""The half of the engine's process: how one picture is encoded."""

from __future__ import annotations

from tensorrt_llm._torch.models import MultimodalDecoderModel, register_model


@register_model("llava")
class LlavaModel(MultimodalDecoderModel):
    """Decoder with a picture encoder, which takes ``pixel_values`` ``[1, 3, side, side]``.

    transformers' ``get_image_features`` does the rest, as for most models.
    """

    modalities = ("image",)
