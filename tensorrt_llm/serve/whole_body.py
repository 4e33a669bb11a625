# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Gives the application a JSON body in one piece.

Nothing can be done with a part of one, and media in base64 makes them megabytes. uvicorn hands on
what has come, stops reading until the application has asked for more, and copies each piece twice;
here pieces are kept until the last has come, and copied once.
"""

from __future__ import annotations

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol


class WholeBodyProtocol(HttpToolsProtocol):
    """One connection.

    A body without a declared length comes piece by piece, as uvicorn gives it: only of a declared
    one it is known beforehand that it is not too large (`body_limit`).
    """

    _pieces: list[bytes] | None = None

    def on_headers_complete(self) -> None:
        """The head is whole; the application begins, and asks for the body."""
        super().on_headers_complete()
        headers = dict(self.headers)
        is_json = headers.get(b"content-type", b"").startswith(b"application/json")
        self._pieces = [] if is_json and b"content-length" in headers else None

    def on_body(self, body: bytes) -> None:
        """A piece is there."""
        if self._pieces is None or self.cycle.response_complete:
            super().on_body(body)
        else:
            self._pieces.append(body)

    def on_message_complete(self) -> None:
        """The last piece was there."""
        if self._pieces:
            whole = self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)
            # The application is given bytes made of it, and of bytes these are the same ones.
            self.cycle.body = whole  # type: ignore[assignment]
        self._pieces = None
        super().on_message_complete()
