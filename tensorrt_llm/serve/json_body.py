# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Reads large JSON bodies quickly: media in base64 makes them megabytes of one string."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from fastapi.routing import APIRoute
from pydantic_core import from_json
from starlette.requests import Request
from starlette.responses import Response

LARGE_BODY_BYTES = 64 * 2**10
"""From this size on a body goes through the faster parser."""


class _JsonRequest(Request):
    async def body(self) -> bytes:
        if not hasattr(self, "_body"):
            chunks = [chunk async for chunk in self.stream() if chunk]
            # A join would copy even a single chunk, for an empty one always follows.
            self._body = chunks[0] if len(chunks) == 1 else b"".join(chunks)
        return self._body

    async def json(self) -> Any:
        body = await self.body()
        if len(body) < LARGE_BODY_BYTES or hasattr(self, "_json"):
            return await super().json()
        try:
            self._json = from_json(body, cache_strings="none")
        except ValueError:
            # The other parser says what is wrong, in the words that small bodies get.
            return await super().json()
        return self._json


class JsonRoute(APIRoute):
    """A route that reads large JSON bodies quickly, and every body to the same values."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """The handler, given a request that parses its own way."""
        handler = super().get_route_handler()

        async def handle(request: Request) -> Response:
            return await handler(_JsonRequest(request.scope, request.receive))

        return handle
