# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""uvicorn with a protocol of ours, for tests that write to its socket byte by byte."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any

import uvicorn


@contextlib.contextmanager
def listening(app: Callable[..., Any], protocol: Callable[..., Any]) -> Iterator[int]:
    """Gives the port of a server in a thread of this process.

    Args:
        app: An ASGI application.
        protocol: Makes the protocol of a connection from what uvicorn gives.
    """
    config = uvicorn.Config(
        app,
        http=protocol,  # type: ignore[arg-type]
        loop="uvloop",
        ws="none",
        lifespan="off",
        log_level="critical",
    )
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        bound.listen()
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, args=([bound],))
        thread.start()
        try:
            yield bound.getsockname()[1]
        finally:
            # A test that failed may have left connections, which are not waited for.
            server.should_exit = server.force_exit = True
            thread.join()
