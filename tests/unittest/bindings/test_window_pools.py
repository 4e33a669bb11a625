# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Window pools through the binding: what paged attention reads is what the sequence wrote.

An engine of a few lines keeps one number a token in each pool, where the tables and copy plans say.
"Attention" of a token is the sum over the tokens in its window; the oracle adds up the sequence's
own numbers.
"""

from __future__ import annotations

import numpy as np
import pytest

from tensorrt_llm.bindings import (
    CapacityExceededError,
    CopyKind,
    InvalidArgumentError,
    KVCacheManager,
    ReuseScope,
)

SIZE = 4
STEP = 6


class Engine:
    """A manager, and pools that hold something; a window of 0 stands for full attention."""

    def __init__(self, windows: list[tuple[int, int]], partial: bool = False) -> None:
        self.manager = KVCacheManager(
            64, SIZE, enable_partial_reuse=partial, window_pools=windows, max_step_tokens=STEP
        )
        self.windows = [0, *(window for window, _ in windows)]
        self.pools = [np.zeros((blocks, SIZE)) for blocks in (64, *(n for _, n in windows))]
        self.copied: set[int] = set()

    def add(self, sequence_id: int, prompt: np.ndarray) -> int | None:
        """Cached tokens, or None where it does not fit now."""
        got = self.manager.add_sequence(sequence_id, prompt, None, ReuseScope(), 1)
        self.run_copies()
        return None if got is None else got.cached_tokens

    def run_copies(self) -> None:
        plan = self.manager.take_copy_plan()
        for kind, source, destination, num_tokens, pool in plan.entries:
            assert kind in (CopyKind.PARTIAL, CopyKind.FORK)
            self.pools[pool][destination, :num_tokens] = self.pools[pool][source, :num_tokens]
            self.copied.add(int(pool))
        if plan.ticket:
            self.manager.copies_done(plan.ticket)

    def compute(self, sequence_id: int, prompt: np.ndarray, begin: int, end: int) -> None:
        """Writes the tokens of a prompt, and compares what each reads."""
        values = np.cumsum(prompt + 1.0)  # as KV is: made from all that came before
        for first in range(begin, end, STEP):
            last = min(first + STEP, end)
            for pool, window in enumerate(self.windows):
                table = self.manager.block_tables(np.array([sequence_id]), pool)[0]
                for token in range(first, last):
                    self.pools[pool][table[token // SIZE], token % SIZE] = values[token]
                    start = max(0, token + 1 - window) if window else 0
                    seen = np.arange(start, token + 1)
                    assert (table[seen // SIZE] >= 0).all()
                    found = self.pools[pool][table[seen // SIZE], seen % SIZE].sum()
                    assert found == values[start : token + 1].sum(), (pool, token)
            self.manager.commit(sequence_id, last)
        self.manager.check_integrity()

    def run(self, sequence_id: int, prompt: np.ndarray) -> int:
        cached = self.add(sequence_id, prompt)
        assert cached is not None
        self.compute(sequence_id, prompt, cached, len(prompt))
        self.manager.free_sequence(sequence_id)
        return cached


def prompt_of(first: int, length: int) -> np.ndarray:
    return np.arange(first, first + length, dtype=np.int32)


@pytest.mark.parametrize("window", [2, 5, 8, 9])
def test_a_small_pool_serves_long_prompts_and_repeats(window: int) -> None:
    engine = Engine([(window, 8)])
    prompt = prompt_of(0, 101)
    assert engine.run(1, prompt) == 0
    assert engine.run(2, prompt) == 100
    pool = engine.manager.stats().window_pools[0]
    assert pool.window_size == window
    assert pool.max_num_blocks == pool.free_num_blocks == 8
    assert pool.released_blocks > 8
    assert pool.evicted_blocks > 0
    assert pool.promised_num_blocks == 0
    # A prefix whose window is gone is computed again, and told apart from one that is there.
    assert engine.manager.explain(prompt[:41], None, ReuseScope()).reason == "window"
    assert engine.run(3, prompt[:41]) == 0
    assert engine.run(4, prompt[:41]) == 40


def test_random_prompts_read_what_they_wrote() -> None:
    random = np.random.default_rng(7)
    engine = Engine([(5, 9), (11, 14)], partial=True)
    cached, live = 0, {}
    for sequence_id in range(150):
        prompt = np.zeros(random.integers(1, 60), np.int32)
        prompt[random.integers(0, len(prompt))] = random.integers(0, 3)
        got = engine.add(sequence_id, prompt)
        if got is None:
            ended = min(live)
            engine.compute(ended, live[ended][0], live[ended][1], len(live[ended][0]))
            engine.manager.free_sequence(ended)
            del live[ended]
            continue
        cached += got
        live[sequence_id] = (prompt, got)
        if random.integers(3) == 0:  # aborted somewhere on its way
            half = got + (len(prompt) - got) // 2
            engine.compute(sequence_id, prompt, got, half)
            engine.manager.free_sequence(sequence_id)
            del live[sequence_id]
    stats = engine.manager.stats()
    assert cached > 500
    assert engine.copied == {0, 1, 2}
    assert all(pool.evicted_blocks > 0 for pool in stats.window_pools)


def test_forks_copy_in_every_pool() -> None:
    engine = Engine([(5, 9), (11, 14)])
    prompt = prompt_of(0, 20)
    engine.add(1, prompt)
    engine.compute(1, prompt, 0, 14)
    assert engine.manager.fork(1, 2) is not None
    engine.run_copies()
    assert engine.copied == {0, 1, 2}
    for sequence_id in (2, 1):
        engine.compute(sequence_id, prompt, 14, 20)


def test_tables_have_one_shape_in_all_pools() -> None:
    engine = Engine([(5, 9)])
    prompt = prompt_of(0, 20)
    engine.add(1, prompt)
    engine.compute(1, prompt, 0, 14)
    full = engine.manager.block_tables(np.array([1]), 0)
    window = engine.manager.block_tables(np.array([1]), pool=1)
    assert full.shape == window.shape == (1, 5)
    assert (full >= 0).all()
    assert (window >= 0).tolist() == [[False, False, True, True, True]]
    assert engine.manager.block_ids(1, pool=1).tolist() == window[0].tolist()


def test_errors_name_the_pool_and_both_numbers() -> None:
    manager = KVCacheManager(64, SIZE, window_pools=[(5, 9), (40, 9)], max_step_tokens=STEP)
    with pytest.raises(CapacityExceededError, match=r"needs 12 .* pool 2 of window 40 has 9"):
        manager.add_sequence(1, prompt_of(0, 90), None, ReuseScope(), 1)
    manager.add_sequence(1, prompt_of(0, 9), None, ReuseScope(), 1)
    with pytest.raises(InvalidArgumentError, match="7 new tokens at once, max_step_tokens is 6"):
        manager.commit(1, 7)
    with pytest.raises(InvalidArgumentError, match="pool is 3, expected 0 to 2"):
        manager.block_ids(1, 3)
    with pytest.raises(InvalidArgumentError, match="window_size is 1"):
        KVCacheManager(8, SIZE, window_pools=[(1, 9)])
    assert KVCacheManager(8, SIZE).stats().window_pools == []
