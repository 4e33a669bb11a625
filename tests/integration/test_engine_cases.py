# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""What went wrong for others in engines, with its neighbours: C26, C27 and C30 of the case log."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
from support.engine import assert_idle, deferred, held, running, start, text_prompt, wait_until
from support.media import clip, picture
from support.prompts import PromptMaker
from support.reference import ReferenceModel

from tensorrt_llm.executor.host_process import HostProcess
from tensorrt_llm.inputs.data import ProcessedPrompt

NEW = 4
LEAD = "<|user|>Look at this with great care and then say in a few words what it may be. "
TAIL = "What?<|end|><|assistant|>"


@pytest.fixture(scope="module")
def make(phi4mm_checkpoint: Path) -> PromptMaker:
    return PromptMaker(phi4mm_checkpoint)


@pytest.fixture(scope="module")
def reference(phi4mm_checkpoint: Path) -> ReferenceModel:
    return ReferenceModel(phi4mm_checkpoint)


@pytest.mark.parametrize("bound", [20_000, 0])
def test_new_pictures_without_end_take_no_more_memory(
    phi4mm_checkpoint: Path, make: PromptMaker, reference: ReferenceModel, bound: int
) -> None:
    """C26: the bound holds whenever one looks; what fell out is made again and right."""
    process = psutil.Process()

    def prompt(seed: int) -> ProcessedPrompt:
        return make(LEAD + "<|image|>" + TAIL, picture(seed, 60, 40))

    options: dict[str, Any] = {"multimodal_config": {"encoder_cache_max_bytes": bound}}
    resident, seed = [], 100
    with running(phi4mm_checkpoint, kv_max_tokens=2048, **options) as executor:
        first = reference.greedy(prompt(seed), NEW).tokens
        assert start(executor, prompt(seed), NEW).result().outputs[0].token_ids == first
        for at_once in (1, 8, 1, 8):
            for _ in range(8 // at_once):
                prompts = [prompt(seed := seed + 1) for _ in range(at_once)]
                for result in [start(executor, one, 1) for one in prompts]:
                    result.result(timeout=60)
                store = assert_idle(executor)["multimodalStats"]["embeddingStore"]
                assert store["maxBytes"] == bound and store["currentBytes"] <= bound
                assert (store["itemCount"] == 0) == (bound == 0)
            resident.append(process.memory_info().rss)
        assert bound == 0 or store["evictions"] > 0, "no pressure"
        assert resident[-1] < 1.05 * resident[1]
        executor.reset_reuse_state()
        for cached in (0, len(prompt(100)) - 1):
            again = start(executor, prompt(100), NEW).result()
            assert (again.outputs[0].token_ids, again.cached_tokens) == (first, cached)


def test_forgetting_reaches_every_cache_and_no_running_answer(
    phi4mm_checkpoint: Path, make: PromptMaker, reference: ReferenceModel, engine_host: HostProcess
) -> None:
    """C27, with a door that remembers the item: it is asked for it and has it ready."""
    prompt = make(LEAD + "<|image|>" + TAIL, picture(3))
    count, whole = 60, len(prompt) - 1
    right = reference.greedy(prompt, count).tokens
    loaded: list[int] = []

    def ask(executor: Any, cached: int, runs: int) -> None:
        result = start(executor, deferred(prompt, loaded.append), NEW).result(timeout=60)
        assert (result.outputs[0].token_ids, result.cached_tokens) == (right[:NEW], cached)
        state = executor.snapshot()
        assert state["multimodalStats"]["encoderRuns"]["image"] == len(loaded) == runs

    options = {"kv_host_cache_size": "1MiB"}
    with running(phi4mm_checkpoint, host=engine_host, **options) as executor:
        ask(executor, 0, 1)
        ask(executor, whole, 1)
        assert executor.reset_reuse_state() > 0
        ask(executor, 0, 2)
        ask(executor, whole, 2)
        stream = start(executor, prompt, count)
        wait_until(lambda: executor.snapshot()["numActiveRequests"] == 1, "it runs")
        executor.reset_reuse_state()
        assert not stream.finished, "it has to run while all is forgotten"
        ask(executor, 0, 3)
        assert stream.result(timeout=60).outputs[0].token_ids == right
        ask(executor, whole, 3)
        assert_idle(executor)


@pytest.mark.parametrize("media", [False, True])
def test_salts_keep_tenants_apart_in_every_cache(
    phi4mm_checkpoint: Path, make: PromptMaker, reference: ReferenceModel, media: bool
) -> None:
    """C30: with a host tier that is used, and encoder rows; the same salt finds all of its own."""
    prompt = make(LEAD * 3 + "<|image|>" * media + TAIL, *([picture(4)] if media else []))
    right = reference.greedy(prompt, NEW).tokens
    whole = len(prompt) - 1
    asked = [("a", 0), ("a", whole), ("b", 0), (None, 0), (None, whole), ("c", 0), ("a", whole)]
    # Room for one and a half of them: whatever comes next pushes the others to the host.
    room = 3 * len(prompt) // 2 // 32 * 32 + 32
    options: dict[str, Any] = {"kv_max_tokens": room, "kv_host_cache_size": "4MiB"}
    with running(phi4mm_checkpoint, **options) as executor:
        for number, (salt, cached) in enumerate(asked):
            result = start(executor, prompt, NEW, cache_salt=salt).result(timeout=60)
            assert result.outputs[0].token_ids == right
            assert result.cached_tokens == cached, (number, salt)
        state = assert_idle(executor)
        assert state["kvCacheStats"]["onboardedBlocks"] > 0, "the host tier was not used"
        # A tenant's rows are nobody else's either.
        assert state["multimodalStats"]["encoderRuns"]["image"] == (4 if media else 0)
        executor.reset_reuse_state()
        with held(executor):
            results = [start(executor, prompt, NEW, cache_salt=salt) for salt in ("a", "b", "a")]
        assert [one.result(timeout=60).cached_tokens for one in results] == [0, 0, whole]
        assert [one.outputs[0].token_ids for one in results] == [right] * 3


def test_a_clip_of_which_a_part_is_cached(
    phi4mm_checkpoint: Path, make: PromptMaker, reference: ReferenceModel
) -> None:
    """C12 where the end of the clip has left the cache: rows and placeholders still fit."""
    ask = LEAD + "<|audio|> and <|audio|> " + TAIL
    one, other = clip(5, 6.0), clip(6, 3.0)
    prompt = make(ask, one, other)
    run = prompt.items[0].runs[0]
    right = reference.greedy(prompt, NEW).tokens
    inside = 0
    with running(phi4mm_checkpoint, kv_max_tokens=-(-len(prompt) // 32) * 32 + 64) as executor:
        for turn in range(8):
            result = start(executor, prompt, NEW).result(timeout=60)
            assert result.outputs[0].token_ids == right
            inside += run.position < result.cached_tokens < run.position + run.length
            # Takes the blocks that were used longest ago: the tail of the prompt before its head.
            filler = np.random.default_rng(turn).integers(5, 1200, 32 * (2 + turn % 5) - NEW)
            start(executor, text_prompt(filler), NEW).result(timeout=60)
        assert_idle(executor)
    assert inside > 0, "no reuse ended inside the clip"
