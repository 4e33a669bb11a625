# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Every cause of an end in every phase: the others go on, and everything comes back.

One engine lives through all cells, so what one left behind would be seen in the next.
"""

from __future__ import annotations

import dataclasses
import heapq
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from support.engine import assert_idle, held, running, start
from support.media import picture
from support.prompts import PromptMaker
from support.reference import ReferenceModel

from tensorrt_llm._torch.pyexecutor.llm_request import LlmRequest, RequestState
from tensorrt_llm.errors import DeadlineExceededError, EngineError, EngineStoppedError
from tensorrt_llm.inputs.data import ProcessedPrompt

ASK = "<|user|>{} <|image|> is what?<|end|><|assistant|>"
NEW = 4
OPTIONS: dict[str, Any] = {
    "kv_max_tokens": 320,
    "max_num_tokens": 48,
    "multimodal_config": {"encoder_cache_max_bytes": 0},
    "scheduler_config": {"capacity_scheduler_policy": "MAX_UTILIZATION"},
}


@dataclasses.dataclass
class House:
    """An engine, the oracle, and prompts that were never used before."""

    executor: Any
    reference: ReferenceModel
    make: PromptMaker
    used: int = 0

    def prompt(self) -> ProcessedPrompt:
        self.used += 1
        return self.make(ASK.format(self.used), picture(self.used))

    @property
    def engine(self) -> Any:
        return self.executor._engine

    def expire(self, request: LlmRequest) -> None:
        """Its time is over from the next turn of the loop on."""
        heapq.heappush(self.engine._live._deadlines, (0.0, request.request_id))


@pytest.fixture(scope="module")
def house(phi4mm_checkpoint) -> Iterator[House]:
    with running(phi4mm_checkpoint, **OPTIONS) as executor:
        yield House(executor, ReferenceModel(phi4mm_checkpoint), PromptMaker(phi4mm_checkpoint))


class Hook:
    """Wraps a method of an object for one request; acts once, then counts later calls."""

    def __init__(self, owner: Any, name: str, picks: Callable[..., LlmRequest | None]) -> None:
        self.owner, self.name, self.picks = owner, name, picks
        self.plain = getattr(owner, name)
        self.act: Callable[[LlmRequest], None] | None = None
        self.calls_after = 0
        setattr(owner, name, self)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        request = self.picks(*args, **kwargs)
        if request is not None:
            if self.act is None:
                self.calls_after += 1
            else:
                act, self.act = self.act, None
                act(request)
        return self.plain(*args, **kwargs)

    def undo(self) -> None:
        setattr(self.owner, self.name, self.plain)


def hook_for(house: House, phase: str, target: int) -> Hook:
    """Where the loop passes when the target is in that phase."""

    def in_batch(wanted: Callable[[LlmRequest], bool]) -> Callable[..., LlmRequest | None]:
        def pick(scheduled, *_: Any) -> LlmRequest | None:
            for entry in scheduled:
                if entry.request.request_id == target and wanted(entry.request):
                    return entry.request
            return None

        return pick

    def is_target(*args: Any) -> LlmRequest | None:
        found = [one for one in args if isinstance(one, LlmRequest)]
        return found[0] if found and found[0].request_id == target else None

    engine = house.engine
    if phase == "encoding":
        return Hook(engine._encoder, "_encode", is_target)
    if phase == "paused":
        return Hook(engine._burst, "leave", is_target)
    wanted = {
        "chunk 1": lambda request: request.num_written == request.cached_tokens,
        "chunk 2": lambda request: (
            request.in_context and request.num_written > request.cached_tokens
        ),
        "generation": lambda request: request.state is RequestState.GENERATION,
    }[phase]
    return Hook(engine._engine, "forward", in_batch(wanted))


def fail_with(error: Exception) -> Callable[..., None]:
    def act(*_: Any) -> None:
        raise error

    return act


RUNNING = ("encoding", "chunk 1", "chunk 2", "generation")
CELLS = [
    *(
        (cause, phase)
        for cause in ("cancel", "deadline")
        for phase in ("queued", *RUNNING, "paused")
    ),
    *((cause, phase) for cause in ("error", "out of memory") for phase in RUNNING),
    ("error", "sampling"),
    ("out of memory", "sampling"),
]
ERRORS = {
    "error": ValueError("as if by a fault"),
    "out of memory": torch.OutOfMemoryError("as if it were full"),
}


def check_end(result: Any, cause: str) -> None:
    if cause == "cancel":
        assert result.result(timeout=60).outputs[0].finish_reason == "cancelled"
    elif cause == "deadline":
        with pytest.raises(DeadlineExceededError):
            result.result(timeout=60)
    else:
        with pytest.raises(EngineError, match="as if"):
            result.result(timeout=60)


@pytest.mark.parametrize(("cause", "phase"), CELLS)
def test_whatever_ends_a_request_in_whatever_phase_concerns_it_alone(house, cause, phase) -> None:
    executor = house.executor
    around, prompt, after = house.prompt(), house.prompt(), house.prompt()
    count = 130 if phase == "paused" else 8
    with held(executor):
        neighbour = start(executor, around, 130 if phase == "paused" else 20)
        result = start(executor, prompt, count, timeout=1000.0)
        target = result.request_id

        def act(request: LlmRequest) -> None:
            if cause == "cancel":
                result.abort()
            elif cause == "deadline":
                house.expire(request)
            else:
                # Also where the batch is run again request by request.
                hook.act = act
                raise ERRORS[cause]

        if phase == "queued":
            hook = None
            if cause == "cancel":
                result.abort()
            else:
                executor._engine.call(lambda: house.expire(executor._engine._live.get(target)))
        elif phase == "sampling":
            hook = Hook(
                house.engine._runner._sampler,
                "sample",
                lambda logits, requests, *_: next(
                    (one for one in requests if one.request_id == target), None
                ),
            )
            hook.plain = failing_for(hook.plain, target, ERRORS[cause])
        else:
            hook = hook_for(house, phase, target)
            hook.act = act
    try:
        check_end(result, cause)
        tokens = neighbour.result(timeout=120).outputs[0].token_ids
        assert tokens == house.reference.greedy(around, len(tokens)).tokens
    finally:
        if hook is not None:
            hook.undo()
    if hook is not None and cause in ("cancel", "deadline"):
        assert hook.act is None, "the phase was never reached"
        assert hook.calls_after <= 1, "it went on for more than the step in which it was ended"
    good = start(executor, after, NEW).result(timeout=60)
    assert good.outputs[0].token_ids == house.reference.greedy(after, NEW).tokens
    again = start(executor, prompt, NEW).result(timeout=60)
    assert again.outputs[0].token_ids == house.reference.greedy(prompt, NEW).tokens
    assert_idle(executor)
    executor.reset_reuse_state()
    state = assert_idle(executor)["kvCacheStats"]
    assert state["freeNumBlocks"] == state["maxNumBlocks"] and state["cachedNumBlocks"] == 0


def failing_for(sample: Callable[..., Any], target: int, error: Exception) -> Callable[..., Any]:
    """A sampler that cannot choose for one request."""

    def sampled(logits: torch.Tensor, requests: Any, *ahead: Any) -> list[Any]:
        chosen = sample(logits, requests, *ahead)
        return [
            error if request.request_id == target else choice
            for request, choice in zip(requests, chosen, strict=True)
        ]

    return sampled


def test_options_that_cannot_be_sampled_fail_their_request_alone(house, monkeypatch) -> None:
    """The real sampler: an error inside it is told for its request only."""
    draw = "tensorrt_llm._torch.pyexecutor.sampler.draw_tokens"
    monkeypatch.setattr(draw, fail_with(RuntimeError("as if by torch")))
    bad, good = house.prompt(), house.prompt()
    with held(house.executor):
        failing = start(house.executor, bad, NEW, temperature=1.0, top_k=5)
        neighbour = start(house.executor, good, NEW)
    with pytest.raises(EngineError, match="sampling failed: RuntimeError: as if by torch"):
        failing.result(timeout=60)
    assert neighbour.result().outputs[0].token_ids == house.reference.greedy(good, NEW).tokens
    assert_idle(house.executor)


def test_an_answer_that_cannot_be_told_ends_its_request_alone(house) -> None:
    deaf, good = house.prompt(), house.prompt()
    with held(house.executor):
        lost = start(house.executor, deaf, 200)
        neighbour = start(house.executor, good, NEW)

        def deafen() -> None:
            request = house.engine._live.get(lost.request_id)
            request.push = fail_with(RuntimeError("nobody there"))

        house.engine.call(deafen)
    assert neighbour.result().outputs[0].token_ids == house.reference.greedy(good, NEW).tokens
    deadline = time.monotonic() + 60
    while house.executor.snapshot()["numActiveRequests"]:
        assert time.monotonic() < deadline
    assert_idle(house.executor)


MANAGER_CALLS = (
    "add_sequence",
    "probe",
    "share_tail",
    "extend_sequence",
    "append_batch",
    "commit_batch",
    "block_tables",
    "take_copy_plan",
    "copies_done",
    "stats",
    "refresh",
    "flush_events",
)


class FaultyManager:
    """The real manager, of which one call fails once."""

    def __init__(self, real: Any, name: str, nth: int) -> None:
        self._real, self._name, self._left = real, name, nth
        self.calls: dict[str, int] = {}

    def __getattr__(self, name: str) -> Any:
        function = getattr(self._real, name)
        if not callable(function):
            return function

        def call(*args: Any, **kwargs: Any) -> Any:
            self.calls[name] = self.calls.get(name, 0) + 1
            if name == self._name and self.calls[name] == self._left:
                raise RuntimeError("as if by the manager")
            return function(*args, **kwargs)

        return call


# Calls made for one request (the time is told for whom admission is tried), and those that are made
# for none. The others are made for a batch.
MOST_FAILURES = {
    **dict.fromkeys(("add_sequence", "probe", "share_tail", "extend_sequence", "refresh"), 1),
    **dict.fromkeys(("stats", "flush_events"), 0),
}


def load(house: House) -> tuple[list[ProcessedPrompt], list[Any]]:
    """Requests that make the engine use every call: equals, copies, growth and pauses."""
    equal, long = house.prompt(), house.prompt()
    prompts = [equal, equal, long, house.prompt(), house.prompt()]
    with held(house.executor):
        results = [start(house.executor, one, 50) for one in prompts]
    return prompts, results


@pytest.mark.parametrize("nth", [1, 3])
@pytest.mark.parametrize("name", MANAGER_CALLS)
def test_a_call_of_the_manager_that_fails_costs_the_requests_it_was_for(house, name, nth) -> None:
    cache = house.engine._kv_cache
    real = cache.impl
    faulty = FaultyManager(real, name, nth)
    cache.impl = faulty
    try:
        prompts, results = load(house)
        failures = 0
        for prompt, result in zip(prompts, results, strict=True):
            try:
                tokens = result.result(timeout=120).outputs[0].token_ids
            except EngineError as error:
                assert "as if by the manager" in str(error)
                failures += 1
            else:
                assert tokens == house.reference.greedy(prompt, 50).tokens
        assert failures <= MOST_FAILURES.get(name, len(results))
        assert house.executor.is_healthy()
        if nth == 1:
            assert faulty.calls.get(name, 0) >= 1, "this load never makes that call"
    finally:
        cache.impl = real
    good = house.prompt()
    expected = house.reference.greedy(good, NEW).tokens
    assert start(house.executor, good, NEW).result(timeout=60).outputs[0].token_ids == expected
    assert_idle(house.executor)


def test_the_list_of_manager_calls_is_complete(house) -> None:
    """Found by tracing, so that a new call site is not forgotten."""
    cache = house.engine._kv_cache
    real = cache.impl
    cache.impl = traced = FaultyManager(real, "", 0)
    try:
        _, results = load(house)
        for result in results:
            result.result(timeout=120)
    finally:
        cache.impl = real
    assert set(traced.calls) == {*MANAGER_CALLS, "free_sequence"}


def test_a_manager_that_cannot_take_blocks_back_ends_the_engine(phi4mm_checkpoint) -> None:
    """Its books are wrong then; going on could give wrong answers."""
    make = PromptMaker(phi4mm_checkpoint)
    with running(phi4mm_checkpoint) as executor:
        cache = executor._engine._kv_cache
        cache.impl = FaultyManager(cache.impl, "free_sequence", 1)
        with held(executor):
            results = [start(executor, make(ASK.format(n), picture(n)), 5 + 90 * n) for n in (0, 1)]
        for result in results:
            with pytest.raises(EngineStoppedError):
                result.result(timeout=60)
        assert not executor.is_healthy()
        with pytest.raises(EngineStoppedError):
            executor.snapshot()
