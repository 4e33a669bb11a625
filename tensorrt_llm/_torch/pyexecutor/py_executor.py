# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""The loop: take commands, schedule, run, deliver.

One thread owns every request, the KV cache manager and the embedding store. Other threads only
put commands into its inbox. Whatever ends a request (a stop, a cancel, a deadline, an error in the
encoder, in the step or in sampling, a shutdown) goes through ``_release``, which gives everything
back.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Future
from functools import partial
from typing import Any, TypeVar

import torch

from tensorrt_llm._torch.pyexecutor.beam_groups import BeamGroups, by_leader
from tensorrt_llm._torch.pyexecutor.drafter import Drafter
from tensorrt_llm._torch.pyexecutor.embedding_store import EmbeddingStore
from tensorrt_llm._torch.pyexecutor.inbox import Inbox
from tensorrt_llm._torch.pyexecutor.item_encoder import ItemEncoder
from tensorrt_llm._torch.pyexecutor.iteration_stats import IterationStats, cache_json
from tensorrt_llm._torch.pyexecutor.live_requests import LiveRequests
from tensorrt_llm._torch.pyexecutor.llm_request import LlmRequest
from tensorrt_llm._torch.pyexecutor.model_engine import ModelEngine
from tensorrt_llm._torch.pyexecutor.model_step import StepRunner
from tensorrt_llm._torch.pyexecutor.outbox import Outbox, finish_reason
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
from tensorrt_llm._torch.pyexecutor.step_ahead import StepAhead
from tensorrt_llm._torch.pyexecutor.turn_counts import TurnCounts
from tensorrt_llm.errors import (
    DeadlineExceededError,
    EngineError,
    EngineStoppedError,
    TrtllmError,
)
from tensorrt_llm.executor.request import GenerationRequest
from tensorrt_llm.executor.result import FinishReason
from tensorrt_llm.logger import get_logger

logger = get_logger(__name__)

_IDLE_WAIT_SECONDS = 1.0
_STOPPED = "the engine has stopped"

_T = TypeVar("_T")


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
        drafter: Guesses tokens.
        stats: Where iterations are recorded.
        request_items: Asks for encoder inputs of a request's items that are missing here; the
            answer is ``provide_items`` or ``fail``. Called by the loop, must not wait.
        on_turn: Called by the loop once a turn, after updates were pushed; a turn takes as long
            as a step, or about a second where there is nothing to do.
        overlap: Whether the model runs in a thread of its own and the loop prepares the next step
            and tells what the last one brought meanwhile.
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
        drafter: Drafter,
        stats: IterationStats,
        request_items: Callable[[LlmRequest, Collection[int]], None],
        on_turn: Callable[[], None] | None = None,
        overlap: bool = False,
    ) -> None:
        self._engine = engine
        self._kv_cache = kv_cache
        self._encoder = encoder
        self._store = store
        self._scheduler = scheduler
        self._capacity = capacity
        self._drafter = drafter
        self._stats = stats
        self._request_items = request_items
        self._on_turn = on_turn
        self._ahead = StepAhead(engine, kv_cache, self._beside) if overlap else None
        self._runner = StepRunner(engine, kv_cache, sampler, self._fork, self._ahead)
        self._burst: BurstGate[LlmRequest] = kv_cache.burst_gate()
        self._live = LiveRequests()
        self._beams = BeamGroups(kv_cache, self._live)
        self._inbox = Inbox()
        self._outbox = Outbox()
        self._counts = TurnCounts()
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
        if not self._inbox.put(partial(self._enqueue, request), submits=True):
            raise EngineStoppedError(_STOPPED)

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
        self._inbox.put(partial(self._fail_one, request_id, during, error))

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

        if not self._inbox.put(run):
            future.set_exception(EngineStoppedError(_STOPPED))
        return future

    def reset_reuse_state(self) -> Future[int]:
        """Forgets cached blocks and encoder rows; gives the number of blocks dropped."""
        return self.call(self.reset_reuse_state_now)

    def snapshot(self) -> Future[dict[str, Any]]:
        """Requests and caches as they are between two steps."""
        return self.call(self.snapshot_now)

    @property
    def num_waiting(self) -> int:
        """Requests handed in and never admitted yet; exact between steps."""
        return len(self._live.waiting) - self._live.num_paused + self._inbox.num_submissions

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

    # ---- the loop's thread: commands --------------------------------------------------------

    def reset_reuse_state_now(self) -> int:
        """As ``reset_reuse_state``, in the loop's thread."""
        return self.flush_now()["blocks"]

    def flush_now(self) -> dict[str, int]:
        """Forgets all that is cached; gives how many blocks and encoded items were idle."""
        items = self._store.clear()
        self._burst.forget()
        return {"blocks": self._kv_cache.reset_reuse_state(), "embeddings": items}

    def take_events_now(self, most: int) -> list[str]:
        """The oldest events on cached blocks, as JSON, in the loop's thread."""
        return self._kv_cache.take_events(most)

    def explain_now(self, request: GenerationRequest, other_salts: bool) -> dict[str, Any]:
        """What a request would find in the cache, in the loop's thread."""
        unborn = LlmRequest(0, request, 1, frozenset(), push=lambda _: None)
        return self._kv_cache.explain(unborn, other_salts)

    def snapshot_now(self) -> dict[str, Any]:
        """As ``snapshot``, in the loop's thread."""
        return {
            "numActiveRequests": self._live.num_admitted,
            "numQueuedRequests": len(self._live.waiting),
            "numPausedRequests": self._live.num_paused,
            "numRequestsWaitingForItems": self._live.num_waiting_for_items,
            "specDecodingStats": self._drafter.totals(),
            **cache_json(self._kv_cache.stats(), self._store.stats(), self._encoder.runs),
        }

    def contents_now(self, most_items: int) -> dict[str, Any]:
        """As ``snapshot_now``, with the state of each block and the items found most often."""
        return {
            **self.snapshot_now(),
            "blockMap": self._kv_cache.block_map(),
            "items": self._store.top(most_items),
        }

    def _run(self) -> None:
        try:
            while not self._stopping:
                self._last_turn = time.monotonic()
                self._take_commands()
                self._expire()
                if len(self._live) and not self._stopping:
                    self._iterate()
                if not self._tells_beside:
                    self._tell()
        except Exception:
            logger.exception("the engine's loop ended because of a fault of ours")
        finally:
            self._stopping = True
            self._fail_all(EngineStoppedError(_STOPPED))
            self._tell()
            if self._ahead is not None:
                self._ahead.close()

    @property
    def _tells_beside(self) -> bool:
        """Whether a step is certain to come, beside which updates are told."""
        return self._ahead is not None and bool(self._live.generation) and not self._stopping

    def _beside(self) -> None:
        """What can be done while a step computes: nothing that touches a request in it."""
        self._tell()
        while (command := self._inbox.take_submission()) is not None:
            command()

    def _tell(self) -> None:
        """Sends what the turn brought, once it is recorded: who has an answer finds it counted."""
        self._outbox.send(self._undelivered)
        if self._on_turn is not None:
            self._on_turn()

    def _undelivered(self, request: LlmRequest, error: Exception) -> None:
        """Nobody can take this answer; the others wait for theirs."""
        logger.error("request %d: its update could not be told", request.request_id, exc_info=error)
        # It may be in the step that runs now, so it ends before the next one.
        self.fail(request.request_id, "delivery", error)

    def _begin_stop(self) -> None:
        self._stopping = True

    def _take_commands(self) -> None:
        """Runs what is in the inbox; waits a while for something if there is nothing to do."""
        idle = not len(self._live) or self._nothing_to_run
        if idle:
            # Who left since the last iteration, the last of all cancelled for one, was in no other.
            self._counts.left = 0
        command = self._inbox.take(self._idle_seconds() if idle else 0.0)
        while command is not None:
            command()
            command = self._inbox.take()

    def _idle_seconds(self) -> float:
        """How long to wait for commands at most; a deadline does not wait for them."""
        deadline = self._live.next_deadline
        if deadline is None:
            return _IDLE_WAIT_SECONDS
        return min(max(deadline - time.monotonic(), 0.0), _IDLE_WAIT_SECONDS)

    def _enqueue(self, request: LlmRequest) -> None:
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
        self._inbox.close()
        while (command := self._inbox.take()) is not None:  # what came while the loop was ending
            command()
        for request in self._live:
            try:
                self._finish(request, error=error)
            except Exception:
                logger.exception(
                    "request %d: not all of it could be given back", request.request_id
                )
                self._outbox.end(request, error=error)

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
        self._nothing_to_run = not batch.all and not self._outbox
        if self._nothing_to_run:
            return
        # Recorded is what ran: who lacks an item has written nothing, and comes again.
        batch = self._ready(batch)
        runnable = batch.all
        if runnable:
            result = self._runner.run(runnable)
            for request, during, error in result.failed:
                self._fail(request, during, error)
            self._encoder.release_written(entry.request for entry in runnable)
            for request, choices in result.sampled:
                self._deliver(request, choices)
            for leader, logits in by_leader(result.beams):
                self._advance(leader, logits)
            self._drafter.note(result.drafted, result.accepted)
            self._counts.add_drafts(result.num_with_draft, result.drafted, result.accepted)
            self._name_tokens()
        try:
            self._kv_cache.end_step()
        except Exception:
            # No answer needs events or the end of a priority; the next step tells them.
            logger.exception("the KV cache could not end a step")
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
        if request.beams:
            request = request.beams[0]
            self._counts.left += self._beams.leave(request)
        self._give_back(request)
        self._live.pause(request)
        request.num_written = 0
        request.num_pauses += 1
        self._counts.paused += 1

    def _admit(self, request: LlmRequest) -> Admission:
        if self._live.num_admitted + request.width > self._scheduler.max_running:
            return Admission.NO_ROOM
        try:
            if self._burst.must_wait(request, partial(self._kv_cache.probe, request)):
                return Admission.LATER
            source = self._burst.tail_source(request)
            promise = self._capacity.promise(request)
            if request.beams:
                promise = request.num_new_left
                if not self._beams.has_room(request):
                    return Admission.NO_ROOM
            if not self._kv_cache.admit(request, promise, source):
                return Admission.NO_ROOM
            self._live.admit(request)
            if request.beams:
                self._counts.admitted += self._beams.enter(request)
        except Exception as error:
            self._fail(request, "admission", error)
            return Admission.LATER
        self._burst.enter(request)
        self._counts.admitted += 1
        if request.num_pauses == 0:
            request.admitted_at = time.monotonic()
            self._counts.queue_ms.append(1e3 * (request.admitted_at - request.arrival))
        return Admission.ADMITTED

    def _fork(self, request: LlmRequest) -> list[LlmRequest]:
        """Lets the other answers to a written prompt begin.

        Returns:
            Those that go on from here. For the others there is no room now: they wait as any
            request does, and find the prompt in the cache.
        """
        others, request.others = request.others, ()
        forked = []
        for other in others:
            try:
                has_room = self._live.num_admitted < self._scheduler.max_running
                if has_room and self._kv_cache.fork(request, other):
                    other.content = request.content
                    self._live.add_forked(other)
                    self._counts.admitted += 1
                    forked.append(other)
                else:
                    self._live.add(other)
                    other.content = self._kv_cache.content(other)
            except Exception as error:
                if self._live.get(other.request_id) is None:
                    self._live.add(other)
                self._fail(other, "fork", error)
        return forked

    def _ready(self, batch: ScheduledBatch[LlmRequest]) -> ScheduledBatch[LlmRequest]:
        """The batch without the requests that cannot take part: they failed, or lack an item."""
        context: list[ScheduledRequest[LlmRequest]] = []
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
                context.append(scheduled)
        grown = frozenset[int]() if self._ahead is None else self._ahead.take_grown()
        batch = self._drafter.add(ScheduledBatch(tuple(context), batch.generation))
        growing = [one for one in batch.generation if one.request.request_id not in grown]
        try:
            self._kv_cache.append(growing)
        except Exception as error:
            for scheduled in growing:
                self._fail(scheduled.request, "growth", error)
        alive = (one for one in batch.generation if one.request.admitted)
        return ScheduledBatch(batch.context, tuple(alive))

    def _name_tokens(self) -> None:
        """Gives the tokens that were chosen the places that were taken for them ahead."""
        if self._ahead is None:
            return
        try:
            self._ahead.name_tokens()
        except Exception as error:
            for request in self._ahead.growing:
                self._fail(request, "growth", error)

    def _deliver(self, request: LlmRequest, choices: Sequence[Sampled]) -> None:
        """Adds a request's new tokens, ends it if it is complete, and tells the caller."""
        request.output_ids += [choice.token_id for choice in choices]
        reason = finish_reason(request)
        if reason is None:
            self._live.to_generation(request)
        else:
            self._release(request)
        self._outbox.tokens(request, choices, reason)

    def _advance(self, leader: LlmRequest, logits: Mapping[int, torch.Tensor]) -> None:
        """Takes a beam search on by a token, ends it if it is done, and tells the caller then."""
        if not leader.admitted:
            return  # one of its hypotheses failed in this step
        try:
            answers = self._beams.advance(leader, logits)
        except Exception as error:
            self._fail(leader, "beam search", error)
            return
        if answers is not None:
            self._release(leader)
            self._outbox.whole(leader, answers)

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
        if request.beams:
            request = request.beams[0]
            if self._live.get(request.request_id) is None:
                return  # all of it has ended with another of its hypotheses
        self._release(request)
        self._outbox.end(request, finish_reason=finish_reason, error=error)

    def _release(self, request: LlmRequest) -> None:
        """The one way out: takes the request off its list and gives back all it holds.

        If that fails the books are wrong, and the loop ends rather than going on with them.
        """
        admitted = request.admitted
        if request.beams:
            self._counts.left += self._beams.leave(request)
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
        counts, self._counts = self._counts, TurnCounts()
        try:
            kv_stats = self._kv_cache.stats()
        except Exception:  # numbers for people; requests do not depend on them
            logger.exception("the statistics of an iteration could not be read")
            return
        self._stats.record(
            counts.of_iteration(batch, self._live, latency_ms),
            kv_stats,
            self._store.stats(),
            self._encoder.runs,
        )
