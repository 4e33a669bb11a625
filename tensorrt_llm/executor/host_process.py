# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""The engines' host as its owner sees it. Importing this is quick, so a host can be started first.

What it imports takes seconds, and so does what the owner imports: started early, both do it at the
same time.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import msgspec

from tensorrt_llm.errors import EngineError
from tensorrt_llm.executor import engine_host
from tensorrt_llm.executor.engine_host import (
    MAX_MESSAGE,
    Ended,
    FromHost,
    HostReady,
    Launch,
    Launched,
)

# How long a process that has ended may take to be reported by its parent.
_REPORT_SECONDS = 1.0
_PACKAGE_ROOT = Path(__file__).resolve().parents[2]


class StopRequestedError(Exception):
    """Waiting was cut short: the owner wants to end."""


class StopSignal:
    """Cuts waiting short. ``set`` may be called from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.descriptor = os.eventfd(0)

    def set(self) -> None:
        """From now on ``wait_for`` raises."""
        with self._lock:
            if self.descriptor >= 0:
                os.eventfd_write(self.descriptor, 1)

    def close(self) -> None:
        """Nobody waits any more."""
        with self._lock:
            os.close(self.descriptor)
            self.descriptor = -1

    def wait_for(self, descriptor: int | None, seconds: float | None) -> bool:
        """Waits until a descriptor is readable.

        Args:
            descriptor: The descriptor; None just waits.
            seconds: Most seconds to wait; None waits for ever.

        Returns:
            Whether it is readable.

        Raises:
            StopRequestedError: If ``set`` was called.
        """
        poll = select.poll()
        poll.register(self.descriptor, select.POLLIN)
        if descriptor is not None:
            poll.register(descriptor, select.POLLIN)
        ready = {entry for entry, _ in poll.poll(None if seconds is None else 1e3 * seconds)}
        if self.descriptor in ready:
            raise StopRequestedError
        return bool(ready)


class HostProcess:
    """The process that engines are forked from. The constructor does not wait for it.

    The thread that makes it must live as long as it shall, for the kernel ends it with that
    thread. Calls may come from several threads; they are served one after the other.

    Args:
        module: What it runs, instead of the package's own host: a module that ends in
            ``engine_host.main`` with an engine of another kind.

    Raises:
        EngineError: If it cannot be started.
    """

    def __init__(self, module: str = engine_host.__name__) -> None:
        self._lock = threading.Lock()
        self._ready = False
        self._statuses: dict[int, int] = {}
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            with theirs:
                words = [str(theirs.fileno()), str(os.getpid())]
                self._process = subprocess.Popen(
                    [sys.executable, "-m", module, *words],
                    pass_fds=[theirs.fileno()],
                    stdin=subprocess.DEVNULL,
                    env=_environment(),
                    # A folder with Python files in it would come before the installed packages.
                    cwd="/",
                    # A terminal's Ctrl-C is for the door.
                    start_new_session=True,
                )
        except OSError as error:
            self._control.close()
            raise EngineError(f"no engine process can be started: {error.strerror}") from error

    def __enter__(self) -> HostProcess:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def pid(self) -> int:
        """Its process."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Whether it can fork engines, or will once it is ready."""
        return self._process.poll() is None

    def wait_until_ready(self, stop: StopSignal, seconds: float) -> None:
        """Waits until it can fork engines at once.

        Args:
            stop: Cuts waiting short.
            seconds: Most seconds to wait.

        Raises:
            EngineError: If it has ended, or is not ready in time; it is ended then.
            StopRequestedError: If waiting was cut short.
        """
        with self._lock:
            while not self._ready:
                message, _ = self._receive(stop, seconds)
                self._ready = isinstance(message, HostReady)

    def launch(
        self, folder: str, segments: socket.socket, stop: StopSignal, seconds: float
    ) -> tuple[int, int]:
        """Forks an engine.

        Args:
            folder: Where the addresses of its connection are.
            segments: Its end of a socket pair.
            stop: Cuts waiting short.
            seconds: Most seconds to wait.

        Returns:
            The process and a descriptor of it, which is readable once it has ended.

        Raises:
            EngineError: If the host has ended, or does not answer; it is ended then.
            StopRequestedError: If waiting was cut short.
        """
        message = engine_host.encode(Launch(folder))
        with self._lock:
            try:
                socket.send_fds(self._control, [message], [segments.fileno()])
            except OSError as error:
                raise EngineError(f"the engine's host is gone: {error.strerror}") from error
            while True:
                answer, received = self._receive(stop, seconds)
                if isinstance(answer, Launched) and answer.folder == folder:
                    return answer.pid, received[0]
                _close(received)  # of a launch that was given up

    def how_it_ended(self, pid: int) -> str:
        """Says how an engine ended."""
        end = time.monotonic() + _REPORT_SECONDS
        with self._lock, contextlib.suppress(EngineError):  # the host may have ended as well
            while pid not in self._statuses:
                left = max(end - time.monotonic(), 0)
                if not select.select([self._control], [], [], left)[0]:
                    break
                _close(self._take()[1])
        status = self._statuses.get(pid)
        if status is None:
            return "ended"
        if status < 0:
            return f"was ended by signal {-status} ({signal.Signals(-status).name})"
        return f"ended with status {status}"

    def close(self) -> None:
        """Ends it, and its engines with it. May be called again."""
        self._control.close()
        self._process.kill()
        self._process.wait()

    def _receive(self, stop: StopSignal, seconds: float) -> tuple[FromHost, list[int]]:
        if not stop.wait_for(self._control.fileno(), seconds):
            self._process.kill()
            raise EngineError(f"the engine's host process did not answer within {seconds:g} s")
        return self._take()

    def _take(self) -> tuple[FromHost, list[int]]:
        try:
            data, descriptors, _, _ = socket.recv_fds(self._control, MAX_MESSAGE, 1)
        except OSError:
            data, descriptors = b"", []
        if not data:
            status = self._process.wait()
            raise EngineError(f"the engine's host process ended with status {status}")
        message = msgspec.json.decode(data, type=FromHost)
        if isinstance(message, Ended):
            self._statuses[message.pid] = message.status
        return message, descriptors


def _close(descriptors: list[int]) -> None:
    for descriptor in descriptors:
        os.close(descriptor)


def _environment() -> dict[str, str]:
    paths = [str(_PACKAGE_ROOT), os.environ.get("PYTHONPATH", "")]
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, paths)),
        # numpy's pool of threads, which the engine has no use for, would be there to be forked.
        "OPENBLAS_NUM_THREADS": "1",
    }
