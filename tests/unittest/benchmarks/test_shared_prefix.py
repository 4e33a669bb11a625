# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""The requests that managers are timed with, and the clock."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.shared_prefix import (
    FAMILIES,
    OWN_TOKENS,
    PROMPT_LENGTH,
    SHARED_TOKENS,
    BestHundredth,
    Prompts,
)


def test_requests_share_their_familys_tokens_and_nothing_else() -> None:
    prompts = Prompts()
    chosen, tokens = prompts.draw(64)
    assert tokens.shape == (64, PROMPT_LENGTH) and tokens.dtype == np.int32
    assert SHARED_TOKENS + OWN_TOKENS == PROMPT_LENGTH and SHARED_TOKENS / PROMPT_LENGTH > 0.89
    np.testing.assert_array_equal(tokens[:, :SHARED_TOKENS], prompts.families[chosen])
    assert set(chosen) == set(range(FAMILIES))
    heads = {row[:SHARED_TOKENS].tobytes() for row in tokens}
    tails = {row[SHARED_TOKENS:].tobytes() for row in tokens}
    assert len(heads) == len({digest.tobytes() for digest in prompts.digests}) == FAMILIES
    assert len(tails) == 64


def test_the_same_requests_in_every_process() -> None:
    (ours, one), (theirs, other) = Prompts().draw(8), Prompts().draw(8)
    np.testing.assert_array_equal(ours, theirs)
    np.testing.assert_array_equal(one, other)


def test_the_best_hundredth_is_a_mean_and_forgets_noise() -> None:
    timer = BestHundredth(100.0)
    quiet = [0.1, 0.2, 0.3, 0.2, 0.3]  # the fifth fills a part of more than a second
    turns = [2.0] * 20 + quiet + [0.01] + [2.0] * 40
    for took in turns:
        assert timer.running
        timer.add(took)
        if not timer.running:
            break
    assert timer.best == pytest.approx(sum(quiet) / 5), "a lone quick turn is no hundredth"
    assert timer.turns == 20 + 5 + 1 + 30


def test_nothing_measured_is_no_figure() -> None:
    assert BestHundredth(1.0).best == float("inf")
