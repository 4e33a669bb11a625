# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Who watches a server while it is timed, in a process of its own: a collector of traces, a reader
of cache events, a Prometheus, and somebody who has the page open.
"""

from __future__ import annotations

import gzip
import itertools
import multiprocessing
import threading
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from multiprocessing.connection import Connection
from typing import Any

import httpx
import zmq
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

PAGE_SECONDS, SCRAPE_SECONDS = 2.0, 5.0
STALLED_RECEIVE_BYTES = 4096


@dataclass(frozen=True)
class Seen:
    """What arrived.

    Attributes:
        spans: Of traces, by name.
        batches: Messages of cache events.
        gaps: Numbers that are missing between them.
        pages: Times that the page's numbers were read.
        scrapes: Times that Prometheus read its.
    """

    spans: dict[str, int]
    batches: int
    gaps: int
    pages: int
    scrapes: int


class Watchers:
    """Their process. The collector listens at once, the others begin with `watch`.

    Attributes:
        collector: Address of the collector of traces.
        pid: Of the process.
    """

    def __init__(self) -> None:
        spawning = multiprocessing.get_context("spawn")
        self._pipe, theirs = spawning.Pipe()
        self._process = spawning.Process(target=_run, args=(theirs,), daemon=True)
        self._process.start()
        theirs.close()
        assert self._process.pid is not None
        self.pid = self._process.pid
        self.collector: str = self._pipe.recv()

    def watch(self, url: str, events: str, *, looks: bool) -> None:
        """Begins to read a server.

        Args:
            url: Of the server.
            events: Address of its stream of cache events.
            looks: Whether the page is open and Prometheus reads.
        """
        self._pipe.send((url, events, looks))
        self._pipe.recv()

    def end(self) -> Seen:
        """Ends the process; tells what came."""
        self._pipe.send(None)
        seen: Seen = self._pipe.recv()
        self._process.join()
        return seen


def _run(pipe: Connection) -> None:
    bodies: list[bytes] = []
    collector = _collector(bodies)
    pipe.send(f"http://127.0.0.1:{collector.server_port}")
    told = pipe.recv()
    if told is None:  # only traces
        collector.shutdown()
        pipe.send(Seen(_spans(bodies), 0, 0, 0, 0))
        return
    url, events, looks = told
    ending, numbers, counts = threading.Event(), list[int](), {"pages": 0, "scrapes": 0}
    context: zmq.Context[Any] = zmq.Context()
    subscriber = context.socket(zmq.SUB)
    subscriber.subscribe(b"")
    subscriber.connect(events)

    def poll(path: str, seconds: float, name: str) -> None:
        with httpx.Client(trust_env=False, timeout=60) as client:
            while not ending.is_set():
                try:
                    # An engine in the middle of its first step has nothing to tell yet.
                    counts[name] += client.get(url + path).status_code == 200
                except httpx.TransportError:  # the server ends first: it has traces to send
                    return
                ending.wait(seconds)

    def read() -> None:
        while not ending.is_set():
            if subscriber.poll(100):
                numbers.append(int.from_bytes(subscriber.recv_multipart()[1], "big"))

    threads = [threading.Thread(target=read)]
    if looks:
        page = ("/kv_cache/state", PAGE_SECONDS, "pages")
        scrape = ("/prometheus/metrics", SCRAPE_SECONDS, "scrapes")
        threads += [threading.Thread(target=poll, args=args) for args in (page, scrape)]
    for thread in threads:
        thread.start()
    pipe.send("watching")
    pipe.recv()
    ending.set()
    for thread in threads:
        thread.join()
    context.destroy(linger=0)
    collector.shutdown()
    gaps = sum(later - earlier - 1 for earlier, later in itertools.pairwise(numbers))
    pipe.send(Seen(_spans(bodies), len(numbers), gaps, **counts))


def _collector(bodies: list[bytes]) -> ThreadingHTTPServer:
    """Keeps what is sent, to be read when nothing is timed any more."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            packed = self.headers.get("Content-Encoding") == "gzip"
            bodies.append(gzip.decompress(body) if packed else body)
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def _spans(bodies: list[bytes]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for body in bodies:
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
            for scope in resource.scope_spans:
                for span in scope.spans:
                    counts[span.name] = counts.get(span.name, 0) + 1
    return counts


class StalledReader:
    """Subscribes to a stream of cache events, takes the first message, and reads no more."""

    def __init__(self, events: str) -> None:
        self._context: zmq.Context[Any] = zmq.Context()
        self._socket = self._context.socket(zmq.SUB)
        self._socket.rcvhwm = 1
        self._socket.rcvbuf = STALLED_RECEIVE_BYTES
        self._socket.subscribe(b"")
        self._socket.connect(events)

    def begin(self, seconds: float) -> None:
        """Takes the first message: from now on the reader is one that has stopped.

        Raises:
            TimeoutError: If none comes.
        """
        if not self._socket.poll(round(1e3 * seconds)):
            raise TimeoutError("the stream of cache events is silent")
        self._socket.recv_multipart()

    def waiting(self) -> int:
        """Ends; how many messages are still to be had, those that were not dropped."""
        count = 0
        while self._socket.poll(500):
            self._socket.recv_multipart()
            count += 1
        self._context.destroy(linger=0)
        return count
