# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""The engine's end of the connection, with a real engine behind it, in a thread of this process."""

from __future__ import annotations

import logging
import threading
from pathlib import Path

from support.engine import wait_until
from support.wire import connected, receive

from tensorrt_llm.executor.messages import (
    Alive,
    EngineReady,
    EngineStopped,
    StartEngine,
    StopEngine,
    Turn,
)
from tensorrt_llm.executor.worker_main import EngineServer
from tensorrt_llm.llmapi.llm_args import LlmArgs
from tensorrt_llm.logger import ROOT_NAME


def test_a_step_that_takes_long_is_no_silence(llama_checkpoint: Path) -> None:
    args = LlmArgs(model=str(llama_checkpoint), kv_cache_config={"max_tokens": 256}, device="cpu")
    level = logging.getLogger(ROOT_NAME).getEffectiveLevel()
    with connected() as (door, engine):
        server = EngineServer(engine)
        thread = threading.Thread(target=server.run)
        thread.start()
        door.send(StartEngine(args.model_dump_json().encode(), level, None))
        assert isinstance(receive(door, 60), EngineReady)
        gate = threading.Event()
        blocked = server._engine.loop.call(gate.wait)
        wait_until(blocked.running, "the loop is held up")
        heard: list[type] = []
        while heard[-3:] != [Alive] * 3:
            heard.append(type(receive(door, 60)))
        assert set(heard) <= {Alive, Turn}
        gate.set()
        door.send(StopEngine())
        while not isinstance(receive(door, 60), EngineStopped):
            pass
        thread.join(60)
        assert not thread.is_alive()
