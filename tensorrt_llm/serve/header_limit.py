# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Refuses requests whose headers are over a limit."""

from __future__ import annotations

from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Receive, Scope, Send

from tensorrt_llm.serve.errors import error_response


class HeaderLimit:
    """ASGI middleware that answers 431 to headers of more than ``max_bytes``, the path included.

    The protocol below stops reading an endless header; this one is exact.
    """

    def __init__(self, app: ASGIApp, max_bytes: int) -> None:
        self._app = app
        self._max_bytes = max_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handles one connection's request."""
        if scope["type"] == "http":
            size = len(scope.get("raw_path") or b"") + len(scope["query_string"])
            size += sum(len(name) + len(value) for name, value in scope["headers"])
            if size > self._max_bytes:
                await error_response(self._too_large(size))(scope, receive, send)
                return
        await self._app(scope, receive, send)

    def _too_large(self, size: int) -> HTTPException:
        return HTTPException(
            431,
            f"request headers of {size} bytes exceed max_header_bytes ({self._max_bytes} bytes)",
            headers={"Connection": "close"},
        )
