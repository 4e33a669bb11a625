# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""A collector of OpenTelemetry traces on loopback, which reads the wire as any other does."""

from __future__ import annotations

import gzip
import threading
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


@dataclass(frozen=True)
class Span:
    """One that arrived; times in nanoseconds since 1970."""

    name: str
    trace_id: str
    span_id: str
    parent_id: str
    began: int
    ended: int
    attributes: dict[str, Any]
    failed: bool


class TraceCollector:
    """Listens while it is entered.

    Attributes:
        spans: What arrived, in order.
        paths: Where it was sent.

    Args:
        port: Where to listen; 0 takes a free one.
    """

    def __init__(self, port: int = 0) -> None:
        self._port = port

    def __enter__(self) -> TraceCollector:
        self.spans: list[Span] = []
        self.paths: list[str] = []
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if self.headers.get("Content-Encoding") == "gzip":
                    body = gzip.decompress(body)
                collector.paths.append(self.path)
                collector.take(ExportTraceServiceRequest.FromString(body))
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *arguments: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", self._port), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever)
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Listens no more. May be called again."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def take(self, message: Any) -> None:
        for resource in message.resource_spans:
            for scope in resource.scope_spans:
                self.spans += [_read(span) for span in scope.spans]


def _read(span: Any) -> Span:
    attributes = {}
    for pair in span.attributes:
        kind = pair.value.WhichOneof("value")
        attributes[pair.key] = getattr(pair.value, kind)
    return Span(
        span.name,
        span.trace_id.hex(),
        span.span_id.hex(),
        span.parent_span_id.hex(),
        span.start_time_unix_nano,
        span.end_time_unix_nano,
        attributes,
        span.status.code == 2,
    )
