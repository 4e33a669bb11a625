# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Qwen2-VL and Qwen2.5-VL: pictures, video and text."""

from __future__ import annotations

from tensorrt_llm._torch.models.modeling_utils import MultimodalDecoderModel, register_model


@register_model("qwen2_vl", "qwen2_5_vl")
class Qwen2VLModel(MultimodalDecoderModel):
    """Decoder with a picture encoder.

    It takes ``pixel_values`` ``[patches, values of a patch]`` and ``image_grid_thw`` ``[1, 3]``,
    patches in time, height and width; of a video the same as ``pixel_values_videos`` and
    ``video_grid_thw``.

    Positions are always handed in. Left to itself the stock model would compute them and keep
    what it found on the module, where requests would meet.
    """

    modalities: tuple[str, ...] = ("image", "video")
    position_axes = 3
