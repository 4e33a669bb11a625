# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""The HTTP server around the application, and how it winds down.

After the first signal nothing new is taken, and running requests may finish. Those that have not
after the time of grace get an error, as do their streams, so every client hears how it ended.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import ssl
from collections.abc import Callable
from functools import partial
from types import FrameType

import uvicorn
from fastapi import FastAPI

from tensorrt_llm.serve.heap import settled_objects
from tensorrt_llm.serve.http_protocol import BoundedHttpProtocol
from tensorrt_llm.serve.limits import DEFAULT_MAX_HEADER_BYTES

FORCED_EXIT = 128 + signal.SIGINT

# After the engine has stopped, so long for the last errors to reach their clients.
_FAREWELL_SECONDS = 5


class HttpServer(uvicorn.Server):
    """Serves an application until a signal asks it to stop; a second Ctrl-C does not wait.

    Args:
        app: The application.
        stop_engine: Fails the requests that still run. May block; may be called more than once.
        grace_seconds: Time for running requests after the first signal.
        log_level: Level name of uvicorn.
        max_header_bytes: Most bytes of a header that are waited for.
        tls: Serve https with it.
    """

    def __init__(
        self,
        app: FastAPI,
        stop_engine: Callable[[], None],
        grace_seconds: int,
        log_level: str,
        max_header_bytes: int = DEFAULT_MAX_HEADER_BYTES,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                log_level=log_level,
                timeout_graceful_shutdown=grace_seconds + _FAREWELL_SECONDS,
                loop="uvloop",
                # Names, colons and ends of lines count here: the exact limit is the application's.
                http=partial(  # type: ignore[arg-type]  # a factory serves as well as a class
                    BoundedHttpProtocol, 2 * max_header_bytes
                ),
                ws="none",
                ssl_context_factory=None if tls is None else lambda _config, _default: tls,
            )
        )
        self._stop_engine = stop_engine
        self._grace_seconds = grace_seconds

    def serve_until_stopped(self, sockets: list[socket.socket]) -> None:
        """Serves on bound sockets; returns after a signal.

        Raises:
            OSError: If a socket cannot listen.
        """
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._signalled)
        with settled_objects():
            self.run(sockets=sockets)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Winds down."""
        loop = asyncio.get_running_loop()
        end_of_grace = loop.call_later(
            self._grace_seconds, loop.run_in_executor, None, self._stop_engine
        )
        try:
            await super().shutdown(sockets)
        finally:
            end_of_grace.cancel()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Takes a signal while serving."""
        super().handle_exit(sig, frame)
        if self.force_exit:
            # Asked twice: nothing is waited for, neither requests nor work in other threads.
            os._exit(FORCED_EXIT)

    def _signalled(self, number: int, frame: FrameType | None) -> None:
        # While it serves, the base class handles signals; it sends them again when it is done,
        # and by then they have been obeyed.
        if not self.started:
            raise SystemExit(0)
