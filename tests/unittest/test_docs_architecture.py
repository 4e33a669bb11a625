# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""The picture of a request's life says what requests do: each arrow was seen, and no other."""

from __future__ import annotations

import re
import threading
from pathlib import Path
from typing import Any

import pytest
from support.checkpoints import REPOSITORY
from support.engine import assert_idle, deferred, held, running, start, wait_until
from support.media import picture
from support.prompts import PromptMaker

from tensorrt_llm._torch.pyexecutor.llm_request import LlmRequest, RequestState

Arrow = tuple[str, str]
START = END = "[*]"
SMALL_STEPS: dict[str, Any] = {
    "kv_max_tokens": 16 * 32,
    "max_num_tokens": 6,
    "scheduler_config": {"capacity_scheduler_policy": "MAX_UTILIZATION"},
}


def drawn() -> set[Arrow]:
    """The arrows of the picture."""
    document = (REPOSITORY / "docs" / "architecture.md").read_text(encoding="utf-8")
    (diagram,) = re.findall(r"```mermaid\nstateDiagram-v2\n(.*?)```", document, re.DOTALL)
    return set(re.findall(r"^\s*(\S+) --> ([^\s:]+)", diagram, re.MULTILINE))


@pytest.fixture
def walked(monkeypatch: pytest.MonkeyPatch) -> set[Arrow]:
    """The arrows that requests go along while the test runs."""
    seen: set[Arrow] = set()

    def record(request: LlmRequest, name: str, value: Any) -> None:
        if name == "state":
            before = getattr(request, "state", None) if "state" in vars(request) else None
            if before is not value:
                seen.add((START if before is None else before.name, value.name))
            if value is RequestState.FINISHED:
                seen.add((value.name, END))
        object.__setattr__(request, name, value)

    monkeypatch.setattr(LlmRequest, "__setattr__", record)
    return seen


def test_the_picture_shows_each_way_that_requests_go(
    phi4mm_checkpoint: Path, walked: set[Arrow]
) -> None:
    make = PromptMaker(phi4mm_checkpoint)
    lead = make("<|user|>Go on, and on.<|end|><|assistant|>")
    long = make("<|user|>" + "word " * 440 + "<|end|><|assistant|>")
    seen = make("<|user|><|image|><|end|><|assistant|>", picture(11))
    assert 13 * 32 < len(long) <= 14 * 32, "it takes all blocks but two, and many steps"
    gate = threading.Event()

    def state_is(executor: Any, name: str, count: int = 1) -> None:
        wait_until(lambda: executor.snapshot()[name] == count, f"{name} is {count}")

    with running(phi4mm_checkpoint, **SMALL_STEPS) as executor:
        # Written in many steps, and paused in one of them for one before it.
        with held(executor):
            first, second = start(executor, lead, 60), start(executor, long, 1)
        first.result(timeout=60)
        second.result(timeout=60)
        # Two that generate until there is no room for both; the one that is paused gives up.
        with held(executor):
            first, second = start(executor, lead, 400), start(executor, lead, 400, cache_salt="b")
        state_is(executor, "numPausedRequests")
        second.abort()
        first.result(timeout=60)
        # One that waits for its item is paused, and asks again; another gives up there.
        first = start(executor, lead, 450)
        second = start(executor, deferred(seen, lambda _: gate.wait(60)), 2)
        state_is(executor, "numRequestsWaitingForItems")
        state_is(executor, "numPausedRequests")
        gate.set()
        first.result(timeout=60)
        second.result(timeout=60)
        start(executor, deferred(seen), 2, cache_salt="c").result(timeout=60)
        gate.clear()
        executor.reset_reuse_state()
        second = start(executor, deferred(seen, lambda _: gate.wait(60)), 2)
        state_is(executor, "numRequestsWaitingForItems")
        second.abort()
        gate.set()
        second.result(timeout=60)
        with held(executor):
            first = start(executor, lead, 1)
            first.abort()
        first.result(timeout=60)
        # A search with beams; and one that is given up while its prompt waits for an item.
        beams = {"use_beam_search": True, "best_of": 2, "return_generation_logits": False}
        start(executor, lead, 4, **beams).result(timeout=60)
        gate.clear()
        executor.reset_reuse_state()
        second = start(executor, deferred(seen, lambda _: gate.wait(60)), 2, **beams)
        state_is(executor, "numRequestsWaitingForItems")
        second.abort()
        gate.set()
        second.result(timeout=60)
        assert_idle(executor)
    assert walked == drawn()


def test_every_state_is_in_the_picture() -> None:
    assert {name for arrow in drawn() for name in arrow} == {START, *RequestState.__members__}
