# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Sends spans to a collector that may be down, slow or refusing, at no cost to who is served.

A bounded queue and a thread, both of OpenTelemetry's SDK. What does not arrive is dropped; that is
told once when it begins and once when it is over, not for every batch. An end waits a moment only.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult

from tensorrt_llm.logger import get_logger

MOST_WAITING = 2048
"""Spans kept for a collector that does not take them; older ones go first."""

SEND_SECONDS = 10.0
"""Time that a collector gets for one batch, with all that is tried again."""

CLOSE_SECONDS = 3.0
"""Longest wait at the end for spans that have not been sent."""

_NOISY = (
    "opentelemetry.exporter.otlp.proto.http.trace_exporter",
    "opentelemetry.sdk._shared_internal",
)

_logger = get_logger(__name__)


class Delivery:
    """Takes spans and sends them.

    Attributes:
        processor: What takes the spans.

    Args:
        address: Of the collector, with its path.
        send_seconds: As `SEND_SECONDS`.
    """

    def __init__(self, address: str, send_seconds: float = SEND_SECONDS) -> None:
        self._hush = _Hush()
        self._exporter = _ToldOnce(address, send_seconds, self._hush)
        self.processor = BatchSpanProcessor(self._exporter, max_queue_size=MOST_WAITING)

    @contextmanager
    def quietly(self) -> Iterator[None]:
        """Spans may be handed over in this block: that some are dropped is told elsewhere."""
        with self._hush.here():
            yield

    def close(self, seconds: float = CLOSE_SECONDS) -> None:
        """Sends what is left, if that can be done in time, and ends."""
        ending = threading.Thread(target=self._end, name="trace-end", daemon=True)
        ending.start()
        ending.join(seconds)
        if ending.is_alive():
            self._exporter.give_up()
            _logger.warning("traces that the collector did not take in time are dropped")

    def _end(self) -> None:
        with self._hush.here():
            self.processor.shutdown()
        self._hush.close()


class _ToldOnce(SpanExporter):
    """Sends a batch, and tells when that begins to fail and when it is over."""

    def __init__(self, address: str, seconds: float, hush: _Hush) -> None:
        self._address = address
        self._hush = hush
        self._failing = False
        self._inner = OTLPSpanExporter(endpoint=address, timeout=seconds)

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        with self._hush.here():
            result = self._inner.export(spans)
        failed = result is not SpanExportResult.SUCCESS
        if failed and not self._failing:
            _logger.warning(
                "%s does not take traces; they are dropped until it does", self._address
            )
        elif self._failing and not failed:
            _logger.info("%s takes traces again", self._address)
        self._failing = failed
        return result

    def give_up(self) -> None:
        """Ends what is being tried again."""
        with self._hush.here():
            self._inner.shutdown()

    def shutdown(self) -> None:
        self.give_up()

    def force_flush(self, timeout_millis: int = 30000) -> bool:
        return True


class _Hush(logging.Filter):
    """Silences the SDK's own lines, in the threads that say so and for as long as they do."""

    def __init__(self) -> None:
        super().__init__()
        self._thread = threading.local()
        for name in _NOISY:
            logging.getLogger(name).addFilter(self)

    def close(self) -> None:
        for name in _NOISY:
            logging.getLogger(name).removeFilter(self)

    def filter(self, record: logging.LogRecord) -> bool:
        return not getattr(self._thread, "quiet", False)

    @contextmanager
    def here(self) -> Iterator[None]:
        before = getattr(self._thread, "quiet", False)
        self._thread.quiet = True
        try:
            yield
        finally:
            self._thread.quiet = before
