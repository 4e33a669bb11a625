# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Random load on an engine whose pool holds three requests.

``TRTLLM_LOAD_SECONDS`` says for how long each setting runs; the default is for every run of the
tests, 1800 for a night. The seed is printed, and ``TRTLLM_LOAD_SEED`` sets it.
"""

from __future__ import annotations

import os
import random
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from support.engine import assert_idle, running, start
from support.media import clip, picture
from support.prompts import PromptMaker
from support.reference import ReferenceModel

from tensorrt_llm.errors import DeadlineExceededError
from tensorrt_llm.executor.result import GenerationResult
from tensorrt_llm.inputs.data import ProcessedPrompt

SECONDS = float(os.environ.get("TRTLLM_LOAD_SECONDS", "15"))
SEED = int(os.environ.get("TRTLLM_LOAD_SEED", random.randrange(2**32)))
MOST_NEW = 80
MOST_AT_ONCE = 9
SAMPLING = {"temperature": 0.9, "top_p": 0.9, "seed": 11}


@dataclass(frozen=True)
class Question:
    """A prompt and its right answers, the longest of each kind."""

    prompt: ProcessedPrompt
    greedy: list[int]
    sampled: list[int]


@pytest.fixture(scope="module")
def questions(phi4mm_checkpoint: Path) -> list[Question]:
    """Asked of the unmodified model, sampled ones of the engine one by one and without reuse."""
    make, reference = PromptMaker(phi4mm_checkpoint), ReferenceModel(phi4mm_checkpoint)
    shared = "<|user|>These words come first in several of the requests, then something else: "
    end = "<|end|><|assistant|>"
    prompts = [
        make(shared + "one." + end),
        make(shared + "two, at some more length than the one before." * 2 + end),
        make("<|user|>Other words." + end),
        make(shared + "<|image|>?" + end, picture(1)),
        make(shared + "<|image|>?" + end, picture(2)),
        make("<|user|><|image|> and <|image|>?" + end, picture(1), picture(3, 60, 90)),
        make("<|user|>Listen: <|audio|>" + end, clip(1, 1.0)),
        make("<|user|>Listen: <|audio|>" + end, clip(2, 1.0)),
    ]
    with running(phi4mm_checkpoint, block_reuse=False) as executor:
        return [
            Question(
                prompt,
                reference.greedy(prompt, MOST_NEW).tokens,
                start(executor, prompt, MOST_NEW, **SAMPLING).result().outputs[0].token_ids,
            )
            for prompt in prompts
        ]


class Load:
    """Clients that come, wait, leave early, run out of time, and check what they got."""

    def __init__(self, executor: Any, questions: list[Question], seed: int) -> None:
        self.executor = executor
        self.questions = questions
        self.rng = random.Random(seed)
        self.active: list[tuple[GenerationResult, list[int], float]] = []  # and when to leave
        self.ended = dict.fromkeys(("length", "stop", "cancelled", "deadline"), 0)

    def arrive(self) -> None:
        """One client, or several with the same question."""
        rng = self.rng
        question = rng.choice(self.questions)
        for _ in range(rng.choice([1, 1, 1, 4])):
            if len(self.active) == MOST_AT_ONCE:
                return
            sampled = rng.random() < 0.25
            answer = question.sampled if sampled else question.greedy
            count = rng.choice([1, 8, 40, MOST_NEW, MOST_NEW])
            options: dict[str, Any] = {**SAMPLING} if sampled else {}
            if rng.random() < 0.2:
                options["stop_token_ids"] = [rng.choice(answer)]
            result = start(
                self.executor,
                question.prompt,
                count,
                cache_salt=rng.choice([None, None, None, "tenant"]),
                priority=rng.choice([0.0, 0.5, 1.0]),
                timeout=rng.choice([None, None, 60.0, 0.05]),
                **options,
            )
            right = expected(answer, count, options.get("stop_token_ids"))
            leaves = time.monotonic() + rng.choice([600.0, 600.0, 600.0, 0.5 * rng.random()])
            self.active.append((result, right, leaves))

    def look(self) -> None:
        """Takes what has come; who has had enough leaves."""
        for entry in list(self.active):
            result, answer, leaves = entry
            if time.monotonic() > leaves:
                result.abort()
            try:
                result.result(timeout=0.0)
            except TimeoutError:
                continue
            except DeadlineExceededError:
                self.ended["deadline"] += 1
            else:
                output = result.outputs[0]
                assert output.finish_reason is not None
                self.ended[output.finish_reason] += 1
                if output.finish_reason != "cancelled":
                    assert output.token_ids == answer
            assert result.outputs[0].token_ids == answer[: result.outputs[0].length]
            self.active.remove(entry)

    def finish(self) -> None:
        """Waits for those who are left."""
        deadline = time.monotonic() + 120
        while self.active:
            assert time.monotonic() < deadline, f"{len(self.active)} requests never ended"
            self.look()
            # Clients that ask without pause would hold the interpreter that the engine needs.
            time.sleep(0.002)


def expected(answer: list[int], count: int, stop: list[int] | None) -> list[int]:
    tokens = answer[:count]
    if stop is not None and stop[0] in tokens:
        return tokens[: tokens.index(stop[0]) + 1]
    return tokens


@pytest.mark.timeout(SECONDS + 450)
@pytest.mark.parametrize("host", [None, "1MiB"])
@pytest.mark.parametrize("policy", ["GUARANTEED_NO_EVICT", "MAX_UTILIZATION"])
def test_every_answer_is_right_and_everything_comes_back(
    phi4mm_checkpoint: Path, questions: list[Question], policy: str, host: str | None
) -> None:
    print(f"TRTLLM_LOAD_SEED={SEED}")
    longest = max(len(question.prompt) for question in questions) + MOST_NEW
    options: dict[str, Any] = {
        "kv_max_tokens": 3 * longest,
        "kv_host_cache_size": host,
        "max_num_tokens": 64,
        "multimodal_config": {"encoder_cache_max_bytes": 50_000},
        "scheduler_config": {"capacity_scheduler_policy": policy},
    }
    seen = dict.fromkeys(("numQueuedRequests", "numPausedRequests"), 0)
    with running(phi4mm_checkpoint, **options) as executor:
        load = Load(executor, questions, SEED)
        end = time.monotonic() + SECONDS
        # A busy machine gets more time until all that is to happen has happened once.
        pressed, lost = [0], [0]
        while time.monotonic() < end or (min(pressed) == 0 and time.monotonic() < end + 60):
            if load.rng.random() < 0.3:
                load.arrive()
            load.look()
            for record in executor.iteration_stats():
                seen["numQueuedRequests"] += record["numQueuedRequests"]
                inflight = record["inflightBatchingStats"]
                seen["numPausedRequests"] += inflight["numPausedRequests"]
                cache = record["kvCacheStats"]
                offloaded = cache["offloadedBlocks"]
                lost = [record["multimodalStats"]["embeddingStore"]["evictions"]]
                lost.append(cache["evictedBlocks"] + offloaded if host is None else offloaded)
            pressed = [seen["numQueuedRequests"], *load.ended.values(), *lost]
            if policy == "MAX_UTILIZATION":
                pressed.append(seen["numPausedRequests"])
            time.sleep(0.002)
        load.finish()
        state = assert_idle(executor)
        cache, store = state["kvCacheStats"], state["multimodalStats"]["embeddingStore"]
        assert cache["evictedBlocks"] + cache["offloadedBlocks"] > 0, "no pressure"
        assert seen["numQueuedRequests"] > 0, "no pressure"
        assert (seen["numPausedRequests"] > 0) == (policy == "MAX_UTILIZATION"), "no pressure"
        assert (cache["offloadedBlocks"] > 0) == (host is not None), "no pressure"
        assert store["evictions"] > 0, "no pressure"
        print(f"{policy}, host {host}: {load.ended}, {seen}, {cache}, {store}")
        executor.reset_reuse_state()
        state = assert_idle(executor)
        cache = state["kvCacheStats"]
        assert (cache["freeNumBlocks"], cache["cachedNumBlocks"]) == (cache["maxNumBlocks"], 0)
        assert state["multimodalStats"]["embeddingStore"]["currentBytes"] == 0
