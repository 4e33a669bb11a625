# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""uvicorn's fast protocol, with the bounds on what a client sends that it lacks.

The parser keeps what it has of a head until it is whole. Here a client that sends one without an
end, or never gets to the end of it, is answered and hung up on; so is one that stops in a body.
"""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from typing import Any

from starlette.exceptions import HTTPException

from tensorrt_llm.serve.errors import error_response
from tensorrt_llm.serve.whole_body import WholeBodyProtocol

HEAD_SECONDS = 60.0
"""From the connection on, or the first byte of a further request, so long for a head."""

BODY_SECONDS = 60.0
"""In any such time, a body must go on."""

# A client that is hung up on over TLS may say goodbye, and most idle ones never do.
_GOODBYE_SECONDS = 1.0


class BoundedHttpProtocol(WholeBodyProtocol):
    """One connection.

    Args:
        max_head_bytes: Most bytes of a head that are waited for.
        head_seconds: Most seconds for a head.
        body_seconds: Most seconds in which nothing of a body comes.
        kwargs: As uvicorn gives them.
    """

    def __init__(
        self,
        max_head_bytes: int,
        head_seconds: float = HEAD_SECONDS,
        body_seconds: float = BODY_SECONDS,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self._max_head_bytes = max_head_bytes
        self._head_seconds = head_seconds
        self._head_bytes = 0
        self._head_end: asyncio.TimerHandle | None = None
        self._body_seconds = body_seconds
        # Set while a body is on its way.
        self._body_look: asyncio.TimerHandle | None = None
        self._body_came = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """A client is there."""
        super().connection_made(transport)
        self._expect_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """It is gone."""
        self._head_is_whole()
        self._body_is_whole()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parses what came, and counts it where it may be no more than a part of a head."""
        super().data_received(data)
        if self._head_end is None:
            return
        self._head_bytes += len(data)
        if self._head_bytes > self._max_head_bytes:
            self._refuse(
                HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE,
                f"the headers do not end within {self._max_head_bytes} bytes",
            )

    def on_message_begin(self) -> None:
        """The first byte of a request is there."""
        super().on_message_begin()
        if self._head_end is None:
            self._expect_head()

    def on_headers_complete(self) -> None:
        """The head is whole."""
        self._head_is_whole()
        super().on_headers_complete()
        self._expect_body()

    def on_body(self, body: bytes) -> None:
        """A piece of a body is there."""
        self._body_came = True
        super().on_body(body)

    def on_message_complete(self) -> None:
        """The request is whole."""
        self._body_is_whole()
        super().on_message_complete()

    def shutdown(self) -> None:
        """The server winds down."""
        super().shutdown()
        if self.transport.is_closing():
            self._do_not_wait()

    def send_400_response(self, msg: str) -> None:
        """Answers what is no HTTP."""
        self._refuse(HTTPStatus.BAD_REQUEST, "what was sent is no valid HTTP request")

    def _expect_head(self) -> None:
        self._head_bytes = 0
        self._head_end = self.loop.call_later(self._head_seconds, self._head_is_late)

    def _head_is_whole(self) -> None:
        if self._head_end is not None:
            self._head_end.cancel()
            self._head_end = None

    def _head_is_late(self) -> None:
        self._refuse(
            HTTPStatus.REQUEST_TIMEOUT,
            f"the headers were not there after {self._head_seconds:g} s",
        )

    def _expect_body(self) -> None:
        self._body_came = False
        self._body_look = self.loop.call_later(self._body_seconds, self._look_for_body)

    def _body_is_whole(self) -> None:
        if self._body_look is not None:
            self._body_look.cancel()
            self._body_look = None

    def _look_for_body(self) -> None:
        # While the application reads slower than the client sends, nothing comes either.
        if self._body_came or self.flow.read_paused:
            self._expect_body()
        elif self.cycle.response_started:
            self.transport.close()
        else:
            self._refuse(
                HTTPStatus.REQUEST_TIMEOUT,
                f"nothing came of the body for {self._body_seconds:g} s",
            )

    def _refuse(self, status: HTTPStatus, reason: str) -> None:
        """Answers and hangs up; nothing that still comes is looked at."""
        self._head_is_whole()
        self._body_is_whole()
        if self.transport.is_closing():
            return
        answer = error_response(HTTPException(status, reason, headers={"Connection": "close"}))
        head = [f"HTTP/1.1 {status.value} {status.phrase}".encode()]
        head += [b"%b: %b" % header for header in answer.raw_headers]
        self.transport.write(b"\r\n".join([*head, b"", bytes(answer.body)]))
        self.transport.close()
        self._do_not_wait()

    def _do_not_wait(self) -> None:
        self.loop.call_later(_GOODBYE_SECONDS, self.transport.abort)
