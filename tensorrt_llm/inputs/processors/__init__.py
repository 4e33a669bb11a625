# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Input processors, one file a family. Importing this package registers all of them."""

from tensorrt_llm.inputs.processors.gemma3 import Gemma3InputProcessor
from tensorrt_llm.inputs.processors.idefics3 import Idefics3InputProcessor
from tensorrt_llm.inputs.processors.llava_onevision import LlavaOnevisionInputProcessor
from tensorrt_llm.inputs.processors.phi4mm import Phi4MultimodalInputProcessor
from tensorrt_llm.inputs.processors.qwen2_5_omni import Qwen2_5OmniInputProcessor
from tensorrt_llm.inputs.processors.qwen2_audio import Qwen2AudioInputProcessor
from tensorrt_llm.inputs.processors.qwen2_vl import Qwen2VLInputProcessor
from tensorrt_llm.inputs.processors.qwen3_vl import Qwen3VLInputProcessor
from tensorrt_llm.inputs.processors.text import TextInputProcessor
from tensorrt_llm.inputs.processors.voxtral import VoxtralInputProcessor

__all__ = [
    "Gemma3InputProcessor",
    "Idefics3InputProcessor",
    "LlavaOnevisionInputProcessor",
    "Phi4MultimodalInputProcessor",
    "Qwen2AudioInputProcessor",
    "Qwen2VLInputProcessor",
    "Qwen2_5OmniInputProcessor",
    "Qwen3VLInputProcessor",
    "TextInputProcessor",
    "VoxtralInputProcessor",
]
