# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""The engine's process as its owner sees it: forked by a host, watched, killed if need be."""

from __future__ import annotations

import contextlib
import os
import signal

from tensorrt_llm.executor.host_process import HostProcess, StopSignal
from tensorrt_llm.executor.ipc import Channel, Listener
from tensorrt_llm.executor.messages import ToDoor, ToEngine


class EngineProcess:
    """A forked engine and the connection to it. All calls come from one thread.

    Attributes:
        pid: Its process.
        descriptor: Readable once the process has ended.
        channel: The connection.

    Args:
        host: Forks it.
        stop: Cuts waiting for the host short.
        seconds: Most seconds to wait for the host.

    Raises:
        EngineError: If the host has ended, or does not answer.
        StopRequestedError: If waiting was cut short.
    """

    def __init__(self, host: HostProcess, stop: StopSignal, seconds: float) -> None:
        self._host = host
        self._listener = listener = Listener()
        try:
            with listener.theirs as theirs:
                self.pid, self.descriptor = host.launch(listener.folder, theirs, stop, seconds)
        except BaseException:
            listener.close()
            raise
        self.channel: Channel[ToEngine, ToDoor] = listener.channel()

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
