# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Gemma 3: pictures and text, layers that see a window, and rows of a picture that see each other.

The KV of layers with a window is kept in full, like that of the others; the window is a mask.
"""

from __future__ import annotations

from tensorrt_llm._torch.models.modeling_utils import MultimodalDecoderModel, register_model


@register_model("gemma3")
class Gemma3Model(MultimodalDecoderModel):
    """Decoder with a picture encoder, which takes ``pixel_values`` ``[1, 3, side, side]``.

    Rows come line by line.
    """

    modalities = ("image",)
    bidirectional_modalities = frozenset({"image"})
