# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Clients that speak no proper HTTP: requests inside requests, and crowds that say nothing."""

from __future__ import annotations

import contextlib
import re
import socket
from collections.abc import Iterator
from urllib.parse import urlsplit

INNER = b"GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n"
_POST = b"POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"
_TOLD = b"Content-Length: %d\r\n" % len(INNER)
_CHUNKED = b"Transfer-Encoding: chunked\r\n"


def ambiguous() -> dict[str, bytes]:
    """Requests whose end two readers could see at two places, with another one behind the first.

    Whoever answers the inner one has been smuggled something.
    """
    end = b"0\r\n\r\n" + INNER
    heads = {
        "length and chunks": _TOLD + _CHUNKED,
        "chunks and length": _CHUNKED + _TOLD,
        "two lengths": _TOLD + b"Content-Length: 0\r\n",
        "two lengths in one": b"Content-Length: 0, %d\r\n" % len(INNER),
        "a signed length": b"Content-Length: +0\r\n",
        "a negative length": b"Content-Length: -1\r\n",
        "a length in hexadecimal": b"Content-Length: 0x0\r\n",
        "a length over 64 bits": b"Content-Length: 18446744073709551616\r\n",
        "a space before the colon": b"Content-Length : 0\r\n" + _CHUNKED,
        "chunks by another name": b"Transfer-Encoding: xchunked\r\n" + _TOLD,
        "chunks behind a tab": b"Transfer-Encoding:\tchunked\r\n" + _TOLD,
        "chunks twice": _CHUNKED + _CHUNKED + _TOLD,
        "chunks before another coding": b"Transfer-Encoding: chunked, identity\r\n" + _TOLD,
        "a folded header": b"Transfer-Encoding:\r\n chunked\r\n" + _TOLD,
        "a line feed inside": b"X: a\nTransfer-Encoding: chunked\r\n" + _TOLD,
        "a carriage return inside": b"X: a\rTransfer-Encoding: chunked\r\n" + _TOLD,
        "a zero byte inside": b"X: a\0b\r\n" + _TOLD + _CHUNKED,
        "no name": b": chunked\r\n" + _TOLD + _CHUNKED,
    }
    made = {name: _POST + head + b"\r\n" + end for name, head in heads.items()}
    chunks = _POST + _CHUNKED + b"\r\n"
    made |= {
        "a chunk of no size": chunks + b"\r\n" + end,
        "a chunk of a negative size": chunks + b"-1\r\n" + end,
        "a chunk over 64 bits": chunks + b"1" + b"0" * 16 + b"\r\n" + end,
        "a chunk of another alphabet": chunks + b"g\r\n" + end,
        "a chunk that ends elsewhere": chunks + b"1\r\nabc\r\n" + end,
        "no method": b"\x00\x01\x02\r\n\r\n" + INNER,
        "another protocol": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + INNER,
        "an unknown version": b"GET / HTTP/9.9\r\nHost: a\r\n\r\n" + INNER,
        "a method of its own": b"G\tET / HTTP/1.1\r\nHost: a\r\n\r\n" + INNER,
        "a greeting of TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + INNER,
    }
    return made


@contextlib.contextmanager
def connected(url: str, seconds: float = 20.0) -> Iterator[socket.socket]:
    """A connection to a server."""
    address = urlsplit(url)
    with socket.create_connection((address.hostname, address.port), seconds) as client:
        yield client


def exchanged(url: str, data: bytes) -> list[int]:
    """Statuses of all answers to what was sent, until the server hangs up or says no more."""
    with connected(url) as client:
        with contextlib.suppress(OSError):
            client.sendall(data)
            client.shutdown(socket.SHUT_WR)
        heard = b""
        with contextlib.suppress(OSError):
            while more := client.recv(65536):
                heard += more
    return [int(code) for code in re.findall(rb"^HTTP/1\.[01] (\d{3}) ", heard, re.M)]


def wrong_about(statuses: list[int]) -> str | None:
    """What is wrong with the answers to an ambiguous request; None if nothing is."""
    if len(statuses) > 1:
        return f"the request inside was answered: {statuses}"
    if any(not 400 <= status < 500 for status in statuses):
        return f"answered {statuses}"
    return None


@contextlib.contextmanager
def crowd(url: str, count: int, said: bytes = b"") -> Iterator[list[socket.socket]]:
    """So many connections, on each of which so much was said."""
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(connected(url)) for _ in range(count)]
        for client in clients:
            client.sendall(said)
        yield clients


def crowds() -> dict[str, bytes]:
    """What clients of a crowd say before they say no more."""
    return {
        "nothing": b"",
        "half a head": _POST + b"X-Slow: ",
        "a head and no body": _POST + b"Content-Length: 1000\r\n\r\n",
        "half a chunk": _POST + _CHUNKED + b"\r\nff\r\nabc",
    }
