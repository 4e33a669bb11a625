# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""What each room of the server adds its routes to, with the answers that they may give."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, Literal, Protocol

from fastapi import APIRouter
from pydantic import BaseModel
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Match, Route

from tensorrt_llm.serve.openai_protocol import ErrorResponse

ERRORS = (400, 401, 403, 408, 413, 429, 431, 500, 501, 503)
"""Statuses with which a route that takes a request may refuse it."""

READING_ERRORS = (401, 403, 413, 431, 500, 503)
"""Those of a route that tells what there is."""

JSON, EVENTS = "application/json", "text/event-stream"

Endpoint = Callable[..., Coroutine[Any, Any, Response]]


class RouteTable:
    """Declares routes, in the order in which they are looked up.

    Args:
        router: The application's. Routes stand in it directly: a router inside a router costs
            every request a second search.
    """

    def __init__(self, router: APIRouter) -> None:
        self._router = router

    def add(
        self,
        method: Literal["GET", "POST", "DELETE"],
        path: str,
        endpoint: Endpoint,
        answer: type[BaseModel] | None = None,
        errors: tuple[int, ...] = ERRORS,
        *,
        kinds: tuple[str, ...] = (JSON,),
        documented: bool = True,
    ) -> None:
        """Declares a route.

        Args:
            method: HTTP method.
            path: Path, with parameters in braces.
            endpoint: What answers.
            answer: The body of an answer with status 200, where it is one JSON object.
            errors: Statuses of its refusals.
            kinds: Media types of an answer with status 200; none where it is empty.
            documented: Whether the API's description names it.
        """
        responses: dict[int | str, dict[str, Any]] = {
            status: {"model": ErrorResponse} for status in errors
        }
        # A stream's events and a file's bytes are texts to the description, and no more.
        responses[200] = {
            "content": {kind: {"schema": {"type": "string"}} for kind in kinds if kind != JSON}
        }
        if answer is not None:
            responses[200]["model"] = answer
        self._router.add_api_route(
            path,
            endpoint,
            methods=[method],
            response_model=None,
            response_class=JSONResponse if JSON in kinds else Response,
            responses=responses,
            include_in_schema=documented,
        )


def methods_at(http: Request) -> list[str]:
    """All methods that the path of a request takes, in order of the alphabet."""
    found: set[str] = set()
    for route in http.app.router.routes:
        if isinstance(route, Route) and route.matches(http.scope)[0] is not Match.NONE:
            found |= route.methods or set()
    return sorted(found)


class Room(Protocol):
    """Routes that belong together, and what they share."""

    def declare(self, table: RouteTable) -> None:
        """Adds its routes."""
