# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""What the server counts about requests and media, for Prometheus. docs/metrics.md explains each.

Labels take few values, all of our own making, so that no caller can make their number grow.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Histogram

from tensorrt_llm.errors import TrtllmError
from tensorrt_llm.executor.request import GenerationRequest
from tensorrt_llm.executor.result import RequestEnd
from tensorrt_llm.executor.unshared import unshared_tokens
from tensorrt_llm.inputs.decode_pool import DecodePool
from tensorrt_llm.inputs.media_access import MediaAccess
from tensorrt_llm.inputs.media_fetch import MediaFetcher
from tensorrt_llm.inputs.media_limits import MediaLimits
from tensorrt_llm.serve.request_log import describe_request, log_request

RECENT_REQUESTS = 50
"""How many requests are remembered, in numbers only."""

_SHORT = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
_LONG = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300)


class ServerMetrics:
    """Counts what ends and what is loaded. Safe to use from several threads.

    Attributes:
        registry: All metrics of one server.
        recent: The latest requests in numbers, as in the log, with the time of their end.

    Args:
        reuses: Whether blocks are reused at all.
        tokens_per_block: Tokens of a block.
    """

    def __init__(self, reuses: bool, tokens_per_block: int) -> None:
        self.registry = CollectorRegistry()
        self.recent: deque[dict[str, Any]] = deque(maxlen=RECENT_REQUESTS)
        self._reuses = reuses
        self._tokens_per_block = tokens_per_block

        def counter(name: str, what: str, *labels: str) -> Counter:
            return Counter(f"trtllm_{name}", what, labels, registry=self.registry)

        def histogram(name: str, what: str, buckets: tuple[float, ...], *labels: str) -> Histogram:
            return Histogram(
                f"trtllm_{name}", what, labels, buckets=buckets, registry=self.registry
            )

        self._prompt = counter("prompt_tokens", "Prompt tokens that were asked for.", "modality")
        self._cached = counter("cached_tokens", "Of these, found in the KV cache.", "modality")
        self._unshared = counter("unshared_tokens", "Of these, never shared.", "reason")
        self._generated = counter("generated_tokens", "Tokens of answers.")
        self._ended = counter("requests", "Requests that left the engine.", "outcome")
        self._errors = counter("request_errors", "Of these, failed.", "kind")
        self._items = counter("media_items", "Media items of these requests.", "modality")
        self._items_cached = counter(
            "media_items_cached", "Of these, never encoded: the KV cache had all rows.", "modality"
        )
        self._undecoded = counter(
            "media_decodes_avoided", "Of these, never decoded: the content was known.", "modality"
        )
        self._responses = counter("http_responses", "HTTP answers.", "route", "status")
        self._first = histogram(
            "time_to_first_token_seconds", "From the queue to the first token.", _LONG
        )
        self._whole = histogram("request_seconds", "From the queue to the last token.", _LONG)
        self._queue = histogram("queue_seconds", "Waiting to be admitted.", _LONG)
        self._step = histogram("step_seconds", "Iterations of the engine's loop.", _SHORT)
        self._step_tokens = counter("step_tokens", "Tokens run in steps.", "phase")
        self._pauses = counter("request_pauses", "Requests paused for want of blocks.")
        self._fetch = histogram("media_fetch_seconds", "Fetching remote media.", _LONG)
        self._decode = histogram("media_decode_seconds", "Decoding media.", _SHORT, "modality")
        self._load_errors = counter("media_errors", "Media not to be had.", "stage", "kind")

    def iterated(self, record: Mapping[str, Any]) -> None:
        """Counts an iteration of the loop."""
        self._step.observe(record["iterLatencyMS"] / 1e3)
        batch = record["inflightBatchingStats"]
        self._step_tokens.labels("context").inc(batch["numCtxTokens"])
        self._step_tokens.labels("generation").inc(batch["numGenRequests"])
        self._pauses.inc(batch["numPausedRequests"])
        for waited in record["queueLatenciesMS"]:
            self._queue.observe(waited / 1e3)

    def request_ended(self, end: RequestEnd) -> None:
        """Counts a request that left the engine."""
        self._ended.labels("error" if end.error is not None else end.finish_reason).inc()
        if end.error is not None:
            self._errors.labels(_kind(end.error)).inc()
        request = describe_request(end)
        self.recent.append({"at": time.time(), **request})
        log_request(request)
        times, prompt = end.times, end.request.prompt
        if times.time_to_first_token is not None:
            self._first.observe(times.time_to_first_token)
        if times.finished is not None:
            self._whole.observe(times.finished - times.arrival)
        self._generated.inc(end.num_generated)
        for modality, count in request["prompt_tokens"].items():
            self._prompt.labels(modality).inc(count)
        for modality, count in request["cached_tokens"].items():
            self._cached.labels(modality).inc(count)
        self._count_unshared(end.request)
        for item in prompt.items:
            self._items.labels(item.modality).inc()
            if not item.was_decoded:
                self._undecoded.labels(item.modality).inc()
            last = item.runs[-1]
            if last.position + last.length <= end.cached_tokens:
                self._items_cached.labels(item.modality).inc()

    def tokens(self) -> dict[str, dict[str, float]]:
        """Prompt tokens so far by modality: ``asked`` and ``cached``."""
        counters = {"asked": self._prompt, "cached": self._cached}
        return {
            name: {
                sample.labels["modality"]: sample.value
                for family in counter.collect()
                for sample in family.samples
                if sample.name.endswith("_total")
            }
            for name, counter in counters.items()
        }

    def responded(self, route: str, status: int) -> None:
        """Counts an HTTP answer.

        Args:
            route: As the application declares it.
            status: Its status.
        """
        self._responses.labels(route, str(status)).inc()

    def fetcher(self, access: MediaAccess) -> MediaFetcher:
        """Fetches remote media, timed."""
        return _TimedFetcher(access, self)

    def decoder(self) -> TimedDecoder:
        """Decodes in processes of its own, timed."""
        return TimedDecoder(self)

    @contextmanager
    def timing(self, stage: str, modality: str = "") -> Iterator[None]:
        """Times fetching or decoding, and counts what goes wrong."""
        began = time.perf_counter()
        try:
            yield
        except Exception as error:
            self._load_errors.labels(stage, _kind(error)).inc()
            raise
        finally:
            seconds = time.perf_counter() - began
            (self._decode.labels(modality) if modality else self._fetch).observe(seconds)

    def _count_unshared(self, request: GenerationRequest) -> None:
        tokens = unshared_tokens(
            request, reuses=self._reuses, tokens_per_block=self._tokens_per_block
        )
        for reason, count in tokens.items():
            self._unshared.labels(reason).inc(count)


class TimedDecoder:
    """A decode pool that tells how long it takes."""

    def __init__(self, metrics: ServerMetrics) -> None:
        self._metrics = metrics
        self._pool = DecodePool()

    def __call__(
        self, modality: str, data: bytes, options: Mapping[str, Any], limits: MediaLimits
    ) -> Any:
        """Decodes one item."""
        with self._metrics.timing("decode", modality):
            return self._pool(modality, data, options, limits)


class _TimedFetcher(MediaFetcher):
    def __init__(self, access: MediaAccess, metrics: ServerMetrics) -> None:
        super().__init__(access)
        self._metrics = metrics

    def fetch(self, url: str) -> bytes:
        with self._metrics.timing("fetch"):
            return super().fetch(url)


def _kind(error: Exception) -> str:
    """The error's class if it is one of ours: there are few of them."""
    return type(error).__name__ if isinstance(error, TrtllmError) else "other"
