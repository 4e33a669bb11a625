# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Raw sockets against uvicorn with our protocol, and an application that says what it was asked."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from support.engine import wait_until
from support.raw_http import listening

from tensorrt_llm.serve.http_protocol import BoundedHttpProtocol

MOST_BYTES, SECONDS = 4096, 1.0
GOOD = b"GET /good HTTP/1.1\r\nHost: x\r\n\r\n"
POST = b"POST /post HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n" + bytes(100_000)

CHUNKED = b"POST /post HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nff\r\nabc"
BODY_SECONDS = 0.5


READ = threading.Event()


async def tell(scope, receive, send) -> None:
    """Tells the length of a body; ``/late`` is not read until it may, ``/early`` begins before."""
    size, more = 0, True
    if scope["path"] == "/late":
        await asyncio.to_thread(READ.wait)
    if scope["path"] == "/early":
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"so far", "more_body": True})
    while more:
        message = await receive()
        size, more = size + len(message.get("body", b"")), message.get("more_body", False)
    body = f"{scope['path']} {size}\n".encode()
    headers = [(b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


@contextlib.contextmanager
def serving(
    seconds: float,
    body_seconds: float = 3600.0,
    connections: list[BoundedHttpProtocol] | None = None,
) -> Iterator[int]:
    """Gives the port of a server that waits so long for a head and a body; collects connections."""

    def factory(**given: Any) -> BoundedHttpProtocol:
        made = BoundedHttpProtocol(MOST_BYTES, seconds, body_seconds, **given)
        if connections is not None:
            connections.append(made)
        return made

    with listening(tell, factory) as port:
        yield port


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    with serving(SECONDS) as port:
        yield port


@pytest.fixture(scope="module")
def patient_port() -> Iterator[int]:
    """Of a server for tests of anything but time: a busy machine may take its own."""
    with serving(60.0) as port:
        yield port


@pytest.fixture
def client(port: int) -> Iterator[socket.socket]:
    with socket.create_connection(("127.0.0.1", port), 60) as connection:
        yield connection


@pytest.fixture
def patient(patient_port: int) -> Iterator[socket.socket]:
    with socket.create_connection(("127.0.0.1", patient_port), 60) as connection:
        yield connection


def until_closed(client: socket.socket) -> tuple[int, dict]:
    """The last answer before the server hangs up."""
    answer = b""
    while data := client.recv(65_536):
        answer += data
    head, _, body = answer.rpartition(b"\r\n\r\n")
    status = int(head.rpartition(b"HTTP/1.1 ")[2][:3])
    assert b"connection: close" in head.lower()
    return status, json.loads(body)


def take(client: socket.socket, expected: bytes) -> None:
    answer = b""
    while expected not in answer:
        data = client.recv(65_536)
        assert data, answer
        answer += data
    assert answer.startswith(b"HTTP/1.1 200 ")


def test_requests_follow_one_another_on_a_connection(client) -> None:
    for message, expected in ((GOOD, b"/good 0\n"), (POST, b"/post 100000\n")) * 2:
        client.sendall(message)
        take(client, expected)
    # A pause longer than a head may take is no head that takes long.
    time.sleep(1.5 * SECONDS)
    client.sendall(GOOD + GOOD)
    take(client, b"/good 0\n")


def test_a_head_may_come_in_pieces_up_to_the_limit(patient) -> None:
    head = GOOD[:-2] + b"x: " + b"a" * (MOST_BYTES - len(GOOD) - 16) + b"\r\n\r\n"
    for start in range(0, len(head), 1000):
        patient.sendall(head[start : start + 1000])
        time.sleep(0.02)
    take(patient, b"/good 0\n")


@pytest.mark.parametrize("before", [b"", GOOD, POST, GOOD + POST])
@pytest.mark.parametrize("endless", [b"GET /", b"GET / HTTP/1.1\r\nx: ", b"GET / HTTP/1.1\r\n"])
def test_an_endless_head_is_cut_off(patient, before: bytes, endless: bytes) -> None:
    patient.sendall(before + endless)
    filler = b"y: aaaa\r\n" * 100 if endless.endswith(b"\n") else b"a" * 900
    sent = 0
    try:
        while sent < 100 * MOST_BYTES:
            patient.sendall(filler)
            sent += len(filler)
            time.sleep(0.001)
    except (BrokenPipeError, ConnectionResetError):
        pass
    assert sent < 100 * MOST_BYTES
    try:
        status, body = until_closed(patient)
    except ConnectionResetError:  # what was still on its way takes the answer along
        return
    assert status == 431
    assert body["message"] == f"the headers do not end within {MOST_BYTES} bytes"


@pytest.mark.parametrize("sent", [b"", GOOD[:-2]])
def test_a_head_that_never_ends_is_not_waited_for(client, sent: bytes) -> None:
    client.sendall(sent)
    begun = time.monotonic()
    status, body = until_closed(client)
    assert time.monotonic() - begun > 0.9 * SECONDS
    assert (status, body["message"]) == (408, "the headers were not there after 1 s")


def test_a_slow_body_is_waited_for(client) -> None:
    client.sendall(POST[:-1])
    time.sleep(1.5 * SECONDS)
    client.sendall(POST[-1:])
    take(client, b"/post 100000\n")


@pytest.mark.parametrize(
    "sent",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"GET / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        b"POST / HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"GET / HTTP/1.1\r\nx : a\r\n\r\n",
    ],
)
def test_what_is_no_http_is_answered(patient, sent: bytes) -> None:
    patient.sendall(sent)
    status, body = until_closed(patient)
    assert (status, body["message"]) == (400, "what was sent is no valid HTTP request")


@pytest.mark.parametrize("sent", [POST[:-1], POST[:-100_000], CHUNKED])
def test_a_body_that_does_not_go_on_is_not_waited_for(sent: bytes) -> None:
    with (
        serving(60.0, BODY_SECONDS) as port,
        socket.create_connection(("127.0.0.1", port), 60) as client,
    ):
        client.sendall(sent)
        begun = time.monotonic()
        status, body = until_closed(client)
        assert time.monotonic() - begun > 0.9 * BODY_SECONDS
        assert (status, body["message"]) == (408, "nothing came of the body for 0.5 s")


def test_a_body_that_goes_on_has_all_its_time_again() -> None:
    connections: list[BoundedHttpProtocol] = []
    with (
        serving(60.0, connections=connections) as port,
        socket.create_connection(("127.0.0.1", port), 60) as client,
    ):
        client.sendall(b"POST /post HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\n")
        for piece in (b"a", b"b"):
            client.sendall(piece)
            wait_until(lambda: connections and connections[0]._body_came, "a piece of the body")
            (connection,) = connections
            connection.loop.call_soon_threadsafe(connection._look_for_body)
            wait_until(lambda: not connections[0]._body_came, "a look, which expects more")
        connection.loop.call_soon_threadsafe(connection._look_for_body)
        assert until_closed(client)[0] == 408


def look(connection: BoundedHttpProtocol) -> None:
    """Has a connection look whether the body goes on, now."""
    looked = threading.Event()
    connection.loop.call_soon_threadsafe(lambda: (connection._look_for_body(), looked.set()))
    assert looked.wait(60)


def test_a_body_that_the_application_does_not_read_is_waited_for() -> None:
    connections: list[BoundedHttpProtocol] = []
    READ.clear()
    with (
        serving(60.0, connections=connections) as port,
        socket.create_connection(("127.0.0.1", port), 60) as client,
    ):
        client.sendall(b"POST /late HTTP/1.1\r\nHost: x\r\nContent-Length: 200000\r\n\r\n")
        client.sendall(bytes(100_000))
        try:
            wait_until(lambda: connections and connections[0].flow.read_paused, "it is full")
            for _ in range(3):
                look(connections[0])
        finally:
            READ.set()
        client.sendall(bytes(100_000))
        take(client, b"/late 200000\n")


def test_a_body_that_stops_within_its_answer_gets_no_other_one() -> None:
    connections: list[BoundedHttpProtocol] = []
    with (
        serving(60.0, connections=connections) as port,
        socket.create_connection(("127.0.0.1", port), 60) as client,
    ):
        client.sendall(b"POST /early HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\n")
        answer = b""
        while b"so far" not in answer:
            answer += client.recv(65_536)
        look(connections[0])
        while data := client.recv(65_536):
            answer += data
    assert answer.count(b"HTTP/1.1") == 1
