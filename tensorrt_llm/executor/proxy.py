# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""The executor for an engine in a process of its own.

One thread owns the process: it starts it, takes what it sends, notices when it has ended or its
loop does not turn, fails what was in it, and starts the next one. Callers' threads only send.

```
 STARTING ──ready──▶ UP ──ended, stuck──▶ DOWN ──after a delay──▶ STARTING
     └── first start fails: the constructor raises      └── too often: for good
```
"""

from __future__ import annotations

import itertools
import logging
import os
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from functools import partial
from typing import Any

import msgspec
import torch
import zmq

from tensorrt_llm.errors import (
    EngineDiedError,
    EngineError,
    EngineRestartingError,
    EngineStoppedError,
    TrtllmError,
)
from tensorrt_llm.executor.detokenizer import Tokenizer, tokenizer_json
from tensorrt_llm.executor.engine_process import EngineProcess
from tensorrt_llm.executor.executor import GenerationExecutor, ModelInfo, Question, ResolvedRequest
from tensorrt_llm.executor.host_process import HostProcess, StopRequestedError, StopSignal
from tensorrt_llm.executor.ipc import Channel
from tensorrt_llm.executor.item_preparer import ItemPreparer
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
)
from tensorrt_llm.executor.request import AdapterIdentity, GenerationRequest
from tensorrt_llm.executor.restart_policy import RestartPolicy
from tensorrt_llm.executor.result import GenerationResult, GenerationUpdate
from tensorrt_llm.executor.wakeups import Wakeups
from tensorrt_llm.llmapi.llm_args import LlmArgs
from tensorrt_llm.logger import ROOT_NAME, get_logger

STOP_SECONDS = 10.0
"""An engine that is told to stop and has not after this time is killed."""

CONNECT_SECONDS = 5.0
"""An engine that has said it is connected and takes no messages after this time is killed."""

_POLL_MS = 250
# A gap between two looks that is longer was no wait for the engine: this process did not run.
_SUSPENDED_SECONDS = 1.0

_logger = get_logger(__name__)


class GenerationExecutorProxy(GenerationExecutor):
    """Starts the engine's process and passes requests and answers on.

    Args:
        args: The configuration.
        tokenizer: As the base class.
        host: Forks the engines, as long as it lives; it is not ended here. None starts one.

    Raises:
        ConfigurationError: If the checkpoint or the options cannot work.
        EngineError: If the process cannot be started.
    """

    def __init__(
        self, args: LlmArgs, tokenizer: Tokenizer | None, host: HostProcess | None = None
    ) -> None:
        super().__init__(args, tokenizer)
        # The host's working directory is another one.
        paths = {
            "model": os.path.abspath(args.model),
            "custom_module_dirs": [os.path.abspath(path) for path in args.custom_module_dirs],
        }
        engine_args = args.model_copy(update={**paths, "tokenizer": None})
        self._engine_args = engine_args.model_dump_json().encode()
        self._engine_tokenizer = tokenizer_json(tokenizer)
        self._results: dict[int, GenerationResult] = {}
        self._calls: dict[int, Future[Any]] = {}
        self._call_numbers = itertools.count(1)
        self._channel: Channel[ToEngine, ToDoor] | None = None
        self._sent = self._taken = self._waiting = 0
        self._closed = self._gave_up = False
        self._problem = "the engine is starting"
        self._num_restarts = 0
        self._restarts = RestartPolicy(args.engine_config)
        self._host = self._given_host = host
        self._engine: EngineProcess | None = None
        self._preparer = ItemPreparer(
            self._provide, self._fail_items, lambda request_id: request_id in self._results
        )
        self._stop = StopSignal()
        self._started: Future[ModelInfo] = Future()
        self._thread = threading.Thread(target=self._supervise, name="trtllm-proxy", daemon=True)
        self._thread.start()
        try:
            self._started.result()
        except BaseException:
            self.shutdown()
            raise

    # ---- any thread -------------------------------------------------------------------------

    @property
    def num_waiting(self) -> int:
        """As of the engine's last turn, with what it has not taken in since."""
        return self._waiting + self._sent - self._taken

    def cancel(self, request_id: int) -> None:
        """As the base class."""
        self._send(Cancel(request_id))

    def health_problem(self) -> str | None:
        """As the base class."""
        return self._problem if self._channel is None else None

    @property
    def num_restarts(self) -> int:
        """As the base class."""
        return self._num_restarts

    def shutdown(self) -> None:
        """As the base class."""
        with self._lock:
            if not self._closed:
                self._closed = True
                self._stop.set()
        if self._thread is not threading.current_thread():
            self._thread.join()
        # The last to go: until it has stopped the engine may ask for items.
        self._preparer.close()

    @property
    def engine_pid(self) -> int | None:
        """Process of the engine, None while there is none."""
        engine = self._engine
        return None if engine is None else engine.pid

    def _check_open(self) -> None:
        if self._closed:
            raise EngineStoppedError("the engine takes no more requests")
        if self._channel is None:
            kind = EngineStoppedError if self._gave_up else EngineRestartingError
            raise kind(self._problem)

    def _accept(self, resolved: ResolvedRequest, result: GenerationResult) -> None:
        for number in result.answer_ids:
            self._results[number] = result
        self._sent += 1

    def _hand_over(self, resolved: ResolvedRequest, result: GenerationResult) -> None:
        with self._lock:
            channel = self._channel if result.request_id in self._results else None
        if channel is None:  # the engine it was meant for has died, and the result says so
            return
        try:
            channel.send(Submit.of(result.request_id, resolved))
        except BaseException:
            with self._lock:
                if self._forget(result):
                    self._sent -= 1
            raise

    def _forget(self, result: GenerationResult) -> bool:
        """Whether it was there."""
        known = [self._results.pop(number, None) for number in result.answer_ids]
        return known[0] is not None

    def _send(self, message: ToEngine) -> None:
        """Sends to the engine there is; what is meant for one that died has no one to go to."""
        channel = self._channel
        if channel is not None:
            channel.send(message)

    def _load_adapter(self, path: str) -> AdapterIdentity:
        return AdapterIdentity(*self._send_question(lambda number: LoadAdapter(number, path)))

    def _unload_adapter(self, identity: AdapterIdentity) -> None:
        self._send_question(lambda number: UnloadAdapter(number, identity))

    def _ask(
        self, name: Question, request: GenerationRequest | None = None, **arguments: Any
    ) -> Any:
        return self._send_question(lambda number: Call.of(number, name, arguments, request))

    def _encode(self, request: GenerationRequest) -> list[torch.Tensor]:
        return self._send_question(partial(EncodeItems.of, request=request))

    def _send_question(self, question: Callable[[int], ToEngine]) -> Any:
        future: Future[Any] = Future()
        with self._lock:
            self._check_open()
            number = next(self._call_numbers)
            self._calls[number] = future
            self._send(question(number))
        return future.result()

    def _provide(self, request_id: int, index: int, inputs: Mapping[str, Any]) -> None:
        self._send(ProvideItem(request_id, index, dict(inputs)))

    def _fail_items(self, request_id: int, error: Exception) -> None:
        self._send(FailItems(request_id, Failure.of(error, "preparing its media failed")))

    # ---- the proxy's thread -----------------------------------------------------------------

    def _supervise(self) -> None:
        try:
            self._run_engines()
        except StopRequestedError:
            pass
        except Exception as error:
            if not self._started.done():
                self._started.set_exception(error)
            else:
                _logger.exception("the engine's supervision ended because of a fault of ours")
        finally:
            stopped = "the engine has stopped"
            problem = self._problem if self._gave_up else stopped
            self._gave_up = True
            self._take_down(problem, EngineStoppedError(stopped))
            self._drop_host()
            self._stop.close()
            if not self._started.done():
                self._started.set_exception(EngineStoppedError("the engine was stopped"))

    def _run_engines(self) -> None:
        """Runs one engine after the other, until there may be no more."""
        while True:
            reason = self._run_engine()
            if not self._started.done():
                raise EngineError(f"the engine cannot start: its process {reason}")
            delay = self._restarts.next_delay(time.monotonic())
            if delay is None:
                problem = f"the engine's process {reason}; it is not started again"
                self._gave_up = True
                self._problem = problem
                _logger.error("%s (max_restarts %d)", problem, self._restarts.count)
                return
            self._problem = f"the engine's process {reason}; it is being started again"
            _logger.error("%s (restart %d)", self._problem, self._restarts.count)
            self._stop.wait_for(None, delay)

    def _run_engine(self) -> str:
        """Runs an engine to its end; gives the reason."""
        seconds = self._args.engine_config.load_seconds
        try:
            if self._host is None or not self._host.alive:
                self._drop_host()
                self._host = HostProcess()
            self._host.wait_until_ready(self._stop, seconds)
            engine = EngineProcess(self._host, self._stop, seconds)
        except (EngineError, OSError, zmq.ZMQError) as error:
            return f"could not be started: {error}"
        self._engine = engine
        try:
            return self._serve(engine)
        finally:
            self._engine = None
            engine.close()

    def _drop_host(self) -> None:
        host, self._host = self._host, None
        if host is not None and host is not self._given_host:
            host.close()

    def _serve(self, engine: EngineProcess) -> str:
        """Takes what an engine sends until it ends; gives the reason.

        Raises:
            StopRequestedError: If it was stopped because the owner wants to end.
        """
        config = self._args.engine_config
        poller = zmq.Poller()
        poller.register(engine.channel.receiver, zmq.POLLIN)
        poller.register(engine.descriptor, zmq.POLLIN)
        poller.register(self._stop.descriptor, zmq.POLLIN)
        began = turned = heard = looked = time.monotonic()
        while True:
            ready = dict(poller.poll(_POLL_MS))
            now = time.monotonic()
            if now - looked > _SUSPENDED_SECONDS:
                heard += now - looked
                turned += now - looked
                began += now - looked
            looked = now
            # Looked at before the messages: what it said before it ended is still heard.
            ended = engine.descriptor in ready
            try:
                while (message := engine.channel.receive()) is not None:
                    heard = now
                    if not isinstance(message, Alive):
                        turned = now
                    self._take(message, engine)
            except (msgspec.MsgspecError, EngineError, ValueError, OSError) as error:
                return self._put_down(engine, f"talks nonsense ({error})")
            if ended:
                return self._put_down(engine, engine.how_it_ended())
            if self._stop.descriptor in ready:
                self._wind_down(engine, poller)
                raise StopRequestedError
            if self._channel is None:
                if now - began > config.load_seconds:
                    return self._put_down(engine, f"was stuck: not ready after {now - began:.1f} s")
            elif now - turned > config.stall_seconds:
                return self._put_down(engine, f"was stuck: no turn for {now - turned:.1f} s")
            elif now - heard > config.silence_seconds:
                return self._put_down(engine, f"was stuck: silent for {now - heard:.1f} s")

    def _put_down(self, engine: EngineProcess, reason: str) -> str:
        engine.kill()
        error = EngineDiedError(
            f"the engine's process {reason} while it had this request; please send it again"
        )
        self._take_down(f"the engine's process {reason}", error)
        return reason

    def _wind_down(self, engine: EngineProcess, poller: zmq.Poller) -> None:
        """Tells an engine to stop, and takes its last messages."""
        if self._channel is None:  # it does not listen before it has loaded
            return
        poller.unregister(self._stop.descriptor)
        engine.channel.send(StopEngine())
        end = time.monotonic() + STOP_SECONDS
        stopped = False
        while not stopped and time.monotonic() < end:
            ready = dict(poller.poll(_POLL_MS))
            while (message := engine.channel.receive()) is not None:
                stopped |= isinstance(message, EngineStopped)
                self._take(message, engine)
            if engine.descriptor in ready:
                return

    def _take_down(self, problem: str, error: TrtllmError) -> None:
        """From now on there is no engine; fails all that waits for it."""
        with self._lock:
            self._channel = None
            self._problem = problem
            results, self._results = self._results, {}
            calls, self._calls = self._calls, {}
            self._sent = self._taken = self._waiting = 0
        for result in dict.fromkeys(results.values()):
            result.push(GenerationUpdate(error=error))
        for future in calls.values():
            future.set_exception(error)

    def _take(self, message: ToDoor, engine: EngineProcess) -> None:
        match message:
            case Turn():
                self._take_turn(message)
            case RequestItems():
                result = self._results.get(message.request_id)
                if result is not None:
                    items = result.request.prompt.items
                    self._preparer.request(message.request_id, items, message.indices)
            case Return():
                self._take_return(message)
            case EngineConnected():
                engine.connected()
                if message.protocol != PROTOCOL:
                    raise EngineError(f"speaks protocol {message.protocol}, not {PROTOCOL}")
                # The other of its two sockets may arrive a moment later.
                if not engine.channel.wait_for_peer(CONNECT_SECONDS):
                    raise EngineError("took one end of its connection only")
                engine.channel.send(self._start_message())
            case EngineReady():
                # Before any request. Number 0 is nobody's: failures are told by the log.
                for path in list(self._adapters.values()):
                    engine.channel.send(LoadAdapter(0, path))
                with self._lock:
                    self.model_info = message.model_info
                    self._channel = engine.channel
                if not self._started.done():
                    self._started.set_result(message.model_info)
                else:
                    self._num_restarts += 1
                    _logger.info("the engine is back")
            case StartFailed():
                error = message.failure.error()
                if not self._started.done():
                    self._started.set_exception(error)
                    raise StopRequestedError
                _logger.error("the engine cannot start again: %s", error)
            case EngineStopped() | Alive():
                pass

    def _take_turn(self, turn: Turn) -> None:
        self._taken, self._waiting = turn.num_taken, turn.num_waiting
        # Before the answers: who has one finds it counted.
        self._keep_stats(turn.stats)
        with Wakeups() as wakeups:
            for entry in turn.updates:
                update = entry.update()
                result = self._results.get(entry.request_id)
                if result is not None and result.push(update, wakeups):
                    self._forget(result)

    def _take_return(self, answer: Return) -> None:
        future = self._calls.pop(answer.call_id, None)
        if future is None:
            if answer.failure is not None:
                _logger.error("an adapter cannot be loaded again: %s", answer.failure.message)
            return
        if answer.failure is None:
            future.set_result(answer.value)
        else:
            future.set_exception(answer.failure.error())

    def _start_message(self) -> StartEngine:
        level = logging.getLogger(ROOT_NAME).getEffectiveLevel()
        return StartEngine(self._engine_args, level, self._engine_tokenizer)
