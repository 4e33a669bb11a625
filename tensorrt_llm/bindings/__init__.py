# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""The compiled KV cache manager, re-exported."""

from __future__ import annotations

from tensorrt_llm.bindings._bindings import (
    CapacityExceededError,
    InternalStateError,
    InvalidArgumentError,
    InvalidMediaRunsError,
    KvCacheError,
    KVCacheManager,
    KvCacheStats,
    MediaBatch,
    MediaRuns,
    ReuseScope,
    SequenceAllocation,
    UnknownSequenceError,
)

__all__ = [
    "CapacityExceededError",
    "InternalStateError",
    "InvalidArgumentError",
    "InvalidMediaRunsError",
    "KVCacheManager",
    "KvCacheError",
    "KvCacheStats",
    "MediaBatch",
    "MediaRuns",
    "ReuseScope",
    "SequenceAllocation",
    "UnknownSequenceError",
]
