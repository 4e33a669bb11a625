# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Refuses request bodies over a limit before they take memory."""

from __future__ import annotations

from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tensorrt_llm.serve.errors import error_response


class BodyLimit:
    """ASGI middleware that answers 413 to a body of more than ``max_bytes``.

    A declared length is judged before the first byte is read; an undeclared or untruthful one as
    soon as the limit is passed.
    """

    def __init__(self, app: ASGIApp, max_bytes: int) -> None:
        self._app = app
        self._max_bytes = max_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handles one connection's request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        declared = dict(scope["headers"]).get(b"content-length", b"0")
        # The protocol implementation below has already refused a length that is no number.
        if int(declared) > self._max_bytes:
            await error_response(self._too_large(int(declared)))(scope, receive, send)
            return
        received = 0

        async def counted() -> Message:
            nonlocal received
            message = await receive()
            received += len(message.get("body", b""))
            if received > self._max_bytes:
                raise self._too_large(received)
            return message

        await self._app(scope, counted, send)

    def _too_large(self, size: int) -> HTTPException:
        return HTTPException(
            413,
            f"a request body of {size} bytes exceeds max_request_bytes ({self._max_bytes} bytes)",
            # What is left of the body is not read, so the connection cannot be used again.
            headers={"Connection": "close"},
        )
