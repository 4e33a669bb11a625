# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Statistics of each iteration, in the JSON shape of TensorRT-LLM's ``/metrics``."""

from __future__ import annotations

import contextlib
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

import psutil
import torch

from tensorrt_llm import bindings
from tensorrt_llm._torch.pyexecutor.embedding_store import EmbeddingStoreStats

# A reader that never comes must not cost memory without bound.
HISTORY = 1000

MEMORY_SECONDS = 1.0


@dataclass(frozen=True)
class IterationCounts:
    """What one iteration did.

    Attributes:
        latency_ms: Wall time of the iteration in milliseconds.
        new_active: Requests admitted since the last iteration.
        active: Admitted requests, those that finished in it included.
        completed: Requests that finished in it.
        queued: Requests waiting.
        context_requests: Requests with a prompt chunk.
        context_tokens: Tokens in those chunks.
        generation_requests: Requests with one token.
        paused: Requests that were paused in it.
        with_draft: Requests that ran with a draft.
        drafted: Tokens of drafts.
        accepted: Of these, those that held.
        queue_ms: How long each newly admitted request had waited, in milliseconds.
    """

    latency_ms: float
    new_active: int
    active: int
    completed: int
    queued: int
    context_requests: int
    context_tokens: int
    generation_requests: int
    paused: int = 0
    queue_ms: tuple[float, ...] = ()
    with_draft: int = 0
    drafted: int = 0
    accepted: int = 0

    @property
    def acceptance_length(self) -> float:
        """Tokens that a request with a draft got on average; 0 if there was none."""
        return 1 + self.accepted / self.with_draft if self.with_draft else 0.0


@dataclass(frozen=True)
class _Record:
    """One iteration as it was noted; what users read is made when they read it."""

    iteration: int
    timestamp: float
    cpu_bytes: int
    gpu_bytes: int
    counts: IterationCounts
    kv: bindings.KvCacheStats
    embeddings: EmbeddingStoreStats
    encoder_runs: Mapping[str, int]


class IterationStats:
    """The latest iterations' statistics. ``record`` and ``drain`` may run in two threads.

    Args:
        max_batch_size: The configured bound.
        max_num_tokens: The configured bound.
        device: Where the model runs.
    """

    def __init__(self, max_batch_size: int, max_num_tokens: int, device: torch.device) -> None:
        self._limits = (max_batch_size, max_num_tokens)
        self._device = device
        self._process = psutil.Process()
        self._iteration = 0
        self._memory = (0, 0)
        self._memory_due = 0.0
        self._records: deque[_Record] = deque(maxlen=HISTORY)

    def record(
        self,
        counts: IterationCounts,
        kv: bindings.KvCacheStats,
        embeddings: EmbeddingStoreStats,
        encoder_runs: Mapping[str, int],
    ) -> None:
        """Adds one iteration. Memory in use is looked up every second, as that takes long."""
        self._iteration += 1
        now = time.monotonic()  # the wall clock may be set back
        if now >= self._memory_due:
            self._memory = (self._process.memory_info().rss, self._gpu_bytes())
            self._memory_due = now + MEMORY_SECONDS
        self._records.append(
            _Record(
                self._iteration,
                time.time(),
                *self._memory,
                counts,
                kv,
                embeddings,
                dict(encoder_runs),
            )
        )

    def drain(self) -> list[dict[str, Any]]:
        """All records since the last call, oldest first."""
        drained: list[dict[str, Any]] = []
        with contextlib.suppress(IndexError):  # another thread may read as well
            while True:
                drained.append(self._json(self._records.popleft()))
        return drained

    def _json(self, record: _Record) -> dict[str, Any]:
        counts = record.counts
        max_batch_size, max_num_tokens = self._limits
        time_of_it = datetime.fromtimestamp(record.timestamp, timezone.utc)
        return {
            "iter": record.iteration,
            "timestamp": time_of_it.strftime("%m-%d-%Y %H:%M:%S.%f"),
            "iterLatencyMS": counts.latency_ms,
            "cpuMemUsage": record.cpu_bytes,
            "gpuMemUsage": record.gpu_bytes,
            "pinnedMemUsage": 0,
            "numNewActiveRequests": counts.new_active,
            "newActiveRequestsQueueLatencyMS": sum(counts.queue_ms),
            "queueLatenciesMS": list(counts.queue_ms),
            "numActiveRequests": counts.active,
            "numCompletedRequests": counts.completed,
            "numQueuedRequests": counts.queued,
            "maxNumActiveRequests": min(max_batch_size, max_num_tokens),
            "maxBatchSizeStatic": max_batch_size,
            "maxBatchSizeRuntime": max_batch_size,
            "maxNumTokensStatic": max_num_tokens,
            "maxNumTokensRuntime": max_num_tokens,
            "inflightBatchingStats": {
                "numScheduledRequests": counts.context_requests + counts.generation_requests,
                "numContextRequests": counts.context_requests,
                "numCtxTokens": counts.context_tokens,
                "numGenRequests": counts.generation_requests,
                "numPausedRequests": counts.paused,
            },
            "specDecodingStats": {
                "numDraftTokens": counts.drafted,
                "numAcceptedTokens": counts.accepted,
                "numRequestsWithDraftTokens": counts.with_draft,
                "acceptanceLength": counts.acceptance_length,
            },
            **cache_json(record.kv, record.embeddings, record.encoder_runs),
        }

    def _gpu_bytes(self) -> int:
        return torch.cuda.memory_reserved(self._device) if self._device.type == "cuda" else 0


def cache_json(
    kv: bindings.KvCacheStats, embeddings: EmbeddingStoreStats, encoder_runs: Mapping[str, int]
) -> dict[str, Any]:
    """The state of the caches: blocks, encoder rows and encoder runs since start."""
    return {
        "kvCacheStats": _kv_json(kv),
        "multimodalStats": _multimodal_json(embeddings, encoder_runs),
    }


def _kv_json(stats: bindings.KvCacheStats) -> dict[str, Any]:
    return {
        "maxNumBlocks": stats.max_num_blocks,
        "freeNumBlocks": stats.free_num_blocks,
        "usedNumBlocks": stats.used_num_blocks,
        "cachedNumBlocks": stats.cached_num_blocks,
        "tokensPerBlock": stats.tokens_per_block,
        "allocTotalBlocks": stats.alloc_total_blocks,
        "allocNewBlocks": stats.alloc_new_blocks,
        "reusedBlocks": stats.reused_blocks,
        "missedBlocks": stats.missed_blocks,
        "partialReusedBlocks": stats.partial_reused_blocks,
        "evictedBlocks": stats.evicted_blocks,
        "evictedBlocksByCause": {
            "device_full": stats.evicted_on_device,
            "host_full": stats.evicted_on_host,
            "parent_evicted": stats.evicted_with_parent,
            "flushed": stats.flushed_blocks,
        },
        "evictedIdle": _durations_json(stats.evicted_idle),
        "reusedIdle": _durations_json(stats.reused_idle),
        "offloadedBlocks": stats.offloaded_blocks,
        "onboardedBlocks": stats.onboarded_blocks,
        "hostMaxNumBlocks": stats.host_max_num_blocks,
        "hostFreeNumBlocks": stats.host_free_num_blocks,
        "hostCachedNumBlocks": stats.host_cached_num_blocks,
        "droppedEvents": stats.dropped_events,
        "cacheHitRate": stats.cache_hit_rate,
    }


def _durations_json(durations: bindings.DurationCounts) -> dict[str, Any]:
    return {
        "boundsMS": durations.bounds_ms,
        "counts": durations.counts,
        "sumMS": durations.sum_ms,
    }


def _multimodal_json(stats: EmbeddingStoreStats, encoder_runs: Mapping[str, int]) -> dict[str, Any]:
    return {
        "encoderRuns": dict(encoder_runs),
        "embeddingStore": {
            "maxBytes": stats.max_bytes,
            "currentBytes": stats.current_bytes,
            "itemCount": stats.item_count,
            "pinnedCount": stats.pinned_count,
            "hits": stats.hits,
            "misses": stats.misses,
            "evictions": stats.evictions,
            "rejected": stats.rejected,
            "lentBytes": stats.lent_bytes,
            "hostMaxBytes": stats.host_max_bytes,
            "hostBytes": stats.host_bytes,
            "hostItemCount": stats.host_item_count,
            "offloaded": stats.offloaded,
            "onboarded": stats.onboarded,
        },
    }
