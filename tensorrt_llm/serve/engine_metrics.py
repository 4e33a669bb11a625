# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""What the engine's caches hold and did, read when Prometheus asks.

Counters here begin anew with an engine that was started again, as Prometheus expects of a restart.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import accumulate
from typing import Any

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from tensorrt_llm.inputs.media_memo import MemoStats
from tensorrt_llm.serve.tenant_store import StoreStats

_BLOCKS = {
    "kv_blocks_reused": ("reusedBlocks", "Prompt blocks found in the cache."),
    "kv_blocks_partly_reused": ("partialReusedBlocks", "Blocks of which a part was found."),
    "kv_blocks_missed": ("missedBlocks", "Prompt blocks that had to be computed."),
    "kv_blocks_offloaded": ("offloadedBlocks", "Blocks moved to host memory."),
    "kv_blocks_onboarded": ("onboardedBlocks", "Blocks moved back."),
    "kv_events_dropped": ("droppedEvents", "Events that were not read in time."),
}
_DRAFTS = {
    "draft_tokens": ("numDraftTokens", "Tokens guessed by speculative decoding."),
    "draft_tokens_accepted": ("numAcceptedTokens", "Of these, those that held."),
}
_IDLE = {
    "kv_evicted_idle_seconds": ("evictedIdle", "How long evicted blocks had lain unused."),
    "kv_reuse_gap_seconds": ("reusedIdle", "How long blocks had lain unused that were found."),
}
_STORED = {
    "stored_hits": ("hits", "Stored files or answers that were there."),
    "stored_misses": ("misses", "Those that were not."),
    "stored_evictions": ("evictions", "Those given up to make room."),
}
_STORE = {
    "embedding_hits": ("hits", "Encoder runs avoided: rows were there."),
    "embedding_misses": ("misses", "Items whose rows were not there."),
    "embedding_evictions": ("evictions", "Items given up to make room."),
    "embedding_rejected": ("rejected", "Items that had no room beside those in use."),
}
_REQUESTS = {
    "active": "numActiveRequests",
    "queued": "numQueuedRequests",
    "paused": "numPausedRequests",
    "waiting_for_items": "numRequestsWaitingForItems",
}


class EngineMetrics(Collector):
    """Turns a snapshot into metrics."""

    def __init__(self) -> None:
        self.snapshot: Mapping[str, Any] | None = None
        self.restarts = 0
        self.up = False
        self.memo: MemoStats | None = None
        self.stored: Mapping[str, StoreStats] = {}

    def collect(self) -> Iterator[Metric]:
        """All metrics, as of the last snapshot."""
        yield _gauge("engine_up", "Whether the engine can answer.", int(self.up))
        yield _counter("engine_restarts", "Engines started again.", self.restarts)
        if self.memo is not None:
            yield _counter("memo_hits", "What was remembered of media and prompts.", self.memo.hits)
            yield _counter("memo_misses", "What was not.", self.memo.misses)
            yield _counter("memo_evictions", "Entries given up.", self.memo.evictions)
            yield _gauge("memo_bytes", "Bytes of the memo.", self.memo.bytes)
        for name, (field, what) in _STORED.items():
            family = CounterMetricFamily(f"trtllm_{name}", what, labels=["store"])
            values = {store: getattr(stats, field) for store, stats in self.stored.items()}
            yield _labelled(family, values)
        yield _labelled(
            GaugeMetricFamily("trtllm_stored_bytes", "Bytes of what is stored.", labels=["store"]),
            {store: stats.nbytes for store, stats in self.stored.items()},
        )
        if self.snapshot is not None:
            yield from _of_snapshot(self.snapshot)


def _of_snapshot(snapshot: Mapping[str, Any]) -> Iterator[Metric]:
    kv, media = snapshot["kvCacheStats"], snapshot["multimodalStats"]
    store = media["embeddingStore"]
    yield _labelled(
        GaugeMetricFamily("trtllm_engine_requests", "Requests in the engine.", labels=["state"]),
        {state: snapshot[name] for state, name in _REQUESTS.items()},
    )
    blocks = GaugeMetricFamily("trtllm_kv_blocks", "Blocks of a pool.", labels=["tier", "state"])
    blocks.add_metric(["device", "held"], kv["usedNumBlocks"])
    blocks.add_metric(["device", "free"], kv["freeNumBlocks"])
    blocks.add_metric(["host", "held"], kv["hostMaxNumBlocks"] - kv["hostFreeNumBlocks"])
    blocks.add_metric(["host", "free"], kv["hostFreeNumBlocks"])
    yield blocks
    yield _labelled(
        GaugeMetricFamily(
            "trtllm_kv_blocks_findable", "Blocks that a prompt can match.", labels=["tier"]
        ),
        {
            "device": kv["cachedNumBlocks"] - kv["hostCachedNumBlocks"],
            "host": kv["hostCachedNumBlocks"],
        },
    )
    for name, (key, what) in _DRAFTS.items():
        yield _counter(name, what, snapshot["specDecodingStats"][key])
    for name, (key, what) in _BLOCKS.items():
        yield _counter(name, what, kv[key])
    yield _labelled(
        CounterMetricFamily(
            "trtllm_kv_blocks_evicted", "Findable blocks given up.", labels=["cause"]
        ),
        kv["evictedBlocksByCause"],
    )
    for name, (key, what) in _IDLE.items():
        yield _durations(name, what, kv[key])
    yield _labelled(
        GaugeMetricFamily("trtllm_embedding_bytes", "Bytes of encoder rows.", labels=["tier"]),
        {"device": store["currentBytes"], "lent": store["lentBytes"], "host": store["hostBytes"]},
    )
    for name, (key, what) in _STORE.items():
        yield _counter(name, what, store[key])
    yield _labelled(
        CounterMetricFamily("trtllm_encoder_runs", "Items encoded.", labels=["modality"]),
        media["encoderRuns"],
    )


def _labelled(family: Any, values: Mapping[str, float]) -> Metric:
    for label, value in values.items():
        family.add_metric([label], value)
    return family


def _durations(name: str, what: str, durations: Mapping[str, Any]) -> Metric:
    """A histogram in seconds of counts by size in milliseconds."""
    bounds = [str(bound / 1e3) for bound in durations["boundsMS"]] + ["+Inf"]
    buckets = list(zip(bounds, accumulate(durations["counts"]), strict=True))
    return HistogramMetricFamily(
        f"trtllm_{name}", what, buckets=buckets, sum_value=durations["sumMS"] / 1e3
    )


def _counter(name: str, what: str, value: float) -> Metric:
    return CounterMetricFamily(f"trtllm_{name}", what, value=value)


def _gauge(name: str, what: str, value: float) -> Metric:
    return GaugeMetricFamily(f"trtllm_{name}", what, value=value)
