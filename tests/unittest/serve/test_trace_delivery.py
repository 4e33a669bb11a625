# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""A collector that is down, stuck or refusing costs nobody an answer, and is told of once."""

from __future__ import annotations

import logging
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from support.asgi_client import CHAT, Client, chat_body
from support.trace_collector import TraceCollector

from tensorrt_llm.logger import ROOT_NAME
from tensorrt_llm.serve.trace_delivery import MOST_WAITING, Delivery
from tensorrt_llm.serve.trace_export import SpanExport
from tensorrt_llm.serve.tracing import RequestTrace, TraceRequests

FOREVER = 3600.0


@contextmanager
def closed_port() -> Iterator[str]:
    with socket.socket() as taken:  # bound and not listening: nobody else can have it
        taken.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{taken.getsockname()[1]}"


@contextmanager
def stuck_collector() -> Iterator[str]:
    """Takes connections and what is sent, and never answers."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen(16)
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"


@contextmanager
def refusing_collector() -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(403)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.fixture(name="exports")
def span_exports(monkeypatch: pytest.MonkeyPatch) -> Callable[..., SpanExport]:
    """Makes one whose collector gets so long for a batch."""

    def make(url: str, seconds: float) -> SpanExport:
        monkeypatch.setattr(
            "tensorrt_llm.serve.trace_delivery.Delivery", lambda a: Delivery(a, seconds)
        )
        return SpanExport(url, "tiny")

    return make


def ended_request() -> RequestTrace:
    now = time.monotonic()
    return RequestTrace(
        {}, now, [("load", now, now)], ended=now, method="POST", route=CHAT, status=200
    )


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Of everybody: the SDK's loggers too."""
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]


@pytest.mark.parametrize("collector", [closed_port, refusing_collector])
def test_what_does_not_arrive_is_told_once(
    collector: Callable, exports: Callable, caplog: pytest.LogCaptureFixture
) -> None:
    with collector() as url:
        export = exports(url, 0.5)
        for _ in range(3):
            export.request_ended(ended_request())
            export.flush()
        (told,) = warnings(caplog)
        assert told == f"{url}/v1/traces does not take traces; they are dropped until it does"
        export.close()
        assert warnings(caplog) == [told]


def test_that_it_is_over_is_told_too(exports: Callable, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, ROOT_NAME)
    with closed_port() as url:
        delivery = exports(url, 0.5)
        delivery.request_ended(ended_request())
        delivery.flush()
    port = int(url.rsplit(":", 1)[1])
    with TraceCollector(port) as collector:
        delivery.request_ended(ended_request())
        delivery.flush()
        assert {span.name for span in collector.spans} == {f"POST {CHAT}", "load"}
        delivery.close()
    ours = [r.getMessage() for r in caplog.records if r.name.startswith("tensorrt_llm")]
    assert len(ours) == 2 and ours[1].endswith("takes traces again")


def test_a_stuck_collector_costs_bounded_memory_and_no_end(
    exports: Callable, caplog: pytest.LogCaptureFixture
) -> None:
    with stuck_collector() as url:
        export = exports(url, FOREVER)
        for _ in range(MOST_WAITING):  # two spans each
            export.request_ended(ended_request())
        queue = export._delivery.processor._batch_processor._queue
        assert len(queue) <= queue.maxlen == MOST_WAITING
        assert len(queue) > MOST_WAITING // 2, "no pressure"
        assert warnings(caplog) == [], "what is dropped is not told line by line"
        export._delivery.close(0.1)  # comes back, though the collector has an hour
        assert len(warnings(caplog)) == 1


@pytest.mark.parametrize("collector", [closed_port, stuck_collector, refusing_collector])
def test_requests_are_answered_all_the_same(
    collector: Callable, client: Client, exports: Callable
) -> None:
    with collector() as url:
        export = exports(url, FOREVER if collector is stuck_collector else 0.5)
        traced = Client(client.llm, client.config)
        traced.app = TraceRequests(traced.app, export)
        for reply in traced.send_all([("POST", CHAT, {"json": chat_body("Hi.")})] * 4):
            assert reply.status_code == 200, reply.text
        export._delivery.close(0.1)
