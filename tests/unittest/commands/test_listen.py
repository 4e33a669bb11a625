# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Ports are taken before a model is loaded."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import ExitStack, closing

import pytest

from tensorrt_llm.commands.listen import bind, url_of


@pytest.fixture(name="opened")
def closed_at_the_end() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def take(opened: ExitStack, host: str, port: int) -> list[socket.socket]:
    sockets = bind(host, port)
    for one in sockets:
        opened.enter_context(closing(one))
    return sockets


def test_all_addresses_of_a_host_share_one_port(opened: ExitStack) -> None:
    sockets = take(opened, "localhost", 0)
    assert len({one.getsockname()[1] for one in sockets}) == 1
    assert sockets[0].family == socket.AF_INET
    port = sockets[0].getsockname()[1]
    assert url_of("localhost", sockets) == f"http://localhost:{port}"


def test_a_port_in_use_is_refused_and_free_again_afterwards(opened: ExitStack) -> None:
    first = bind("127.0.0.1", 0)
    port = first[0].getsockname()[1]
    first[0].listen()
    with pytest.raises(OSError, match="in use"):
        bind("127.0.0.1", port)
    with pytest.raises(OSError, match="in use"):
        bind("localhost", port)
    first[0].close()
    take(opened, "127.0.0.1", port)


@pytest.mark.parametrize("second", ["127.0.0.2", "192.0.2.1"])
def test_a_port_in_use_at_one_address_is_refused_but_a_missing_address_is_left_out(
    opened: ExitStack, monkeypatch: pytest.MonkeyPatch, second: str
) -> None:
    def two_addresses(host: str, port: int, **options: object) -> list[tuple]:
        kind = (socket.AF_INET, socket.SOCK_STREAM, 6, "")
        return [(*kind, (address, port)) for address in ("127.0.0.1", second)]

    monkeypatch.setattr(socket, "getaddrinfo", two_addresses)
    sockets = take(opened, "both", 0)
    assert len(sockets) == (2 if second == "127.0.0.2" else 1)
    sockets[0].listen()
    with pytest.raises(OSError, match="in use"):
        bind("both", sockets[0].getsockname()[1])


def test_an_address_of_another_machine_is_refused() -> None:
    with pytest.raises(OSError):
        bind("192.0.2.1", 0)


def test_ipv6_addresses_stand_in_brackets(opened: ExitStack) -> None:
    sockets = take(opened, "127.0.0.1", 0)
    port = sockets[0].getsockname()[1]
    assert url_of("::1", sockets) == f"http://[::1]:{port}"
