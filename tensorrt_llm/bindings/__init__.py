# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""The compiled KV cache manager, and what else is compiled, re-exported."""

from __future__ import annotations

from tensorrt_llm.bindings._bindings import (
    CapacityExceededError,
    CopyKind,
    CopyPlan,
    DurationCounts,
    InternalStateError,
    InvalidArgumentError,
    InvalidMediaRunsError,
    KvCacheError,
    KVCacheManager,
    KvCacheRetentionConfig,
    KvCacheStats,
    MatchExplanation,
    MediaBatch,
    MediaRuns,
    ReuseScope,
    SequenceAllocation,
    TokenRangeRetentionConfig,
    UnknownSequenceError,
    WindowPoolStats,
    pack_strided,
)

__all__ = [
    "CapacityExceededError",
    "CopyKind",
    "CopyPlan",
    "DurationCounts",
    "InternalStateError",
    "InvalidArgumentError",
    "InvalidMediaRunsError",
    "KVCacheManager",
    "KvCacheError",
    "KvCacheRetentionConfig",
    "KvCacheStats",
    "MatchExplanation",
    "MediaBatch",
    "MediaRuns",
    "ReuseScope",
    "SequenceAllocation",
    "TokenRangeRetentionConfig",
    "UnknownSequenceError",
    "WindowPoolStats",
    "pack_strided",
]
