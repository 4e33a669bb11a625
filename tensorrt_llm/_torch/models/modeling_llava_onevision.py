# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""LLaVA-OneVision: pictures, video and text."""

from __future__ import annotations

from tensorrt_llm._torch.models.modeling_utils import MultimodalDecoderModel, register_model


@register_model("llava_onevision")
class LlavaOnevisionModel(MultimodalDecoderModel):
    """Decoder with a picture encoder.

    It takes ``pixel_values`` ``[1, 1 + tiles, 3, side, side]`` and ``image_sizes`` ``[1, 2]``,
    height and width in pixels. Rows of the whole picture come first, then line by line. Of a
    video it takes ``pixel_values_videos`` ``[1, frames, 3, side, side]``.
    """

    modalities = ("image", "video")
