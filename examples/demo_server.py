# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""A real ``trtllm-serve`` process on this machine: started, waited for, ended.

with LocalServer([str(model), "--no_enable_block_reuse"], Path("server.log")) as server:
    server.wait_until_ready()
    httpx.post(f"{server.url}/v1/chat/completions", ...)
"""

from __future__ import annotations

import os
import re
import signal
import ssl
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import httpx

COMMAND = Path(sys.executable).with_name("trtllm-serve")

_SERVING_AT = re.compile(r"^serving .* at (https?://\S+)$", re.MULTILINE)
_STOP_SECONDS = 30
_TAIL_LINES = 30


class ServerFailedError(RuntimeError):
    """A server that did not start. The message holds the end of its log."""


class LocalServer:
    """A server process, started by the constructor and ended with the ``with`` block.

    It takes a free port by itself. It runs in a session of its own: Ctrl-C in a terminal reaches
    only the program that started it, which then ends it here.

    Args:
        arguments: Checkpoint folder and options, as on the command line, without ``--port``.
        log: File for its output.
        verify: Whom to trust where the server speaks https.
        program: What takes these arguments.
        environment: Variables for it beside those of this process.
    """

    def __init__(
        self,
        arguments: Sequence[str],
        log: Path,
        verify: ssl.SSLContext | bool = True,
        *,
        program: Sequence[str] = (str(COMMAND),),
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._verify = verify
        self.command = [*program, *arguments, "--port", "0"]
        self.log = log
        with open(log, "wb") as output:
            self.process = subprocess.Popen(
                self.command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                env={**os.environ, **(environment or {})},
            )

    def __enter__(self) -> LocalServer:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def url(self) -> str:
        """Base URL.

        Raises:
            ServerFailedError: If the server has not said yet where it listens.
        """
        found = _SERVING_AT.search(self.log_text())
        if found is None:
            raise ServerFailedError(f"no address in the log:\n{self.log_tail()}")
        return found[1]

    def log_text(self) -> str:
        """All output so far."""
        return self.log.read_text(encoding="utf-8", errors="replace")

    def log_tail(self) -> str:
        """The last lines of the output."""
        return "\n".join(self.log_text().splitlines()[-_TAIL_LINES:])

    def wait_until_ready(self, seconds: float = 180) -> None:
        """Returns once ``/health`` answers 200.

        Raises:
            ServerFailedError: If the process ends or the time is up.
        """
        deadline = time.monotonic() + seconds
        while not self._is_ready():
            if self.process.poll() is not None:
                raise ServerFailedError(
                    f"trtllm-serve ended with status {self.process.returncode}:\n{self.log_tail()}"
                )
            if time.monotonic() > deadline:
                raise ServerFailedError(
                    f"trtllm-serve was not ready after {seconds:g} s:\n{self.log_tail()}"
                )
            time.sleep(0.1)

    def stop(self, number: signal.Signals = signal.SIGINT) -> int:
        """Sends a signal, waits for the end and gives the exit status; kills what does not end."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        try:
            return self.process.wait(_STOP_SECONDS)
        except BaseException:
            # Whatever cuts the waiting short, nothing of the session stays behind.
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
            raise

    def _is_ready(self) -> bool:
        if _SERVING_AT.search(self.log_text()) is None:
            return False
        try:
            # The address is on this machine, whatever proxy the environment names.
            response = httpx.get(
                f"{self.url}/health", trust_env=False, timeout=5, verify=self._verify
            )
            return response.status_code == 200
        except httpx.TransportError:
            return False
