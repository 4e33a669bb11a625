# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""A model family from outside the package: LLaVA 1.5 (pictures and text).

    trtllm-serve CHECKPOINT --custom_module_dirs examples/llava_family

All that an engine has to know of it beside transformers' own class: what a picture is to its
encoder, and how many rows it makes. Importing this package registers both halves.
"""

from .model import LlavaModel
from .processor import LlavaInputProcessor

__all__ = ["LlavaInputProcessor", "LlavaModel"]
