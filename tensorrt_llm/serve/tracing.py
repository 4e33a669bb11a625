# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""What a request spends its time on, noted while it is answered and told to a tracer at its end.

Nothing is noted where nobody traces. Notes are plain numbers; `trace_export` makes spans of them.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Protocol

from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tensorrt_llm.executor.result import GenerationResult

_KEY = "trtllm.trace"
_PREFIX = "/v1/"


@dataclass
class RequestTrace:
    """Notes on one HTTP request; times in seconds of ``time.monotonic``.

    Attributes:
        headers: Of the request, names in lower case.
        began: When it came.
        stages: Name, begin and end of what the door did.
        results: What the engine was asked.
        ended: When the last byte of the answer was sent.
        method: Of the request.
        route: As the application declares it.
        status: Of the answer; 0 if there was none.
    """

    headers: Mapping[str, str]
    began: float
    stages: list[tuple[str, float, float]] = field(default_factory=list)
    results: list[GenerationResult] = field(default_factory=list)
    ended: float = 0.0
    method: str = ""
    route: str = ""
    status: int = 0


class Tracer(Protocol):
    """Takes the notes of a request that was answered; must not wait or raise."""

    def request_ended(self, trace: RequestTrace) -> None:
        """Takes them."""


@contextmanager
def staged(http: Request, name: str) -> Iterator[None]:
    """Notes how long the block takes, if the request is traced."""
    trace: RequestTrace | None = http.scope.get(_KEY)
    if trace is None:
        yield
        return
    began = time.monotonic()
    try:
        yield
    finally:
        trace.stages.append((name, began, time.monotonic()))


def note_results(http: Request, results: Sequence[GenerationResult]) -> None:
    """Notes what the engine was asked, if the request is traced."""
    trace: RequestTrace | None = http.scope.get(_KEY)
    if trace is not None:
        trace.results.extend(results)


class TraceRequests:
    """Has each POST below ``/v1/`` noted and told.

    Args:
        app: The application.
        tracer: Whom to tell.
    """

    def __init__(self, app: ASGIApp, tracer: Tracer) -> None:
        self._app = app
        self._tracer = tracer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers one request."""
        wanted = scope["type"] == "http" and scope["method"] == "POST"
        if not wanted or not scope["path"].startswith(_PREFIX):
            return await self._app(scope, receive, send)
        headers = {
            name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]
        }
        trace = scope[_KEY] = RequestTrace(headers, time.monotonic(), method=scope["method"])

        async def noted(message: Message) -> None:
            if message["type"] == "http.response.start":
                trace.status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, noted)
        finally:
            trace.ended = time.monotonic()
            # Only what the application declares: paths are the caller's to invent.
            trace.route = getattr(scope.get("route"), "path", "other")
            self._tracer.request_ended(trace)
