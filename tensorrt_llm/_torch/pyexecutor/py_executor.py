# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""The loop: take commands, schedule, run, sample, commit, finish.

One thread owns every request, the KV cache manager and the embedding store. Other threads only
put commands into its inbox. Whatever ends a request (a stop, a cancel, an error in the encoder, in
the step or in sampling, a shutdown) goes through ``_finish``, which gives everything back.
"""

from __future__ import annotations

import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Future
from functools import partial
from typing import Any, TypeVar

from tensorrt_llm._torch.pyexecutor.embedding_store import EmbeddingStore
from tensorrt_llm._torch.pyexecutor.item_encoder import ItemEncoder
from tensorrt_llm._torch.pyexecutor.iteration_stats import (
    IterationCounts,
    IterationStats,
    cache_json,
)
from tensorrt_llm._torch.pyexecutor.llm_request import LlmRequest, RequestState
from tensorrt_llm._torch.pyexecutor.model_engine import ModelEngine
from tensorrt_llm._torch.pyexecutor.resource_manager import KVCacheManager
from tensorrt_llm._torch.pyexecutor.sampler import Sampled, Sampler
from tensorrt_llm._torch.pyexecutor.scheduler import (
    MicroBatchScheduler,
    ScheduledBatch,
    ScheduledRequest,
)
from tensorrt_llm.errors import EngineError, EngineStoppedError, TrtllmError
from tensorrt_llm.executor.result import FinishReason, GenerationUpdate
from tensorrt_llm.logger import get_logger

logger = get_logger(__name__)

_IDLE_WAIT_SECONDS = 1.0

_T = TypeVar("_T")


class PyExecutor:
    """The engine's loop in a thread of its own.

    Args:
        engine: Runs the model.
        kv_cache: Blocks.
        encoder: Encoder rows.
        store: Where ``encoder`` keeps them.
        scheduler: Chooses each step.
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
        self._sampler = sampler
        self._stats = stats
        self._request_items = request_items
        self._on_turn = on_turn
        self._inbox: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._requests: dict[int, LlmRequest] = {}
        self._waiting: deque[LlmRequest] = deque()
        self._context: list[LlmRequest] = []
        self._generation: list[LlmRequest] = []
        self._updates: list[tuple[LlmRequest, GenerationUpdate]] = []
        self._admitted = self._completed = 0
        self._stopping = self._nothing_to_run = False
        self._last_turn = time.monotonic()
        self._thread = threading.Thread(target=self._run, name="trtllm-engine", daemon=True)

    # ---- any thread -------------------------------------------------------------------------

    def start(self) -> None:
        """Starts the loop."""
        self._thread.start()

    def submit(self, request: LlmRequest) -> None:
        """Queues a request."""
        self._inbox.put(partial(self._enqueue, request))

    def cancel(self, request_id: int) -> None:
        """Gives a request up; no effect if it has ended."""
        self._inbox.put(partial(self._cancel, request_id))

    def provide_items(self, request_id: int, inputs: Mapping[int, Mapping[str, Any]]) -> None:
        """Hands in encoder inputs that were asked for; no effect if the request has ended.

        Args:
            request_id: The request.
            inputs: Encoder inputs by item.
        """
        self._inbox.put(partial(self._provide_items, request_id, inputs))

    def fail(self, request_id: int, during: str, error: Exception) -> None:
        """Ends a request with an error; no effect if it has ended.

        Args:
            request_id: The request.
            during: What failed.
            error: Why.
        """
        self._inbox.put(partial(self._fail_one, request_id, during, error))

    def call(self, function: Callable[[], _T]) -> Future[_T]:
        """Runs a function between two steps, in the loop's thread."""
        future: Future[_T] = Future()

        def run() -> None:
            try:
                future.set_result(function())
            except Exception as error:
                future.set_exception(error)

        self._inbox.put(run)
        return future

    def reset_reuse_state(self) -> Future[int]:
        """Forgets cached blocks and encoder rows; gives the number of blocks dropped."""
        return self.call(self.reset_reuse_state_now)

    def snapshot(self) -> Future[dict[str, Any]]:
        """Requests and caches as they are between two steps."""
        return self.call(self.snapshot_now)

    @property
    def num_waiting(self) -> int:
        """Requests handed in and not admitted yet; exact between steps."""
        return len(self._waiting) + self._inbox.qsize()

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
        self._inbox.put(self._begin_stop)
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join()

    # ---- the loop's thread ------------------------------------------------------------------

    def reset_reuse_state_now(self) -> int:
        """As ``reset_reuse_state``, in the loop's thread."""
        self._store.clear()
        return self._kv_cache.reset_reuse_state()

    def snapshot_now(self) -> dict[str, Any]:
        """As ``snapshot``, in the loop's thread."""
        return {
            "numActiveRequests": len(self._context) + len(self._generation),
            "numQueuedRequests": len(self._waiting),
            "numRequestsWaitingForItems": sum(
                request.state is RequestState.WAITING_ITEMS for request in self._context
            ),
            **cache_json(self._kv_cache.stats(), self._store.stats(), self._encoder.runs),
        }

    def _run(self) -> None:
        try:
            while not self._stopping:
                self._last_turn = time.monotonic()
                self._take_commands()
                if self._requests and not self._stopping:
                    self._iterate()
                self._tell()
        except Exception:
            logger.exception("the engine's loop ended because of a fault of ours")
        finally:
            self._stopping = True
            self._fail_all(EngineStoppedError("the engine has stopped"))
            self._tell()

    def _tell(self) -> None:
        """Sends what the turn brought, once it is recorded: who has an answer finds it counted."""
        for request, update in self._updates:
            request.push(update)
        self._updates.clear()
        if self._on_turn is not None:
            self._on_turn()

    def _begin_stop(self) -> None:
        self._stopping = True

    def _take_commands(self) -> None:
        """Runs what is in the inbox; waits a while for something if there is nothing to do."""
        try:
            if not self._requests or self._nothing_to_run:
                self._inbox.get(timeout=_IDLE_WAIT_SECONDS)()
            while True:
                self._inbox.get_nowait()()
        except queue.Empty:
            return

    def _enqueue(self, request: LlmRequest) -> None:
        self._requests[request.request_id] = request
        self._waiting.append(request)

    def _cancel(self, request_id: int) -> None:
        request = self._requests.get(request_id)
        if request is not None:
            self._finish(request, finish_reason="cancelled")

    def _provide_items(self, request_id: int, inputs: Mapping[int, Mapping[str, Any]]) -> None:
        request = self._requests.get(request_id)
        if request is None:
            return
        for index, given in inputs.items():
            request.items[index].inputs = given
            request.missing_items.discard(index)
        if request.state is RequestState.WAITING_ITEMS and not request.missing_items:
            request.state = RequestState.CONTEXT

    def _fail_one(self, request_id: int, during: str, error: Exception) -> None:
        request = self._requests.get(request_id)
        if request is not None:
            self._fail([request], during, error)

    def _fail_all(self, error: TrtllmError) -> None:
        for request in list(self._requests.values()):
            self._finish(request, error=error)
        while True:  # what was submitted while the loop was ending
            try:
                self._inbox.get_nowait()()
            except queue.Empty:
                break
        for request in list(self._requests.values()):
            self._finish(request, error=error)

    def _iterate(self) -> None:
        started = time.perf_counter()
        batch = self._scheduler.schedule(
            self._generation, self._context, self._waiting, self._admit
        )
        # What waits for items, or for room, waits for what comes through the inbox.
        self._nothing_to_run = not batch.all and not self._updates
        if self._nothing_to_run:
            return
        runnable = self._with_rows(batch)
        if runnable:
            self._step(runnable)
        self._record(batch, 1e3 * (time.perf_counter() - started))

    def _admit(self, request: LlmRequest) -> bool:
        try:
            admitted = self._kv_cache.admit(request)
        except Exception as error:
            self._fail([request], "admission", error)
            return False
        if admitted:
            request.state = RequestState.CONTEXT
            self._context.append(request)
            self._admitted += 1
        return admitted

    def _with_rows(self, batch: ScheduledBatch[LlmRequest]) -> list[ScheduledRequest[LlmRequest]]:
        """The batch without the requests that lack rows: encoding failed, or has to wait."""
        runnable = []
        for scheduled in batch.context:
            request = scheduled.request
            try:
                begin = request.num_written
                missing = self._encoder.provide(request, begin, begin + scheduled.num_tokens)
            except Exception as error:
                self._fail([request], "encoding", error)
                continue
            if missing:
                request.state = RequestState.WAITING_ITEMS
                request.missing_items = missing
                self._request_items(request, sorted(missing))
            else:
                runnable.append(scheduled)
        return [*runnable, *batch.generation]

    def _step(self, scheduled: Sequence[ScheduledRequest[LlmRequest]]) -> None:
        requests = [entry.request for entry in scheduled]
        try:
            self._kv_cache.run_copies()
            logits = self._engine.forward(scheduled, self._kv_cache.block_tables(requests))
            sound = (~logits.isnan().any(dim=-1)).tolist()
            for entry in scheduled:
                entry.request.num_written += entry.num_tokens
            # A value that is no number reaches every later token of its sequence, so the last
            # token tells of all; such keys and values must never be found by another request.
            good = [row for row in range(len(requests)) if sound[row]]
            self._kv_cache.commit([requests[row] for row in good])
            due = [row for row in good if requests[row].num_to_write == 0]
            sampling = [requests[row] for row in due]
            sampled = self._sampler.sample(logits[due], sampling) if due else []
        except Exception as error:
            self._fail(requests, "step", error)
            return
        for request, is_sound in zip(requests, sound, strict=True):
            if is_sound:
                self._encoder.release_written(request)
            else:
                self._fail([request], "step", EngineError("the model gave logits that are NaN"))
        self._deliver(sampling, sampled)

    def _deliver(self, requests: Sequence[LlmRequest], sampled: Sequence[Sampled]) -> None:
        """Adds each request's new token, ends what is complete and tells the callers."""
        going_on = []
        for request, choice in zip(requests, sampled, strict=True):
            request.output_ids.append(choice.token_id)
            reason = _finish_reason(request)
            update = partial(
                GenerationUpdate,
                token_ids=(choice.token_id,),
                cached_tokens=request.cached_tokens,
                logprobs=None if choice.logprobs is None else (choice.logprobs,),
                logits=choice.logits,
            )
            if reason is None:
                self._to_generation(request)
                going_on.append(request)
                self._updates.append((request, update()))
            else:
                named = request.sampling.stop_token_ids or ()
                self._release(request)
                stop = choice.token_id if choice.token_id in named and reason == "stop" else None
                self._updates.append((request, update(finish_reason=reason, stop_reason=stop)))
        if going_on:
            self._kv_cache.append(going_on)

    def _to_generation(self, request: LlmRequest) -> None:
        if request.state is RequestState.CONTEXT:
            self._context.remove(request)
            self._generation.append(request)
            request.state = RequestState.GENERATION

    def _fail(self, requests: Sequence[LlmRequest], during: str, error: Exception) -> None:
        numbers = ", ".join(str(request.request_id) for request in requests)
        logger.error("request %s failed in %s: %s", numbers, during, error, exc_info=error)
        if not isinstance(error, TrtllmError):
            error = EngineError(f"{during} failed: {type(error).__name__}: {error}")
        for request in requests:
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
        """The one way out: takes the request off its list and gives back all it holds."""
        if request.state is RequestState.WAITING:
            self._waiting.remove(request)
        else:
            in_context = request.state is not RequestState.GENERATION
            (self._context if in_context else self._generation).remove(request)
            self._encoder.release(request)
            self._kv_cache.release(request)
        request.state = RequestState.FINISHED
        del self._requests[request.request_id]
        self._completed += 1

    def _record(self, batch: ScheduledBatch[LlmRequest], latency_ms: float) -> None:
        running = len(self._context) + len(self._generation)
        self._stats.record(
            IterationCounts(
                latency_ms=latency_ms,
                new_active=self._admitted,
                active=running + self._completed,
                completed=self._completed,
                queued=len(self._waiting),
                context_requests=len(batch.context),
                context_tokens=sum(entry.num_tokens for entry in batch.context),
                generation_requests=len(batch.generation),
            ),
            self._kv_cache.stats(),
            self._store.stats(),
            self._encoder.runs,
        )
        self._admitted = self._completed = 0


def _finish_reason(request: LlmRequest) -> FinishReason | None:
    if request.output_ids[-1] in request.stop_token_ids:
        return "stop"
    if len(request.output_ids) >= request.max_new_tokens:
        return "length"
    return None
