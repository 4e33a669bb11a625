# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Raw sockets against uvicorn with our protocol, and an application that says how a body came."""

from __future__ import annotations

import hashlib
import json
import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from support.raw_http import listening

from tensorrt_llm.serve.whole_body import WholeBodyProtocol

BODY = bytes(range(256)) * 4000
JSON_TYPE = "application/json; charset=utf-8"
LOST: list[str] = []
GONE = threading.Event()


async def tell(scope, receive, send) -> None:
    """Answers with the number of pieces and a digest; a request to ``/refused`` reads nothing."""
    pieces: list[bytes] = []
    more = scope["path"] != "/refused"
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            LOST.append(scope["path"])
            GONE.set()
            return
        pieces.append(message["body"])
        more = message["more_body"]
    digest = hashlib.sha256(b"".join(pieces)).hexdigest()
    body = json.dumps({"pieces": len(pieces), "digest": digest}).encode()
    headers = [(b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    with listening(tell, WholeBodyProtocol) as port:
        yield port


@pytest.fixture
def client(port: int) -> Iterator[socket.socket]:
    with socket.create_connection(("127.0.0.1", port), 10) as connection:
        yield connection


def head(path: str, kind: str, length: int | None = len(BODY)) -> bytes:
    framing = "Transfer-Encoding: chunked" if length is None else f"Content-Length: {length}"
    return f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: {kind}\r\n{framing}\r\n\r\n".encode()


def answer(client: socket.socket) -> dict[str, Any]:
    with client.makefile("rb") as reader:
        assert reader.readline() == b"HTTP/1.1 200 OK\r\n"
        length = 0
        while (line := reader.readline()) != b"\r\n":
            name, _, value = line.partition(b":")
            length = int(value) if name.lower() == b"content-length" else length
        return json.loads(reader.read(length))


def of(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()


@pytest.mark.parametrize("size", [0, 1, 1000, len(BODY)])
def test_a_json_body_comes_in_one_piece(client, size: int) -> None:
    for _ in range(2):
        client.sendall(head("/json", JSON_TYPE, size) + BODY[:size])
        assert answer(client) == {"pieces": 1, "digest": of(BODY[:size])}


def test_other_bodies_come_as_they_arrive(client) -> None:
    client.sendall(head("/file", "application/octet-stream") + BODY)
    told = answer(client)
    assert told["digest"] == of(BODY)
    assert told["pieces"] > 1


def test_a_body_of_undeclared_length_comes_as_it_arrives(client) -> None:
    half = len(BODY) // 2
    chunks = [b"%x\r\n%b\r\n" % (half, BODY[:half]), b"%x\r\n%b\r\n" % (half, BODY[half:])]
    client.sendall(head("/chunked", JSON_TYPE, None) + b"".join(chunks) + b"0\r\n\r\n")
    told = answer(client)
    assert told["digest"] == of(BODY)
    assert told["pieces"] > 1


def test_what_was_refused_before_its_body_does_not_reach_the_next_request(client) -> None:
    client.sendall(head("/refused", JSON_TYPE))
    assert answer(client)["pieces"] == 0
    client.sendall(BODY + head("/json", JSON_TYPE, 3) + b"[1]")
    assert answer(client) == {"pieces": 1, "digest": of(b"[1]")}


def test_what_comes_of_a_body_after_the_answer_is_not_kept() -> None:
    kept: list[int] = []

    class Watched(WholeBodyProtocol):
        def on_message_complete(self) -> None:
            kept.append(sum(map(len, self._pieces or ())))
            super().on_message_complete()

    with listening(tell, Watched) as port, socket.create_connection(("127.0.0.1", port)) as client:
        client.settimeout(60)
        client.sendall(head("/refused", JSON_TYPE))
        assert answer(client)["pieces"] == 0
        client.sendall(BODY + head("/json", JSON_TYPE, 3) + b"[1]")
        assert answer(client)["pieces"] == 1
    assert kept == [0, 3]


def test_requests_sent_in_one_go_keep_their_bodies_apart(client) -> None:
    bodies = [b"[1]", b"[2, 3]"]
    client.sendall(b"".join(head("/json", JSON_TYPE, len(body)) + body for body in bodies))
    with client.makefile("rb") as reader:
        received = b""
        while received.count(b"digest") < 2 or not received.endswith(b"}"):
            received += reader.read1()
    for body in bodies:
        assert of(body).encode() in received


def test_an_application_hears_of_a_client_that_went_away_within_its_body(port: int) -> None:
    with socket.create_connection(("127.0.0.1", port), 10) as client:
        client.sendall(head("/lost", JSON_TYPE) + BODY[:100_000])
    assert GONE.wait(60)
    assert LOST == ["/lost"]
