# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""A request whose rows have to be made waits for the door, alone, and always comes to an end."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
import torch
from support.engine import assert_idle, deferred, held, running, start, wait_until
from support.media import clip, picture
from support.prompts import PromptMaker
from support.reference import ReferenceModel

from tensorrt_llm.errors import DeadlineExceededError, EngineError, EngineStoppedError, MediaError

NEW = 5
IMAGE, AUDIO = "<|image|>", "<|audio|>"
TAIL = "<|end|><|assistant|>"


@pytest.fixture(scope="module")
def reference(phi4mm_checkpoint) -> ReferenceModel:
    return ReferenceModel(phi4mm_checkpoint)


@pytest.fixture(scope="module")
def make(phi4mm_checkpoint) -> PromptMaker:
    return PromptMaker(phi4mm_checkpoint)


class Door:
    """Prepares items when it is let to, and remembers which."""

    def __init__(self, *, opened: bool = True) -> None:
        self.gate = threading.Event()
        self.asked: list[int] = []
        if opened:
            self.gate.set()

    def __call__(self, index: int) -> None:
        self.asked.append(index)
        assert self.gate.wait(60)


def fail(error: Exception) -> Callable[[int], Any]:
    def load(index: int) -> Any:
        raise error

    return load


def waiting(executor) -> int:
    return executor.snapshot()["numRequestsWaitingForItems"]


def test_items_are_asked_for_once_and_the_answer_is_the_same(
    phi4mm_checkpoint, make, reference
) -> None:
    prompt = make(f"<|user|>{IMAGE}{AUDIO}{IMAGE}?{TAIL}", picture(1), clip(1), picture(2))
    expected = reference.greedy(prompt, NEW)
    with running(phi4mm_checkpoint, max_num_tokens=64) as executor:
        door = Door()
        result = start(executor, deferred(prompt, door), NEW).result()
        assert sorted(door.asked) == [0, 1, 2], "all together, each once, whatever the chunks"
        assert result.outputs[0].token_ids == expected.tokens
        torch.testing.assert_close(
            result.outputs[0].generation_logits, expected.logits, atol=1e-4, rtol=0
        )
        # Now the KV cache or the store has all of them.
        door = Door()
        result = start(executor, deferred(prompt, door), NEW).result()
        assert (door.asked, result.cached_tokens) == ([], len(prompt) - 1)
        other = make(f"<|user|>Well, {IMAGE}!{TAIL}", picture(2))
        result = start(executor, deferred(other, door), NEW).result()
        assert door.asked == []
        assert result.outputs[0].token_ids == reference.greedy(other, NEW).tokens
        assert_idle(executor)


def test_others_go_on_while_one_waits(phi4mm_checkpoint, make, reference) -> None:
    slow = make(f"<|user|>{IMAGE} slow{TAIL}", picture(3))
    quick = [make(f"<|user|>{IMAGE} quick {n}{TAIL}", picture(4 + n)) for n in range(3)]
    door = Door(opened=False)
    with running(phi4mm_checkpoint) as executor:
        one = start(executor, deferred(slow, door), NEW)
        wait_until(lambda: waiting(executor) == 1, "the request waits for its item")
        for prompt in (*quick, deferred(quick[0]), make("<|user|>Words." + TAIL)):
            result = start(executor, prompt, NEW).result(timeout=60)
            assert result.outputs[0].token_ids == reference.greedy(prompt, NEW).tokens
        assert not one.finished and waiting(executor) == 1
        executor.iteration_stats()
        assert executor.snapshot()["numActiveRequests"] == 1
        assert executor.iteration_stats() == [], "a loop with nothing to run does not run"
        door.gate.set()
        assert one.result().outputs[0].token_ids == reference.greedy(slow, NEW).tokens
        assert_idle(executor)


def test_an_item_that_the_store_has_lost_is_asked_for_again(
    phi4mm_checkpoint, make, reference
) -> None:
    """The door knows the item, the engine no longer has its rows: time is lost, nothing else."""
    prompt = make(f"<|user|>{IMAGE}?{TAIL}", picture(5))
    with running(phi4mm_checkpoint) as executor:
        first = start(executor, prompt, NEW).result()
        executor.reset_reuse_state()
        door = Door()
        again = start(executor, deferred(prompt, door), NEW).result()
        assert (door.asked, again.cached_tokens) == ([0], 0)
        assert again.outputs[0].token_ids == first.outputs[0].token_ids
        assert executor.snapshot()["multimodalStats"]["encoderRuns"]["image"] == 2


@pytest.mark.parametrize(
    ("error", "kind", "words"),
    [
        (MediaError("truncated", part="messages[0]"), MediaError, r"messages\[0\]: truncated"),
        (RuntimeError("oh"), EngineError, "preparing its media failed: RuntimeError: oh"),
    ],
)
@pytest.mark.parametrize("own_process", [False, True])
def test_an_item_that_cannot_be_prepared_fails_its_request_alone(
    phi4mm_checkpoint, make, reference, error, kind, words, own_process, request
) -> None:
    host = request.getfixturevalue("engine_host") if own_process else None
    prompt = make(f"<|user|>{IMAGE}{AUDIO}?{TAIL}", picture(6), clip(6))
    with running(phi4mm_checkpoint, host=host) as executor:
        neighbour = start(executor, make("<|user|>Words." + TAIL), 40)
        with pytest.raises(kind, match=words):
            start(executor, deferred(prompt, fail(error)), NEW).result(timeout=60)
        assert neighbour.result().outputs[0].length == 40
        result = start(executor, deferred(prompt), NEW).result()
        assert result.cached_tokens == 0
        assert result.outputs[0].token_ids == reference.greedy(prompt, NEW).tokens
        assert_idle(executor)


def test_cancelling_a_request_that_waits_frees_it_at_once(
    phi4mm_checkpoint, make, reference
) -> None:
    prompt = make(f"<|user|>{IMAGE}?{TAIL}", picture(7))
    door = Door(opened=False)
    with running(phi4mm_checkpoint) as executor:
        one = start(executor, deferred(prompt, door), NEW)
        wait_until(lambda: waiting(executor) == 1, "the request waits for its item")
        one.abort()
        assert one.result(timeout=60).outputs[0].finish_reason == "cancelled"
        assert_idle(executor)
        door.gate.set()  # what comes late is for nobody
        result = start(executor, prompt, NEW).result()
        assert result.outputs[0].token_ids == reference.greedy(prompt, NEW).tokens
        assert_idle(executor)


def test_the_deadline_of_a_request_that_waits_is_kept(phi4mm_checkpoint, make) -> None:
    door = Door(opened=False)
    with running(phi4mm_checkpoint) as executor:
        prompt = deferred(make(f"<|user|>{IMAGE}{TAIL}", picture(9)), door)
        began = time.monotonic()
        # A loop with nothing to run keeps it too: nobody else wakes it.
        with pytest.raises(DeadlineExceededError):
            start(executor, prompt, NEW, timeout=0.4).result(timeout=60)
        assert time.monotonic() - began >= 0.4
        door.gate.set()
        assert_idle(executor)


def test_equals_of_a_request_that_waits_have_the_item_prepared_once(
    phi4mm_checkpoint, make, reference
) -> None:
    prompt = make(f"<|user|>{IMAGE} and some words{TAIL}", picture(10))
    door = Door(opened=False)
    with running(phi4mm_checkpoint) as executor:
        with held(executor):
            results = [start(executor, deferred(prompt, door), NEW) for _ in range(8)]
        wait_until(lambda: waiting(executor) == 1, "the first waits for its item")
        # The first gives up; the next asks, for the door has no memory of it.
        results[0].abort()
        wait_until(lambda: len(door.asked) == 2, "the next asks")
        door.gate.set()
        expected = reference.greedy(prompt, NEW).tokens
        assert [one.result().outputs[0].token_ids for one in results[1:]] == [expected] * 7
        assert door.asked == [0, 0]
        state = assert_idle(executor)
        assert state["multimodalStats"]["encoderRuns"]["image"] == 1


def test_a_pause_while_waiting_for_an_item_loses_nothing(
    phi4mm_checkpoint, make, reference
) -> None:
    """Its blocks go to one before it; admitted again, it asks again."""
    prompt = make(f"<|user|>{IMAGE}{TAIL}", picture(11))
    lead = make("<|user|>Go on, and on. " + TAIL)
    count = 32 * 16 - len(lead)
    options = {"scheduler_config": {"capacity_scheduler_policy": "MAX_UTILIZATION"}}
    door = Door(opened=False)
    with running(phi4mm_checkpoint, kv_max_tokens=32 * 16, **options) as executor:
        first = start(executor, lead, count)
        second = start(executor, deferred(prompt, door), NEW)
        wait_until(lambda: waiting(executor) == 1, "it waits for its item")
        wait_until(lambda: executor.snapshot()["numPausedRequests"] == 1, "it is paused")
        assert waiting(executor) == 0
        door.gate.set()
        assert first.result().outputs[0].length == count
        assert second.result().outputs[0].token_ids == reference.greedy(prompt, NEW).tokens
        assert_idle(executor)


def test_stopping_ends_a_request_that_waits(phi4mm_checkpoint, make) -> None:
    door = Door(opened=False)
    with running(phi4mm_checkpoint) as executor:
        one = start(executor, deferred(make(f"<|user|>{IMAGE}{TAIL}", picture(8)), door), NEW)
        wait_until(lambda: waiting(executor) == 1, "the request waits for its item")
        executor.shutdown()
        with pytest.raises(EngineStoppedError):
            one.result(timeout=60)
        door.gate.set()
