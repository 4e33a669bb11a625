# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""The loop: take commands, schedule, run, deliver.

One thread owns every request, the KV cache manager and the embedding store. Other threads only
put commands into its inbox. Whatever ends a request (a stop, a cancel, a deadline, an error in the
encoder, in the step or in sampling, a shutdown) goes through ``_release``, which gives everything
back.
"""

from __future__ import annotations

import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from tensorrt_llm._torch.pyexecutor.embedding_store import EmbeddingStore
from tensorrt_llm._torch.pyexecutor.item_encoder import ItemEncoder
from tensorrt_llm._torch.pyexecutor.iteration_stats import (
    IterationCounts,
    IterationStats,
    cache_json,
)
from tensorrt_llm._torch.pyexecutor.live_requests import LiveRequests
from tensorrt_llm._torch.pyexecutor.llm_request import LlmRequest
from tensorrt_llm._torch.pyexecutor.model_engine import ModelEngine
from tensorrt_llm._torch.pyexecutor.model_step import StepRunner
from tensorrt_llm._torch.pyexecutor.resource_manager import KVCacheManager
from tensorrt_llm._torch.pyexecutor.sampler import Sampled, Sampler
from tensorrt_llm._torch.pyexecutor.scheduler import (
    Admission,
    BurstGate,
    CapacityPolicy,
    MicroBatchScheduler,
    ScheduledBatch,
    ScheduledRequest,
)
from tensorrt_llm.errors import (
    DeadlineExceededError,
    EngineError,
    EngineStoppedError,
    TrtllmError,
)
from tensorrt_llm.executor.result import FinishReason, GenerationUpdate
from tensorrt_llm.logger import get_logger

logger = get_logger(__name__)

_IDLE_WAIT_SECONDS = 1.0
_STOPPED = "the engine has stopped"

_T = TypeVar("_T")


@dataclass
class _Counts:
    """What happened since the last record; ``left``: admitted requests that ended."""

    admitted: int = 0
    left: int = 0
    completed: int = 0
    paused: int = 0


class PyExecutor:
    """The engine's loop in a thread of its own.

    Args:
        engine: Runs the model.
        kv_cache: Blocks.
        encoder: Encoder rows.
        store: Where ``encoder`` keeps them.
        scheduler: Fills each step.
        capacity: Decides who holds blocks.
        sampler: Chooses tokens.
        stats: Where iterations are recorded.
        request_items: Asks for encoder inputs of a request's items that are missing here; the
            answer is ``provide_items`` or ``fail``. Called by the loop, must not wait.
        on_turn: Called by the loop once a turn, after updates were pushed; a turn takes as long
            as a step, or about a second where there is nothing to do.
    """

    def __init__(
        self,
        *,
        engine: ModelEngine,
        kv_cache: KVCacheManager,
        encoder: ItemEncoder,
        store: EmbeddingStore,
        scheduler: MicroBatchScheduler[LlmRequest],
        capacity: CapacityPolicy,
        sampler: Sampler,
        stats: IterationStats,
        request_items: Callable[[LlmRequest, Collection[int]], None],
        on_turn: Callable[[], None] | None = None,
    ) -> None:
        self._engine = engine
        self._kv_cache = kv_cache
        self._encoder = encoder
        self._store = store
        self._scheduler = scheduler
        self._capacity = capacity
        self._stats = stats
        self._request_items = request_items
        self._on_turn = on_turn
        self._runner = StepRunner(engine, kv_cache, sampler)
        self._burst: BurstGate[LlmRequest] = kv_cache.burst_gate()
        self._live = LiveRequests()
        self._inbox: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        # Held for moments: what is put before the inbox closes is answered, nothing is put after.
        self._inbox_lock = threading.Lock()
        self._closed = False
        self._num_submitted = 0
        self._updates: deque[tuple[LlmRequest, GenerationUpdate]] = deque()
        self._counts = _Counts()
        self._stopping = self._nothing_to_run = False
        self._last_turn = time.monotonic()
        self._thread = threading.Thread(target=self._run, name="trtllm-engine", daemon=True)

    # ---- any thread -------------------------------------------------------------------------

    def start(self) -> None:
        """Starts the loop."""
        self._thread.start()

    def submit(self, request: LlmRequest) -> None:
        """Queues a request.

        Raises:
            EngineStoppedError: If the loop has ended.
        """
        if not self._put(partial(self._enqueue, request), submitted=1):
            raise EngineStoppedError(_STOPPED)

    def cancel(self, request_id: int) -> None:
        """Gives a request up; no effect if it has ended."""
        self._put(partial(self._cancel, request_id))

    def provide_items(self, request_id: int, inputs: Mapping[int, Mapping[str, Any]]) -> None:
        """Hands in encoder inputs that were asked for; no effect if the request has ended.

        Args:
            request_id: The request.
            inputs: Encoder inputs by item.
        """
        self._put(partial(self._provide_items, request_id, inputs))

    def has(self, request_id: int) -> bool:
        """Whether a request has not ended; may be a step behind."""
        return self._live.get(request_id) is not None

    def fail(self, request_id: int, during: str, error: Exception) -> None:
        """Ends a request with an error; no effect if it has ended.

        Args:
            request_id: The request.
            during: What failed.
            error: Why.
        """
        self._put(partial(self._fail_one, request_id, during, error))

    def call(self, function: Callable[[], _T]) -> Future[_T]:
        """Runs a function between two steps, in the loop's thread.

        Returns:
            Its result; fails with ``EngineStoppedError`` if the loop has ended.
        """
        future: Future[_T] = Future()

        def run() -> None:
            if not future.set_running_or_notify_cancel():
                return
            try:
                future.set_result(function())
            except Exception as error:
                future.set_exception(error)

        if not self._put(run):
            future.set_exception(EngineStoppedError(_STOPPED))
        return future

    def _put(self, command: Callable[[], None], *, submitted: int = 0) -> bool:
        """Hands a command to the loop; False if nobody would run it any more."""
        with self._inbox_lock:
            if self._closed:
                return False
            self._num_submitted += submitted
            self._inbox.put(command)
            return True

    def reset_reuse_state(self) -> Future[int]:
        """Forgets cached blocks and encoder rows; gives the number of blocks dropped."""
        return self.call(self.reset_reuse_state_now)

    def snapshot(self) -> Future[dict[str, Any]]:
        """Requests and caches as they are between two steps."""
        return self.call(self.snapshot_now)

    @property
    def num_waiting(self) -> int:
        """Requests handed in and never admitted yet; exact between steps."""
        return len(self._live.waiting) - self._live.num_paused + self._num_submitted

    @property
    def alive(self) -> bool:
        """Whether the loop runs."""
        return self._thread.is_alive() and not self._stopping

    @property
    def seconds_since_last_turn(self) -> float:
        """How long the present turn of the loop has taken, in seconds."""
        return time.monotonic() - self._last_turn

    def stop(self) -> None:
        """Ends the loop after the present step; requests that have not ended fail."""
        self._put(self._begin_stop)
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join()

    # ---- the loop's thread: commands --------------------------------------------------------

    def reset_reuse_state_now(self) -> int:
        """As ``reset_reuse_state``, in the loop's thread."""
        self._store.clear()
        self._burst.forget()
        return self._kv_cache.reset_reuse_state()

    def snapshot_now(self) -> dict[str, Any]:
        """As ``snapshot``, in the loop's thread."""
        return {
            "numActiveRequests": self._live.num_admitted,
            "numQueuedRequests": len(self._live.waiting),
            "numPausedRequests": self._live.num_paused,
            "numRequestsWaitingForItems": len(self._live.context) - len(self._live.ready),
            **cache_json(self._kv_cache.stats(), self._store.stats(), self._encoder.runs),
        }

    def _run(self) -> None:
        try:
            while not self._stopping:
                self._last_turn = time.monotonic()
                self._take_commands()
                self._expire()
                if len(self._live) and not self._stopping:
                    self._iterate()
                self._tell()
        except Exception:
            logger.exception("the engine's loop ended because of a fault of ours")
        finally:
            self._stopping = True
            self._fail_all(EngineStoppedError(_STOPPED))
            self._tell()

    def _tell(self) -> None:
        """Sends what the turn brought, once it is recorded: who has an answer finds it counted."""
        while self._updates:  # one by one: whatever goes wrong, the others are still there
            request, update = self._updates.popleft()
            try:
                request.push(update)
            except Exception as error:  # nobody can take this answer; the others wait for theirs
                logger.exception("request %d: its update could not be told", request.request_id)
                if self._live.get(request.request_id) is not None:
                    self._fail(request, "delivery", error)
        if self._on_turn is not None:
            self._on_turn()

    def _begin_stop(self) -> None:
        self._stopping = True

    def _take_commands(self) -> None:
        """Runs what is in the inbox; waits a while for something if there is nothing to do."""
        try:
            if not len(self._live) or self._nothing_to_run:
                self._inbox.get(timeout=self._idle_seconds())()
            while True:
                self._inbox.get_nowait()()
        except queue.Empty:
            return

    def _idle_seconds(self) -> float:
        """How long to wait for commands at most; a deadline does not wait for them."""
        deadline = self._live.next_deadline
        if deadline is None:
            return _IDLE_WAIT_SECONDS
        return min(max(deadline - time.monotonic(), 0.0), _IDLE_WAIT_SECONDS)

    def _enqueue(self, request: LlmRequest) -> None:
        with self._inbox_lock:
            self._num_submitted -= 1
        self._live.add(request)
        try:
            request.content = self._kv_cache.content(request)
        except Exception as error:
            self._fail(request, "admission", error)

    def _cancel(self, request_id: int) -> None:
        request = self._live.get(request_id)
        if request is not None:
            self._finish(request, finish_reason="cancelled")

    def _provide_items(self, request_id: int, inputs: Mapping[int, Mapping[str, Any]]) -> None:
        request = self._live.get(request_id)
        if request is None:
            return
        for index, given in inputs.items():
            request.items[index].inputs = given
            self._live.provide_item(request, index)

    def _fail_one(self, request_id: int, during: str, error: Exception) -> None:
        request = self._live.get(request_id)
        if request is not None:
            self._fail(request, during, error)

    def _expire(self) -> None:
        for request in self._live.expired(time.monotonic()):
            self._finish(request, error=DeadlineExceededError(request.request.timeout or 0.0))

    def _fail_all(self, error: TrtllmError) -> None:
        with self._inbox_lock:
            self._closed = True
        while True:  # what was submitted while the loop was ending
            try:
                self._inbox.get_nowait()()
            except queue.Empty:
                break
        for request in self._live:
            try:
                self._finish(request, error=error)
            except Exception:
                logger.exception(
                    "request %d: not all of it could be given back", request.request_id
                )
                self._updates.append((request, GenerationUpdate(error=error)))

    # ---- the loop's thread: a step ----------------------------------------------------------

    def _iterate(self) -> None:
        started = time.perf_counter()
        self._make_room()
        ready = self._live.ready
        batch = self._scheduler.schedule(
            self._live.generation,
            ready,
            self._live.waiting,
            self._admit,
            num_held=len(self._live.context) - len(ready),
        )
        # What waits for items, or for room, waits for what comes through the inbox.
        self._nothing_to_run = not batch.all and not self._updates
        if self._nothing_to_run:
            return
        runnable = self._ready(batch)
        if runnable:
            result = self._runner.run(runnable)
            for request, during, error in result.failed:
                self._fail(request, during, error)
            self._encoder.release_written(entry.request for entry in runnable)
            for request, choice in result.sampled:
                self._deliver(request, choice)
        self._record(batch, 1e3 * (time.perf_counter() - started))

    def _make_room(self) -> None:
        """Sees that every request in the generation phase has room for its newest token."""
        growing = self._live.generation
        if growing:
            holding = (*self._live.context, *growing)
            self._capacity.make_room(tuple(growing), holding, self._extend, self._pause)

    def _extend(self, request: LlmRequest) -> bool:
        try:
            return self._kv_cache.extend(request)
        except Exception as error:
            self._fail(request, "growth", error)
            return True  # it needs no room any more

    def _pause(self, request: LlmRequest) -> None:
        """Takes an admitted request's blocks; it goes on when there is room again."""
        if not request.admitted:
            return  # it failed while room was made, and holds nothing
        self._give_back(request)
        self._live.pause(request)
        request.num_written = 0
        request.num_pauses += 1
        self._counts.paused += 1

    def _admit(self, request: LlmRequest) -> Admission:
        try:
            if self._burst.must_wait(request, partial(self._kv_cache.probe, request)):
                return Admission.LATER
            source = self._burst.tail_source(request)
            if not self._kv_cache.admit(request, self._capacity.promise(request), source):
                return Admission.NO_ROOM
        except Exception as error:
            self._fail(request, "admission", error)
            return Admission.LATER
        self._live.admit(request)
        self._burst.enter(request)
        self._counts.admitted += 1
        return Admission.ADMITTED

    def _ready(self, batch: ScheduledBatch[LlmRequest]) -> list[ScheduledRequest[LlmRequest]]:
        """The batch without the requests that cannot take part: they failed, or lack an item."""
        runnable = []
        for scheduled in batch.context:
            request = scheduled.request
            try:
                begin = request.num_written
                missing = self._encoder.provide(request, begin, begin + scheduled.num_tokens)
            except Exception as error:
                self._fail(request, "encoding", error)
                continue
            if missing:
                self._live.wait_for_items(request, missing)
                self._request_items(request, sorted(missing))
            else:
                runnable.append(scheduled)
        try:
            self._kv_cache.append([scheduled.request for scheduled in batch.generation])
        except Exception as error:
            for scheduled in batch.generation:
                self._fail(scheduled.request, "growth", error)
            return runnable
        return [*runnable, *batch.generation]

    def _deliver(self, request: LlmRequest, choice: Sampled) -> None:
        """Adds a request's new token, ends it if it is complete, and tells the caller."""
        request.output_ids.append(choice.token_id)
        reason = _finish_reason(request)
        stop = None
        if reason is None:
            self._live.to_generation(request)
        else:
            named = request.sampling.stop_token_ids or ()
            stop = choice.token_id if choice.token_id in named and reason == "stop" else None
            self._release(request)
        update = GenerationUpdate(
            token_ids=(choice.token_id,),
            cached_tokens=request.cached_tokens,
            logprobs=None if choice.logprobs is None else (choice.logprobs,),
            logits=choice.logits,
            finish_reason=reason,
            stop_reason=stop,
        )
        self._updates.append((request, update))

    # ---- the loop's thread: the ways out ----------------------------------------------------

    def _fail(self, request: LlmRequest, during: str, error: Exception) -> None:
        logger.error(
            "request %d failed in %s: %s", request.request_id, during, error, exc_info=error
        )
        if not isinstance(error, TrtllmError):
            error = EngineError(f"{during} failed: {type(error).__name__}: {error}")
        self._finish(request, error=error)

    def _finish(
        self,
        request: LlmRequest,
        *,
        finish_reason: FinishReason | None = None,
        error: TrtllmError | None = None,
    ) -> None:
        self._release(request)
        update = GenerationUpdate(
            cached_tokens=request.cached_tokens, finish_reason=finish_reason, error=error
        )
        self._updates.append((request, update))

    def _release(self, request: LlmRequest) -> None:
        """The one way out: takes the request off its list and gives back all it holds.

        If that fails the books are wrong, and the loop ends rather than going on with them.
        """
        admitted = request.admitted
        if admitted:
            self._give_back(request)
        else:
            self._burst.leave(request)
        # Last, so that a request whose blocks could not be taken back is still there to be told.
        self._live.remove(request)
        self._counts.left += admitted
        self._counts.completed += 1

    def _give_back(self, request: LlmRequest) -> None:
        self._burst.leave(request)
        self._encoder.release(request)
        self._kv_cache.release(request)

    def _record(self, batch: ScheduledBatch[LlmRequest], latency_ms: float) -> None:
        counts, self._counts = self._counts, _Counts()
        try:
            kv_stats = self._kv_cache.stats()
        except Exception:  # numbers for people; requests do not depend on them
            logger.exception("the statistics of an iteration could not be read")
            return
        self._stats.record(
            IterationCounts(
                latency_ms=latency_ms,
                new_active=counts.admitted,
                active=self._live.num_admitted + counts.left,
                completed=counts.completed,
                queued=len(self._live.waiting),
                context_requests=len(batch.context),
                context_tokens=sum(entry.num_tokens for entry in batch.context),
                generation_requests=len(batch.generation),
                paused=counts.paused,
            ),
            kv_stats,
            self._store.stats(),
            self._encoder.runs,
        )


def _finish_reason(request: LlmRequest) -> FinishReason | None:
    if request.output_ids[-1] in request.stop_token_ids:
        return "stop"
    if len(request.output_ids) >= request.max_new_tokens:
        return "length"
    return None
