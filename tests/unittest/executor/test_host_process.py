# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""The process that engines are forked from, asked directly."""

from __future__ import annotations

import os
import signal

import psutil
import pytest
from support.engine import wait_until
from support.wire import receive

from tensorrt_llm.executor.engine_process import EngineProcess
from tensorrt_llm.executor.host_process import HostProcess, StopRequestedError, StopSignal
from tensorrt_llm.executor.messages import PROTOCOL, EngineConnected


def test_a_launch_that_was_given_up_is_nobody_elses(engine_host: HostProcess) -> None:
    """Its answer is still in the connection when the next one is asked for."""
    stop = StopSignal()
    engine_host.wait_until_ready(stop, 60)
    others = set(psutil.Process(engine_host.pid).children())
    before = set(os.listdir("/proc/self/fd"))
    os.kill(engine_host.pid, signal.SIGSTOP)
    stop.set()
    with pytest.raises(StopRequestedError):
        EngineProcess(engine_host, stop, 60)
    stop.close()
    os.kill(engine_host.pid, signal.SIGCONT)
    going = StopSignal()
    engine = EngineProcess(engine_host, going, 60)
    try:
        assert receive(engine.channel) == EngineConnected(PROTOCOL)
        (ours,) = (
            process
            for process in psutil.Process(engine_host.pid).children()
            if process.pid == engine.pid
        )
        engine.kill()
        wait_until(lambda: not ours.is_running(), "the one that is killed is the one that runs")
        assert "signal 9" in engine.how_it_ended()
    finally:
        engine.close()
        going.close()
    wait_until(
        lambda: set(psutil.Process(engine_host.pid).children()) <= others,
        "the one given up ends by itself",
    )
    assert len(os.listdir("/proc/self/fd")) <= len(before), "no descriptor is left"
