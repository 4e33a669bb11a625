# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Idefics3 and SmolVLM: pictures and text."""

from __future__ import annotations

from tensorrt_llm._torch.models.modeling_utils import MultimodalDecoderModel, register_model


@register_model("idefics3", "smolvlm")
class Idefics3Model(MultimodalDecoderModel):
    """Decoder with a picture encoder, which takes ``pixel_values`` ``[1, tiles, 3, side, side]``.

    Rows come tile by tile.
    """

    modalities = ("image",)
