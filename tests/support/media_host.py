# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""A web server on loopback with every bad habit that a host of media can have.

The first part of a path says what it does: ``/ok/...`` sends the body, ``/to/URL`` redirects,
``/hops/20`` redirects that often, ``/untold`` and ``/told/N`` send no length and a wrong one,
``/drip`` sends a byte at a time.
"""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

BODY = bytes(range(256)) * 40


class Host:
    """A web server on loopback that remembers what it was asked.

    Attributes:
        seen: The host and the path of every request.
        body: What most paths answer with.
        port: Where it listens.
    """

    def __init__(self, family: socket.AddressFamily = socket.AF_INET, body: bytes = BODY) -> None:
        host = self
        self.body = body
        self.seen: list[tuple[str, str]] = []
        self.gone = threading.Event()

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                host.seen.append((self.headers["Host"], self.path))
                with contextlib.suppress(OSError):
                    host.answer(self)

            def log_message(self, *args: object) -> None:
                pass

        class Server(ThreadingHTTPServer):
            address_family = family
            daemon_threads = True

            def handle_error(self, request: object, client_address: object) -> None:
                pass

        self.server = Server(("::1" if family == socket.AF_INET6 else "127.0.0.1", 0), Handler)
        self.port = self.server.server_address[1]

    @property
    def url(self) -> str:
        """Its address on IPv4, without a path."""
        return f"http://127.0.0.1:{self.port}"

    def answer(self, to: BaseHTTPRequestHandler) -> None:
        name, _, argument = to.path.lstrip("/").partition("/")
        getattr(self, f"answer_{name}")(to, argument)

    def send(self, to, status: int = 200, body: bytes = b"", **headers: str) -> None:
        to.send_response(status)
        for key, value in {"Content_Length": str(len(body)), **headers}.items():
            if value:
                to.send_header(key.replace("_", "-"), value)
        to.end_headers()
        to.wfile.write(body)

    def answer_ok(self, to, argument: str) -> None:
        self.send(to, body=self.body)

    def answer_status(self, to, argument: str) -> None:
        self.send(to, int(argument), b"none")

    def answer_to(self, to, argument: str) -> None:
        self.send(to, 302, Location=argument)

    def answer_hops(self, to, argument: str) -> None:
        left = int(argument)
        if left:
            self.send(to, 307, Location=f"../hops/{left - 1}")
        else:
            self.send(to, body=self.body)

    def answer_untold(self, to, argument: str) -> None:
        self.send(to, body=self.body, Content_Length="")

    def answer_told(self, to, argument: str) -> None:
        self.send(to, Content_Length=argument)

    def answer_zipped(self, to, argument: str) -> None:
        self.send(to, body=self.body, Content_Encoding="gzip")

    def answer_short(self, to, argument: str) -> None:
        self.send(to, body=self.body, Content_Length=str(len(self.body) + 1))

    def answer_drip(self, to, argument: str) -> None:
        self.send(to, Content_Length=str(len(self.body)))
        self.drip(to, self.body)

    def answer_drip_headers(self, to, argument: str) -> None:
        to.wfile.write(b"HTTP/1.1 200 OK\r\nX-Slow: ")
        self.drip(to, b"a" * 200)

    def answer_silence(self, to, argument: str) -> None:
        self.gone.wait(60)

    def answer_noise(self, to, argument: str) -> None:
        to.wfile.write(b"\x00\x01\x02 no http at all\r\n\r\n")

    def drip(self, to, data: bytes) -> None:
        for byte in data:
            if self.gone.wait(0.1):
                return
            to.wfile.write(bytes([byte]))
            to.wfile.flush()


@contextlib.contextmanager
def serving(host: Host) -> Iterator[Host]:
    """Serves for the length of the block."""
    thread = threading.Thread(target=host.server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield host
    finally:
        host.gone.set()
        host.server.shutdown()
        host.server.server_close()
        thread.join()
