# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""The Python door: ``LLM`` and its configuration.

Names are loaded on first use, so that the engine can import the configuration without the door
that starts the engine.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tensorrt_llm.executor.request import LoRARequest
    from tensorrt_llm.executor.result import CompletionOutput
    from tensorrt_llm.executor.result import GenerationResult as RequestOutput
    from tensorrt_llm.executor.retention import (
        KvCacheRetentionConfig,
        TokenRangeRetentionConfig,
    )
    from tensorrt_llm.llmapi.llm import LLM
    from tensorrt_llm.llmapi.llm_args import (
        CudaGraphConfig,
        KvCacheConfig,
        LlmArgs,
        LoraConfig,
        MultimodalConfig,
        NGramDecodingConfig,
        SchedulerConfig,
    )
    from tensorrt_llm.llmapi.mm_encoder import MultimodalEncoder
    from tensorrt_llm.sampling_params import SamplingParams

_HOMES = {
    "CompletionOutput": ("tensorrt_llm.executor.result", "CompletionOutput"),
    "CudaGraphConfig": ("tensorrt_llm.llmapi.llm_args", "CudaGraphConfig"),
    "KvCacheConfig": ("tensorrt_llm.llmapi.llm_args", "KvCacheConfig"),
    "KvCacheRetentionConfig": ("tensorrt_llm.executor.retention", "KvCacheRetentionConfig"),
    "LLM": ("tensorrt_llm.llmapi.llm", "LLM"),
    "LlmArgs": ("tensorrt_llm.llmapi.llm_args", "LlmArgs"),
    "LoRARequest": ("tensorrt_llm.executor.request", "LoRARequest"),
    "LoraConfig": ("tensorrt_llm.llmapi.llm_args", "LoraConfig"),
    "MultimodalEncoder": ("tensorrt_llm.llmapi.mm_encoder", "MultimodalEncoder"),
    "MultimodalConfig": ("tensorrt_llm.llmapi.llm_args", "MultimodalConfig"),
    "NGramDecodingConfig": ("tensorrt_llm.llmapi.llm_args", "NGramDecodingConfig"),
    "RequestOutput": ("tensorrt_llm.executor.result", "GenerationResult"),
    "SamplingParams": ("tensorrt_llm.sampling_params", "SamplingParams"),
    "SchedulerConfig": ("tensorrt_llm.llmapi.llm_args", "SchedulerConfig"),
    "TokenRangeRetentionConfig": ("tensorrt_llm.executor.retention", "TokenRangeRetentionConfig"),
}

__all__ = [
    "LLM",
    "CompletionOutput",
    "CudaGraphConfig",
    "KvCacheConfig",
    "KvCacheRetentionConfig",
    "LlmArgs",
    "LoRARequest",
    "LoraConfig",
    "MultimodalConfig",
    "MultimodalEncoder",
    "NGramDecodingConfig",
    "RequestOutput",
    "SamplingParams",
    "SchedulerConfig",
    "TokenRangeRetentionConfig",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, attribute = _HOMES[name]
    return getattr(import_module(module), attribute)
