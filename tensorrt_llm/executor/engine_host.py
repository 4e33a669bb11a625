# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""The process that engines are forked from: it has imported all that an engine needs, and no more.

Importing takes seconds, and a fork of a process that has nothing but imports behind it (no thread,
no model, no device) takes milliseconds: that is what makes a dead engine come back at once. The
server's own process, with its threads and locks, is never forked.

    python -m tensorrt_llm.executor.engine_host CONTROL_DESCRIPTOR PARENT_PID

| door to host | host to door |
|---|---|
| | ``HostReady`` |
| ``Launch``, with the engine's end of a socket pair | ``Launched``, with a process descriptor |
| | ``Ended`` |
| hangs up: the host and its engine end | |
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import select
import signal
import socket
import sys
import traceback
from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

import msgspec

_PR_SET_PDEATHSIG = 1
MAX_MESSAGE = 4096
"""Most bytes of a message between door and host."""


class Launch(msgspec.Struct, tag=True):
    """Fork an engine that connects to the addresses in a folder."""

    folder: str


class HostReady(msgspec.Struct, tag=True):
    """All is imported."""


class Launched(msgspec.Struct, tag=True):
    """An engine was forked.

    Attributes:
        pid: Its process.
        folder: That of the ``Launch``.
    """

    pid: int
    folder: str


class Ended(msgspec.Struct, tag=True):
    """An engine ended, with a status as of ``os.waitstatus_to_exitcode``."""

    pid: int
    status: int


FromHost: TypeAlias = HostReady | Launched | Ended

encode = msgspec.json.encode


def die_with_parent(parent: int) -> None:
    """Has the kernel kill this process when the thread that started it ends.

    Args:
        parent: Id that the parent had; if it has ended already, so does this process.
    """
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)


class EngineHost:
    """Forks engines when told so, and tells how they end.

    Args:
        control: Connection to the door.
        run: What an engine does; gives its exit status.
    """

    def __init__(self, control: socket.socket, run: Callable[[str, socket.socket], int]) -> None:
        self._control = control
        self._run = run
        self._engines: dict[int, int] = {}  # process descriptor to id
        self._poll = select.poll()
        self._poll.register(control, select.POLLIN)

    def serve(self) -> None:
        """Returns when the door hangs up."""
        while True:
            for descriptor, _ in self._poll.poll():
                if descriptor in self._engines:
                    self._reap(descriptor)
                elif not self._obey():
                    return

    def _obey(self) -> bool:
        data, descriptors, _, _ = socket.recv_fds(self._control, MAX_MESSAGE, 1)
        if not data:
            return False
        launch = msgspec.json.decode(data, type=Launch)
        segments = socket.socket(fileno=descriptors[0])
        host = os.getpid()
        pid = os.fork()
        if pid == 0:
            self._become_engine(launch.folder, segments, host)
        segments.close()
        descriptor = os.pidfd_open(pid)
        self._engines[descriptor] = pid
        self._poll.register(descriptor, select.POLLIN)
        socket.send_fds(self._control, [encode(Launched(pid, launch.folder))], [descriptor])
        return True

    def _become_engine(self, folder: str, segments: socket.socket, host: int) -> None:
        """Does not return: nothing of the host's own stack may run in its child."""
        status = 1
        try:
            die_with_parent(host)
            self._control.close()
            status = self._run(folder, segments)
        except BaseException:
            traceback.print_exc()
        finally:
            for stream in (sys.stdout, sys.stderr):
                with contextlib.suppress(OSError, ValueError):
                    stream.flush()
            os._exit(status)

    def _reap(self, descriptor: int) -> None:
        self._poll.unregister(descriptor)
        pid = self._engines.pop(descriptor)
        os.close(descriptor)
        _, status = os.waitpid(pid, 0)
        self._control.send(encode(Ended(pid, os.waitstatus_to_exitcode(status))))


def main(load: Callable[..., Any] | None = None) -> None:
    """Imports, says so, and serves.

    Args:
        load: Stands in for ``worker.load_engine``.
    """
    control, parent = int(sys.argv[1]), int(sys.argv[2])
    # Ctrl-C is for the door, which then says what is to be done.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    die_with_parent(parent)
    from tensorrt_llm.executor import worker_main

    run = partial(worker_main.run, load=load) if load else worker_main.run
    # What is there now is there for good; not touching it keeps its pages shared with the engines.
    gc.collect()
    gc.freeze()
    with socket.socket(fileno=control) as connection:
        connection.send(encode(HostReady()))
        # The door is gone if it cannot be told.
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            EngineHost(connection, run).serve()


if __name__ == "__main__":
    main()
