# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Sockets that are bound before a model is loaded, so that a taken port is told at once."""

from __future__ import annotations

import errno
import socket

# An address that this machine lacks (IPv6 switched off, say) is left out if another one works.
_NOT_HERE = (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT)


def bind(host: str, port: int) -> list[socket.socket]:
    """Binds every address of a host, without listening yet.

    Args:
        host: Name or address.
        port: Port; 0 takes a free one, the same for all addresses.

    Raises:
        OSError: If the host is unknown or the port is taken.
    """
    sockets: list[socket.socket] = []
    missing: OSError | None = None
    try:
        for family, kind, protocol, _, address in _addresses(host, port):
            if sockets:
                address = (address[0], sockets[0].getsockname()[1], *address[2:])
            try:
                sockets.append(_bound(family, kind, protocol, address))
            except OSError as error:
                if error.errno not in _NOT_HERE:
                    raise
                missing = error
    except OSError:
        for bound in sockets:
            bound.close()
        raise
    if not sockets:
        raise missing or OSError(f"{host} has no address")
    return sockets


def url_of(host: str, sockets: list[socket.socket], scheme: str = "http") -> str:
    """The base URL under which bound sockets are reached."""
    shown = f"[{host}]" if ":" in host else host
    return f"{scheme}://{shown}:{sockets[0].getsockname()[1]}"


def _addresses(host: str, port: int) -> list[tuple]:
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    # IPv4 first: it is what most clients try, and what a free port is drawn from.
    return sorted(dict.fromkeys(found), key=lambda entry: entry[0] != socket.AF_INET)


def _bound(family: int, kind: int, protocol: int, address: tuple) -> socket.socket:
    bound = socket.socket(family, kind, protocol)
    try:
        if family == socket.AF_INET6:
            bound.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        # A port that a server of the last minute used may be taken again; one in use may not.
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(address)
    except OSError:
        bound.close()
        raise
    return bound
