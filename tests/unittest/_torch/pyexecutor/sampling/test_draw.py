# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Which distribution a token is drawn from, beside transformers', and that draws follow it."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from transformers import (
    LogitsProcessorList,
    MinPLogitsWarper,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
)

from tensorrt_llm._torch.pyexecutor.sampling import (
    DrawOptions,
    draw_tokens,
    token_probabilities,
    uniform,
)

MANY = [
    DrawOptions(temperature, top_k, top_p, min_p)
    for temperature in (0.3, 1.0, 2.5)
    for top_k in (0, 1, 5, 1000)
    for top_p in (1.0, 0.7, 1e-6)
    for min_p in (0.0, 0.05, 1.0)
]


def stock(logits: torch.Tensor, options: DrawOptions) -> torch.Tensor:
    """The distribution of transformers, ``[1, vocab_size]``."""
    warpers = LogitsProcessorList([TemperatureLogitsWarper(options.temperature)])
    if options.top_k:
        warpers.append(TopKLogitsWarper(options.top_k))
    if options.top_p < 1:
        warpers.append(TopPLogitsWarper(options.top_p))
    if options.min_p:
        warpers.append(MinPLogitsWarper(options.min_p))
    return warpers(torch.zeros(1, 1, dtype=torch.long), logits.clone()).softmax(-1)


def test_distributions_equal_those_of_transformers_in_a_batch_of_all_kinds() -> None:
    logits = torch.randn(len(MANY), 61, generator=torch.Generator().manual_seed(0)) * 3
    ours = token_probabilities(logits, MANY)
    for row, options in enumerate(MANY):
        expected = stock(logits[row : row + 1], options)[0]
        torch.testing.assert_close(ours[row].float(), expected, atol=1e-5, rtol=0, msg=str(options))


def test_of_equal_tokens_top_k_keeps_all_and_top_p_the_first() -> None:
    logits = torch.tensor([[0.0, 1.0, 1.0, 1.0, -9.0]])
    assert token_probabilities(logits, [DrawOptions(1.0, 2, 1.0, 0.0)])[0].gt(0).tolist() == [
        *(False, True, True, True, False)
    ]
    kept = token_probabilities(logits, [DrawOptions(1.0, 2, 0.5, 0.0)])[0].gt(0).tolist()
    assert kept == [False, True, True, False, False]


@pytest.mark.parametrize("temperature", [1e-50, 1e-30, 1e-3])
def test_the_coldest_temperature_takes_the_likeliest(temperature) -> None:
    logits = torch.randn(1, 50, generator=torch.Generator().manual_seed(1)) * 100
    drawn = draw_tokens(logits, [DrawOptions(temperature, 0, 1.0, 0.0)], [0.999])
    assert int(drawn) == int(logits.argmax())


@pytest.mark.parametrize(
    "options",
    [
        DrawOptions(1.0, 0, 1.0, 0.0),
        DrawOptions(0.7, 0, 1.0, 0.05),
        DrawOptions(1.0, 5, 1.0, 0.0),
        DrawOptions(2.0, 0, 0.8, 0.0),
        DrawOptions(1.3, 7, 0.9, 0.02),
    ],
    ids=str,
)
def test_draws_follow_the_distribution(options: DrawOptions) -> None:
    draws = 40_000
    logits = torch.randn(1, 20, generator=torch.Generator().manual_seed(2)) * 1.5
    expected = stock(logits, options)[0].double().numpy() * draws
    numbers = [uniform(5, position) for position in range(draws)]
    tokens = draw_tokens(logits.expand(draws, -1), [options] * draws, numbers)
    counts = np.bincount(tokens.numpy(), minlength=20)
    assert not counts[expected == 0].any()
    likely = expected > 5
    chi_square = ((counts - expected)[likely] ** 2 / expected[likely]).sum()
    # Far above the mean of the distribution, which is the number of degrees of freedom.
    freedom = likely.sum() - 1
    assert chi_square < freedom + 5 * np.sqrt(2 * freedom), chi_square


def test_seeds_and_positions_are_independent_of_each_other() -> None:
    """Neighbours of either, the most alike there are, share nothing."""
    grid = np.array([[uniform(seed, at) for at in range(400)] for seed in range(400)])
    for numbers in (grid.ravel(), grid[:, 0], grid[0], np.diag(grid), np.diag(grid[:, ::-1])):
        counts, _ = np.histogram(numbers, bins=10, range=(0, 1))
        expected = len(numbers) / 10
        assert ((counts - expected) ** 2 / expected).sum() < 33.7, "1e-4 point, 9 degrees"
    for a, b in (
        (grid[:-1], grid[1:]),
        (grid[:, :-1], grid[:, 1:]),
        (grid[:-1, 1:], grid[1:, :-1]),
    ):
        assert abs(np.corrcoef(a.ravel(), b.ravel())[0, 1]) < 0.012
    assert len(np.unique(grid)) == grid.size
    assert uniform(2**64 - 1, 0) != uniform(0, 0)


def test_a_row_does_not_depend_on_the_others() -> None:
    logits = torch.randn(len(MANY), 501, generator=torch.Generator().manual_seed(3))
    numbers = [uniform(row, 0) for row in range(len(MANY))]
    together = draw_tokens(logits, MANY, numbers).tolist()
    alone = [
        int(draw_tokens(logits[row : row + 1], [options], [numbers[row]]))
        for row, options in enumerate(MANY)
    ]
    assert together == alone


def test_a_row_without_a_choice_spoils_no_other() -> None:
    logits = torch.zeros(2, 8)
    logits[0] = -torch.inf
    for options in (DrawOptions(1.0, 3, 0.9, 0.1), DrawOptions(1.0, 0, 1.0, 0.0)):
        assert draw_tokens(logits, [options] * 2, [0.5, 0.0]).tolist()[1] == 0
