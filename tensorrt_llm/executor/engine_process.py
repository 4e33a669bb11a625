# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""The engine's process as its owner sees it: started through a host, watched, killed if need be.

All of this belongs to one thread, which must live as long as the processes: the kernel ends them
with the thread that started them.
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
from tensorrt_llm.executor.engine_host import Ended, FromHost, HostReady, Launch, Launched
from tensorrt_llm.executor.ipc import Channel, Listener
from tensorrt_llm.executor.messages import ToDoor, ToEngine

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


class EngineProcess:
    """A forked engine and the connection to it.

    Attributes:
        pid: Its process.
        descriptor: Readable once the process has ended.
        channel: The connection.
    """

    def __init__(self, pid: int, descriptor: int, listener: Listener, host: HostProcess) -> None:
        self.pid = pid
        self.descriptor = descriptor
        self.channel: Channel[ToEngine, ToDoor] = listener.channel()
        self._listener = listener
        self._host = host

    def connected(self) -> None:
        """Takes the addresses away, which nobody needs any more."""
        self._listener.remove_folder()

    def kill(self) -> None:
        """Ends the process, whatever it does."""
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self.descriptor, signal.SIGKILL)

    def how_it_ended(self) -> str:
        """Says how, once it has."""
        return self._host.how_it_ended(self.pid)

    def close(self) -> None:
        """Ends the process if it has not, and the connection."""
        self.kill()
        # Its parent takes note of the end; without that it would stay in the list of processes.
        self.how_it_ended()
        self._listener.remove_folder()
        self.channel.close()
        os.close(self.descriptor)


class HostProcess:
    """The process that engines are forked from. Starting it takes seconds.

    Args:
        stop: Cuts waiting short.

    Raises:
        EngineError: If it cannot be started.
        StopRequestedError: If waiting was cut short.
    """

    def __init__(self, stop: StopSignal) -> None:
        self._stop = stop
        self._statuses: dict[int, int] = {}
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            with theirs:
                words = [str(theirs.fileno()), str(os.getpid())]
                self._process = subprocess.Popen(
                    [sys.executable, "-m", engine_host.__name__, *words],
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
        try:
            message, _ = self._receive()
            assert isinstance(message, HostReady)
        except BaseException:
            self.close()
            raise

    @property
    def alive(self) -> bool:
        """Whether it can fork engines."""
        return self._process.poll() is None

    def launch(self) -> EngineProcess:
        """Forks an engine.

        Raises:
            EngineError: If the host has ended.
            StopRequestedError: If waiting was cut short.
        """
        listener = Listener()
        try:
            with listener.theirs:
                message = engine_host.encode(Launch(listener.folder))
                descriptors = [listener.theirs.fileno()]
                try:
                    socket.send_fds(self._control, [message], descriptors)
                except OSError as error:
                    raise EngineError(f"the engine's host is gone: {error.strerror}") from error
            answer = None
            while not isinstance(answer, Launched):
                answer, received = self._receive()
        except BaseException:
            listener.close()
            raise
        return EngineProcess(answer.pid, received[0], listener, self)

    def how_it_ended(self, pid: int) -> str:
        """Says how an engine ended."""
        end = time.monotonic() + _REPORT_SECONDS
        try:
            while pid not in self._statuses:
                left = max(end - time.monotonic(), 0)
                if not select.select([self._control], [], [], left)[0]:
                    break
                self._take()
        except EngineError:  # the host has ended as well
            pass
        status = self._statuses.get(pid)
        if status is None:
            return "ended"
        if status < 0:
            return f"was ended by signal {-status} ({signal.Signals(-status).name})"
        return f"ended with status {status}"

    def close(self) -> None:
        """Ends it, and its engines with it."""
        self._control.close()
        self._process.kill()
        self._process.wait()

    def _receive(self) -> tuple[FromHost, list[int]]:
        self._stop.wait_for(self._control.fileno(), None)
        return self._take()

    def _take(self) -> tuple[FromHost, list[int]]:
        try:
            data, descriptors, _, _ = socket.recv_fds(self._control, 4096, 1)
        except OSError:
            data, descriptors = b"", []
        if not data:
            status = self._process.wait()
            raise EngineError(f"the engine's host process ended with status {status}")
        message = msgspec.json.decode(data, type=FromHost)
        if isinstance(message, Ended):
            self._statuses[message.pid] = message.status
        return message, descriptors


def _environment() -> dict[str, str]:
    paths = [str(_PACKAGE_ROOT), os.environ.get("PYTHONPATH", "")]
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, paths)),
        # numpy's pool of threads, which the engine has no use for, would be there to be forked.
        "OPENBLAS_NUM_THREADS": "1",
    }
