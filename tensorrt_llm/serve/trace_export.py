# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""OpenTelemetry spans of requests, sent to a collector (OTLP over HTTP) by a thread of its own.

```
POST /v1/chat/completions      the caller's traceparent is its parent
├── load                       reading the media, making the prompt
└── engine                     tokens asked for and cached by modality
    ├── queue
    ├── encode                 absent where every row was at hand
    ├── prefill
    └── decode
```

The packages of the extra ``[otel]`` are imported when tracing is asked for, not before.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from tensorrt_llm.executor.result import GenerationResult
from tensorrt_llm.logger import get_logger
from tensorrt_llm.serve.prompt_rows import rows_by_modality
from tensorrt_llm.serve.trace_endpoint import check_tracing, traces_address
from tensorrt_llm.serve.tracing import RequestTrace
from tensorrt_llm.version import __version__

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.trace import Span, SpanKind
    from opentelemetry.trace import Tracer as OtelTracer

_SERVER_FAULT = 500

_logger = get_logger(__name__)


class SpanExport:
    """Makes spans of notes and sends them. Safe to use from several threads.

    Args:
        endpoint: Address of the collector; without a path, ``/v1/traces`` is meant.
        service: Name of the model that is served.

    Raises:
        ConfigurationError: As `check_tracing`.
    """

    def __init__(self, endpoint: str, service: str) -> None:
        check_tracing(endpoint)
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        from tensorrt_llm.serve.trace_delivery import Delivery

        names = {"service.name": "trtllm-serve", "gen_ai.request.model": service}
        # One of our own: what else in the process is traced is not ours to decide.
        self._provider = TracerProvider(resource=Resource.create(names), shutdown_on_exit=False)
        self._delivery = Delivery(traces_address(endpoint))
        self._provider.add_span_processor(self._delivery.processor)
        self._tracer = self._provider.get_tracer("tensorrt_llm", __version__)
        self._propagator = TraceContextTextMapPropagator()

    def request_ended(self, trace: RequestTrace) -> None:
        """Hands a request's spans to the thread that sends them."""
        try:
            with self._delivery.quietly():
                self._export(trace)
        except Exception:  # an answer that was given does not fail for the sake of its trace
            _logger.exception("a request could not be traced")

    def flush(self) -> None:
        """Waits until what was handed over is sent, or cannot be."""
        self._provider.force_flush()

    def close(self) -> None:
        """Sends what is left, if the collector takes it within seconds, and ends."""
        self._delivery.close()

    def _export(self, trace: RequestTrace) -> None:
        from opentelemetry.trace import SpanKind

        writer = _Writer(self._tracer)
        parent = self._propagator.extract(trace.headers)
        span, inside = writer.begin(
            f"{trace.method} {trace.route}", trace.began, parent, SpanKind.SERVER
        )
        span.set_attribute("http.request.method", trace.method)
        span.set_attribute("http.route", trace.route)
        span.set_attribute("http.response.status_code", trace.status)
        if trace.status >= _SERVER_FAULT or trace.status == 0:
            writer.mark_failed(span, "no answer" if trace.status == 0 else "a fault of the server")
        for name, began, ended in trace.stages:
            writer.stage(name, began, ended, inside)
        for result in trace.results:
            _write_result(writer, result, trace.ended, inside)
        writer.end(span, trace.ended)


def _write_result(
    writer: _Writer, result: GenerationResult, answered: float, parent: Context
) -> None:
    times, prompt = result.times, result.request.prompt
    finished = times.finished or answered
    span, inside = writer.begin("engine", times.arrival, parent)
    span.set_attribute("trtllm.request_id", result.request_id)
    span.set_attribute("gen_ai.usage.input_tokens", len(prompt))
    span.set_attribute("gen_ai.usage.output_tokens", result.num_generated)
    for what, end in (("prompt", len(prompt)), ("cached", result.cached_tokens)):
        for modality, count in rows_by_modality(prompt, end).items():
            span.set_attribute(f"trtllm.{what}_tokens.{modality}", count)
    if result.error is not None:
        writer.mark_failed(span, type(result.error).__name__)
    stages, first = times.stages, times.first_token
    if stages is not None and first is not None:
        writer.stage("queue", times.arrival, stages.admitted, inside)
        began = stages.admitted
        if stages.encoded is not None:
            writer.stage("encode", *stages.encoded, inside)
            began = stages.encoded[1]
        writer.stage("prefill", began, first, inside)
        writer.stage("decode", first, finished, inside)
    writer.end(span, finished)


class _Writer:
    """Writes the spans of one trace. All its moments are moved by the same distance."""

    def __init__(self, tracer: OtelTracer) -> None:
        self._tracer = tracer
        self._shift = time.time_ns() - time.monotonic_ns()

    def begin(
        self, name: str, began: float, parent: Context, kind: SpanKind | None = None
    ) -> tuple[Span, Context]:
        """A span, and the context of what goes inside it."""
        from opentelemetry.trace import SpanKind, set_span_in_context

        span = self._tracer.start_span(
            name, parent, kind or SpanKind.INTERNAL, start_time=self._moment(began)
        )
        return span, set_span_in_context(span, parent)

    def end(self, span: Span, ended: float) -> None:
        span.end(self._moment(ended))

    def stage(self, name: str, began: float, ended: float, parent: Context) -> None:
        self.end(self.begin(name, began, parent)[0], ended)

    def mark_failed(self, span: Span, why: str) -> None:
        from opentelemetry.trace import Status, StatusCode

        span.set_status(Status(StatusCode.ERROR, why))

    def _moment(self, monotonic: float) -> int:
        """Nanoseconds since 1970, for seconds of ``time.monotonic``."""
        return self._shift + int(1e9 * monotonic)
