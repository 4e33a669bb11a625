# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Fetches remote media. Every answer is hostile until proven dull.

Each hop, the first and every redirect, goes the same way: scheme and host are checked, the host is
resolved once, all its addresses are checked, and the connection goes to those very addresses, while
TLS and the Host header still use the name. One deadline covers everything, down to each read from
the socket. Proxies and other settings of the environment are not looked at.
"""

from __future__ import annotations

import ipaddress
import queue
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import httpcore
import httpx

from tensorrt_llm.errors import LimitExceededError, MediaBlockedError, MediaFetchError
from tensorrt_llm.inputs.media_access import MediaAccess

Resolver: TypeAlias = Callable[[str, int], Sequence[str]]
"""From host and port to numeric addresses. Raises OSError if there is none."""

_REDIRECTS = (301, 302, 303, 307, 308)
_HEADERS = [
    (b"User-Agent", b"tensorrt_llm"),
    (b"Accept", b"*/*"),
    (b"Accept-Encoding", b"identity"),
]
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")


def system_resolver(host: str, port: int) -> list[str]:
    """Asks the system for the addresses of a host."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(sockaddr[0]) for *_, sockaddr in found))


def is_public(address: str, *, allow_loopback: bool = False) -> bool:
    """Whether an address belongs to the public internet.

    Args:
        address: Numeric IPv4 or IPv6 address. An IPv4 address wrapped in an IPv6 one is judged as
            the IPv4 address.
        allow_loopback: Whether loopback counts as public.
    """
    ip = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(ip, ipaddress.IPv6Address):
        wrapped = ip.ipv4_mapped or ip.sixtofour
        if wrapped is None and ip in _NAT64:
            wrapped = ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF)
        if wrapped is not None:
            return is_public(str(wrapped), allow_loopback=allow_loopback)
    if ip.is_loopback:
        return allow_loopback
    return ip.is_global and not ip.is_multicast and not ip.is_reserved


class _Deadline:
    """A moment that all steps of a fetch share."""

    def __init__(self, seconds: float) -> None:
        self._end = time.monotonic() + seconds

    def remaining(self) -> float:
        """Seconds left. Raises a timeout of httpcore's kind when there are none."""
        left = self._end - time.monotonic()
        if left <= 0:
            raise httpcore.ReadTimeout
        return left


class _DeadlineStream(httpcore.NetworkStream):
    """A stream whose every operation ends with the deadline, so that a drip ends too."""

    def __init__(self, stream: httpcore.NetworkStream, deadline: _Deadline) -> None:
        self._stream = stream
        self._deadline = deadline

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._stream.read(max_bytes, timeout=self._deadline.remaining())

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._stream.write(buffer, timeout=self._deadline.remaining())

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore.NetworkStream:
        inner = self._stream.start_tls(ssl_context, server_hostname, self._deadline.remaining())
        return _DeadlineStream(inner, self._deadline)

    def get_extra_info(self, info: str) -> object:
        return self._stream.get_extra_info(info)


class _PinnedBackend(httpcore.NetworkBackend):
    """Connects to addresses that were checked, whatever the host's name means by now."""

    def __init__(self, addresses: Sequence[str], deadline: _Deadline) -> None:
        self._addresses = addresses
        self._deadline = deadline
        self._sockets = httpcore.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.NetworkStream:
        last: Exception = httpcore.ConnectError("no address")
        for address in self._addresses:
            try:
                stream = self._sockets.connect_tcp(
                    address, port, timeout=self._deadline.remaining(), socket_options=socket_options
                )
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                last = error
            else:
                return _DeadlineStream(stream, self._deadline)
        raise last


@dataclass(frozen=True)
class _Redirect:
    location: str


class MediaFetcher:
    """Fetches media over http and https under the rules. Safe to use from many threads.

    Args:
        access: Rules and limits.
        resolver: How hosts become addresses.
        ssl_context: Whom to trust over https; by default the usual certificate authorities.
    """

    def __init__(
        self,
        access: MediaAccess,
        *,
        resolver: Resolver = system_resolver,
        ssl_context: ssl.SSLContext | None = None,
    ) -> None:
        self._access = access
        self._resolver = resolver
        self._ssl_context = ssl_context or httpx.create_ssl_context(trust_env=False)

    def fetch(self, url: str) -> bytes:
        """Fetches one body.

        Raises:
            MediaBlockedError: If a hop leads to a scheme, host or address that is not allowed.
            MediaFetchError: If the answer is no success, breaks off, or takes too long.
            LimitExceededError: If the body has more than ``max_bytes``, or there are more than
                ``max_redirects``.
        """
        limits = self._access.limits
        deadline = _Deadline(limits.timeout_s)
        try:
            hop = _parse(url)
            for _ in range(limits.max_redirects + 1):
                answer = self._get(hop, deadline)
                if isinstance(answer, bytes):
                    return answer
                hop = _parse(answer.location, base=hop)
        except httpcore.TimeoutException as error:
            raise MediaFetchError(
                f"the media did not arrive within {limits.timeout_s:g} s"
            ) from error
        except (httpcore.NetworkError, httpcore.ProtocolError) as error:
            raise MediaFetchError(
                "the connection to the media's host failed or broke off"
            ) from error
        most = limits.max_redirects
        raise LimitExceededError("max_redirects", most + 1, most, "redirects")

    def _get(self, url: httpx.URL, deadline: _Deadline) -> bytes | _Redirect:
        backend = _PinnedBackend(self._checked_addresses(url, deadline), deadline)
        target = httpcore.URL(
            scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path
        )
        with (
            httpcore.ConnectionPool(
                ssl_context=self._ssl_context, max_connections=1, network_backend=backend
            ) as pool,
            pool.stream("GET", target, headers=_HEADERS) as response,
        ):
            return self._read(response)

    def _checked_addresses(self, url: httpx.URL, deadline: _Deadline) -> Sequence[str]:
        access = self._access
        host = url.raw_host.decode("ascii").lower()
        if not access.allows_host(host):
            raise MediaBlockedError("the host is not in --allowed_media_domains")
        addresses = self._resolve(
            host, url.port or (443 if url.scheme == "https" else 80), deadline
        )
        if access.trusted:
            if not addresses:
                raise MediaFetchError(f"the host {host} has no address")
            return addresses
        allow_loopback = access.allow_loopback
        if not addresses or not all(
            is_public(address, allow_loopback=allow_loopback) for address in addresses
        ):
            # One text for a private host and for none, or the inside could be mapped by asking.
            raise MediaBlockedError(
                "the host has no public address, and media is fetched from public addresses only "
                "(--allow_loopback_media opens loopback)"
            )
        return addresses

    def _resolve(self, host: str, port: int, deadline: _Deadline) -> Sequence[str]:
        """Resolves within the deadline; the system's resolver has no timeout of its own."""
        results: queue.SimpleQueue[Sequence[str]] = queue.SimpleQueue()

        def ask() -> None:
            try:
                results.put(self._resolver(host, port))
            except (OSError, UnicodeError):
                results.put(())

        threading.Thread(target=ask, name="media-resolver", daemon=True).start()
        try:
            return results.get(timeout=deadline.remaining())
        except queue.Empty:
            raise httpcore.ConnectTimeout from None

    def _read(self, response: httpcore.Response) -> bytes | _Redirect:
        headers = {name.lower(): value for name, value in response.headers}
        if response.status in _REDIRECTS and b"location" in headers:
            return _Redirect(headers[b"location"].decode("latin-1"))
        if response.status != 200:
            raise MediaFetchError(f"the media's host answered with status {response.status}")
        if headers.get(b"content-encoding", b"identity").lower() != b"identity":
            # A compressed body could hide any size.
            raise MediaFetchError(
                "the media's host sent a compressed body, which was not asked for"
            )
        limit = self._access.limits.max_bytes
        declared = headers.get(b"content-length", b"")
        if declared.isdigit() and int(declared) > limit:
            raise LimitExceededError("max_bytes", int(declared), limit, "bytes")
        chunks, size = [], 0
        for chunk in response.iter_stream():
            size += len(chunk)
            if size > limit:
                raise LimitExceededError("max_bytes", size, limit, "bytes")
            chunks.append(chunk)
        return b"".join(chunks)


def _parse(url: str, base: httpx.URL | None = None) -> httpx.URL:
    try:
        parsed = httpx.URL(url) if base is None else base.join(url)
    except (httpx.InvalidURL, UnicodeError) as error:
        raise MediaFetchError("the media's address is no valid URL") from error
    if parsed.scheme not in ("http", "https"):
        raise MediaBlockedError(f"media is fetched over http and https, not {parsed.scheme}")
    if not parsed.host or "%" in parsed.host:
        raise MediaFetchError("the media's address names no valid host")
    if parsed.userinfo:
        raise MediaBlockedError("the media's address carries a user name or password")
    return parsed
