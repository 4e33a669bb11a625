# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Attention over a paged pool: the interface, then one file a backend."""

from tensorrt_llm._torch.attention_backend.batch import SequenceBatch, Tiles
from tensorrt_llm._torch.attention_backend.interface import (
    PAGED_ATTENTION,
    AttentionBackend,
    AttentionMetadata,
    PagedKVPool,
    SequenceAttention,
)
from tensorrt_llm._torch.attention_backend.sdpa import SdpaAttention
from tensorrt_llm._torch.attention_backend.select import choose_backend

__all__ = [
    "PAGED_ATTENTION",
    "AttentionBackend",
    "AttentionMetadata",
    "PagedKVPool",
    "SdpaAttention",
    "SequenceAttention",
    "SequenceBatch",
    "Tiles",
    "choose_backend",
]
