# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Model families. Importing this package registers all of them."""

from tensorrt_llm._torch.models import (
    modeling_gemma3,
    modeling_idefics3,
    modeling_llava_onevision,
    modeling_phi4mm,
    modeling_qwen2_5_omni,
    modeling_qwen2_audio,
    modeling_qwen2_vl,
    modeling_qwen3_vl,
    modeling_voxtral,
)
from tensorrt_llm._torch.models.modeling_utils import (
    DecoderModel,
    MultimodalDecoderModel,
    load_model,
    register_model,
)

__all__ = [
    "DecoderModel",
    "MultimodalDecoderModel",
    "load_model",
    "modeling_gemma3",
    "modeling_idefics3",
    "modeling_llava_onevision",
    "modeling_phi4mm",
    "modeling_qwen2_5_omni",
    "modeling_qwen2_audio",
    "modeling_qwen2_vl",
    "modeling_qwen3_vl",
    "modeling_voxtral",
    "register_model",
]
