# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Reads JSON bodies quickly: media in base64 makes them megabytes of one string.

What is unusual (another content type, a mistake in the body) goes the framework's way, which also
words the refusals.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from fastapi.routing import APIRoute
from pydantic import BaseModel
from pydantic_core import from_json
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from tensorrt_llm.errors import RequestError
from tensorrt_llm.serve.large_strings import parse_with_views

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
            values = parse_with_views(body)
            self._json = from_json(body, cache_strings="none") if values is None else values
        except ValueError:
            # The other parser says what is wrong, in the words that small bodies get.
            return await super().json()
        return self._json


class JsonRoute(APIRoute):
    """A route that reads large JSON bodies quickly, and every body to the same values."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """The handler, given a request that parses its own way."""
        handler = super().get_route_handler()
        direct = _DirectCall.of(self)

        async def handle(request: Request) -> Response:
            quick = _JsonRequest(request.scope, request.receive)
            arguments = None if direct is None else await direct.arguments(quick)
            return await (handler(quick) if arguments is None else self.endpoint(**arguments))

        return handle


@dataclass(frozen=True)
class _DirectCall:
    """How to call an endpoint that takes a body and the request, and nothing to be looked up."""

    model: type[BaseModel]
    body: str
    request: str

    @classmethod
    def of(cls, route: APIRoute) -> _DirectCall | None:
        """How to call a route's endpoint; None if only the framework can.

        Whatever an endpoint returns but a response, the framework would make one of.
        """
        signature = inspect.signature(route.endpoint, eval_str=True)
        taken = signature.parameters
        kinds = [parameter.annotation for parameter in taken.values()]
        if len(kinds) != 2 or kinds[1] is not Request or not _is_a(kinds[0], BaseModel):
            return None
        if not inspect.iscoroutinefunction(route.endpoint):
            return None
        return cls(kinds[0], *taken) if _is_a(signature.return_annotation, Response) else None

    async def arguments(self, http: Request) -> dict[str, Any] | None:
        """The arguments, or None if they cannot be made of this request.

        Raises:
            HTTPException: If a middleware refuses the body.
        """
        if http.headers.get("content-type") != "application/json":
            return None
        try:
            body = self.model.model_validate(await http.json())
        except (ValueError, RequestError, RecursionError, ClientDisconnect):
            # The framework meets it again, and has the words.
            return None
        return {self.body: body, self.request: http}


def _is_a(annotation: Any, base: type) -> bool:
    return inspect.isclass(annotation) and issubclass(annotation, base)
