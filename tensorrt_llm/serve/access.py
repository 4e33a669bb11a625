# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Who may ask the server, and whose answers a request may share.

With API keys, every route but ``/health`` wants one, and each key's tenant has caches of its own.
Without, anyone may ask who can reach the port; administrative routes then answer on loopback only.
"""

from __future__ import annotations

import ipaddress
from typing import TypeVar
from urllib.parse import urlsplit

from pydantic import BaseModel
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Receive, Scope, Send

from tensorrt_llm.serve.api_keys import ApiKeys, Tenant
from tensorrt_llm.serve.errors import error_response

# What watches over servers carries no key, and learns nothing there.
OPEN_PATHS = frozenset({"/health"})

_TENANT = "tensorrt_llm.tenant"

_Body = TypeVar("_Body", bound=BaseModel)


class Access:
    """ASGI middleware that answers 401 to a request without a valid key.

    Args:
        app: What is kept behind the keys.
        keys: The keys; where there are none, everything passes.
    """

    def __init__(self, app: ASGIApp, keys: ApiKeys) -> None:
        self._app = app
        self._keys = keys

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handles one connection's request."""
        if self._keys and scope["type"] != "lifespan" and scope["path"] not in OPEN_PATHS:
            tenant = self._keys.tenant(_presented(Headers(scope=scope)))
            if tenant is None:
                await error_response(_unauthorized())(scope, receive, send)
                return
            scope[_TENANT] = tenant
        await self._app(scope, receive, send)


def tenant_of(http: HTTPConnection) -> Tenant | None:
    """Whose request it is; None where no keys are asked for."""
    return http.scope.get(_TENANT)


def in_tenant(http: HTTPConnection, body: _Body) -> _Body:
    """A request's body, with its ``cache_salt`` made its tenant's own."""
    tenant = tenant_of(http)
    if tenant is None:
        return body
    return body.model_copy(update={"cache_salt": tenant.salted(getattr(body, "cache_salt", None))})


def owner_of(http: HTTPConnection, cache_salt: str | None) -> str | None:
    """Whose the things are that a request leaves with the server: its tenant's.

    Where no keys are asked for, who knows a ``cache_salt`` is one.
    """
    tenant = tenant_of(http)
    return cache_salt if tenant is None else tenant.salt


def check_administrator(http: HTTPConnection) -> None:
    """Refuses who may not use an administrative route.

    Raises:
        HTTPException: 403, if the request carries no key and does not come from this machine.
            Names what would open the route.
    """
    if tenant_of(http) is None:
        check_local(
            http,
            "is an administrative route",
            "the server has API keys (--api_key, --api_key_file)",
        )


def check_local(http: HTTPConnection, what: str, unless: str | None = None) -> None:
    """Refuses who does not ask from this machine, whatever key it has: for what tells of tenants.

    Args:
        http: The request.
        what: Why, after the route's name.
        unless: What would open it.

    Raises:
        HTTPException: 403. Names what would open the route.
    """
    # A web page that the operator looks at asks from this machine too, but its own address stands
    # in Origin, and after a trick with its name in Host.
    origin = http.headers.get("origin")
    hosts = [http.client.host if http.client else "", http.url.hostname or ""]
    if origin is not None:
        hosts.append(urlsplit(origin).hostname or "")
    if not all(_is_loopback(host) for host in hosts):
        opens = "" if unless is None else f", unless {unless}"
        raise HTTPException(403, f"{http.url.path} {what}: it answers on loopback only{opens}")


def _presented(headers: Headers) -> bytes:
    scheme, _, key = headers.get("authorization", "").partition(" ")
    # Headers are Latin-1 text, so nothing that a client sends fails to encode.
    return key.strip().encode("latin-1") if scheme.lower() == "bearer" else b""


def _unauthorized() -> HTTPException:
    return HTTPException(
        401,
        'a valid API key is needed, as "Authorization: Bearer KEY"',
        # The body is not read, so the connection cannot be used again.
        headers={"WWW-Authenticate": "Bearer", "Connection": "close"},
    )


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None)
    return (mapped or address).is_loopback
