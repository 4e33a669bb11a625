# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""The engine's process: obeys the door's messages, and tells it once a turn what that brought.

The main thread reads messages; the loop has a thread of its own, as in a single process, and it is
the loop that sends: what the door hears of is what the loop has done. The process ends when the
door does.
"""

from __future__ import annotations

import logging
import os
import select
import shutil
import socket
import threading
import time
from collections.abc import Callable, Collection
from functools import partial
from typing import Any

import zmq

from tensorrt_llm import logger
from tensorrt_llm._torch.pyexecutor.llm_request import LlmRequest
from tensorrt_llm.executor.ipc import Channel, connect
from tensorrt_llm.executor.messages import (
    PROTOCOL,
    Alive,
    Call,
    Cancel,
    EncodeItems,
    EngineConnected,
    EngineReady,
    EngineStopped,
    FailItems,
    Failure,
    LoadAdapter,
    ProvideItem,
    RequestItems,
    Return,
    StartEngine,
    StartFailed,
    StopEngine,
    Submit,
    ToDoor,
    ToEngine,
    Turn,
    UnloadAdapter,
    Update,
)
from tensorrt_llm.executor.result import GenerationUpdate
from tensorrt_llm.executor.worker import LoadedEngine, load_engine
from tensorrt_llm.llmapi.llm_args import LlmArgs

_POLL_MS = 500
_ALIVE_SECONDS = 1.0

_logger = logger.get_logger(__name__)


def run(
    folder: str, segments: socket.socket, load: Callable[..., LoadedEngine] = load_engine
) -> int:
    """Serves one door to the end; gives the exit status.

    Args:
        folder: Where the addresses of the connection are.
        segments: This end of the socket pair.
        load: As ``load_engine``.
    """
    _end_with_the_door(segments.fileno(), folder)
    channel = connect(folder, segments)
    channel.send(EngineConnected(PROTOCOL))
    try:
        return EngineServer(channel, load).run()
    finally:
        channel.close(flush=True)


class EngineServer:
    """Runs an engine for the other end of a channel.

    Args:
        channel: This end.
        load: Gives the engine, as ``load_engine``.
    """

    def __init__(
        self, channel: Channel[ToDoor, ToEngine], load: Callable[..., LoadedEngine] = load_engine
    ) -> None:
        self._channel = channel
        self._load = load
        self._poller = zmq.Poller()
        self._poller.register(channel.receiver, zmq.POLLIN)
        self._updates: list[Update] = []
        self._taken = 0
        self._stopped = False
        self._engine: LoadedEngine

    def run(self) -> int:
        """Loads what the first message says and serves until told to stop, or the loop ends."""
        first = None
        while first is None:
            self._poller.poll()
            first = self._channel.receive()
        if not isinstance(first, StartEngine):
            return 0
        # Level and terminal are the door's; a name for each number is not needed.
        logger.configure()
        logging.getLogger(logger.ROOT_NAME).setLevel(first.log_level)
        try:
            args = LlmArgs.model_validate_json(first.args)
            self._engine = self._load(
                args, self._request_items, self._end_turn, tokenizer=lambda: first.tokenizer
            )
        except Exception as error:
            _logger.debug("the engine cannot start", exc_info=error)
            self._channel.send(StartFailed(Failure.of(error, "the engine cannot start")))
            return 1
        self._channel.send(EngineReady(self._engine.info))
        self._engine.loop.start()
        told = time.monotonic()
        while self._engine.loop.alive and not self._stopped:
            self._poller.poll(_POLL_MS)
            if time.monotonic() - told >= _ALIVE_SECONDS:
                self._channel.send(Alive())
                told = time.monotonic()
            while (message := self._channel.receive()) is not None:
                self._obey(message)
        return 0 if self._stopped else 1

    def _obey(self, message: ToEngine) -> None:
        loop = self._engine.loop
        match message:
            case Submit():
                self._submit(message)
            case Cancel():
                loop.cancel(message.request_id)
            case ProvideItem():
                loop.provide_items(message.request_id, {message.index: message.inputs})
            case FailItems():
                error = message.failure.error()
                loop.fail(message.request_id, "preparing its media", error)
            case Call():
                loop.call(partial(self._answer, message))
            case EncodeItems():
                loop.call(partial(self._encode, message))
            case LoadAdapter():
                # Here, so that requests that are sent behind it find it.
                self._return(
                    message.call_id, "load_adapter", partial(self._load_adapter, message.path)
                )
            case UnloadAdapter():
                unload = partial(self._engine.unload_adapter, message.adapter)
                self._return(message.call_id, "unload_adapter", unload)
            case StopEngine():
                loop.stop()
                self._stopped = True
                self._channel.send(EngineStopped())
            case StartEngine():
                _logger.error("told to start a second time")

    def _submit(self, message: Submit) -> None:
        push = partial(self._collect, message.request_id)
        try:
            self._engine.submit(message.request_id, message.resolved(), push)
        except Exception as error:
            _logger.error("request %d cannot be taken", message.request_id, exc_info=error)
            failure = Failure.of(error, "the request cannot be taken")
            self._engine.loop.call(partial(push, GenerationUpdate(error=failure.error())))
        # After the request is counted as waiting: twice for a moment rather than not at all.
        self._taken += 1

    def _answer(self, call: Call) -> None:
        """In the loop's thread."""
        ask = getattr(self._engine.loop, f"{call.name}_now")
        self._return(call.call_id, call.name, lambda: ask(**call.all_arguments()))

    def _encode(self, task: EncodeItems) -> None:
        """In the loop's thread."""
        request = task.request.resolved().request
        self._return(task.call_id, "encode", lambda: self._engine.encode_now(request))

    def _return(self, call_id: int, name: str, work: Callable[[], Any]) -> None:
        try:
            value = work()
        except Exception as error:
            failure = Failure.of(error, f"{name} failed")
            self._channel.send(Return(call_id, failure=failure))
        else:
            self._channel.send(Return(call_id, value))

    def _load_adapter(self, path: str) -> tuple[int, int]:
        identity = self._engine.load_adapter(path)
        return identity.adapter_id, identity.version

    def _collect(self, request_id: int, update: GenerationUpdate) -> None:
        self._updates.append(Update.of(request_id, update))

    def _end_turn(self) -> None:
        taken = self._taken
        updates, self._updates = self._updates, []
        stats = self._engine.stats.drain()
        self._channel.send(Turn(taken, self._engine.loop.num_waiting, updates, stats))

    def _request_items(self, request: LlmRequest, indices: Collection[int]) -> None:
        self._channel.send(RequestItems(request.request_id, list(indices)))


def _end_with_the_door(segments: int, folder: str) -> None:
    """Ends this process, whatever it does, as soon as the door has hung up."""

    def watch() -> None:
        poll = select.poll()
        # Hanging up is told whether asked for or not; data is for others to read.
        poll.register(segments, 0)
        poll.poll()
        shutil.rmtree(folder, ignore_errors=True)
        os._exit(0)

    threading.Thread(target=watch, name="trtllm-door-watch", daemon=True).start()
