# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Which distribution a token is drawn from, and that a request's stream is its own."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pytest
import torch

from tensorrt_llm._torch.pyexecutor.sampler import Sampler, token_probabilities
from tensorrt_llm.sampling_params import SamplingParams


@dataclass
class Request:
    sampling: SamplingParams
    generator: torch.Generator | None = field(default=None)


def reference(logits: np.ndarray, sampling: SamplingParams) -> np.ndarray:
    """The same rules, one token at a time, in float64."""
    scores = logits.astype(np.float64) / (sampling.temperature or 1.0)
    order = sorted(range(len(scores)), key=lambda token: -scores[token])
    if sampling.top_k:
        order = order[: sampling.top_k]
    weights = {token: np.exp(scores[token] - scores[order[0]]) for token in order}
    total = sum(weights.values())
    kept, reached = {}, 0.0
    for token in order:
        if reached >= (sampling.top_p or 1.0) and kept:
            break
        kept[token] = weights[token] / total
        reached += kept[token]
    result = np.zeros(len(scores))
    for token, weight in kept.items():
        result[token] = weight / sum(kept.values())
    return result


@pytest.mark.parametrize(
    "options",
    [
        {"temperature": 1.0},
        {"temperature": 0.3},
        {"temperature": 2.5, "top_k": 5},
        {"top_p": 0.7},
        {"top_p": 1e-6},
        {"temperature": 0.8, "top_k": 7, "top_p": 0.9},
        {"top_k": 1000},
    ],
)
def test_distribution_equals_the_reference(options) -> None:
    rng = np.random.default_rng(0)
    for _ in range(20):
        logits = rng.normal(size=50).astype(np.float32) * 3
        sampling = SamplingParams(**options)
        assert not sampling.greedy
        ours = token_probabilities(torch.from_numpy(logits), sampling).numpy()
        np.testing.assert_allclose(ours, reference(logits, sampling), atol=1e-5)


def test_draws_follow_the_distribution() -> None:
    logits = torch.log(torch.tensor([[0.5, 0.3, 0.15, 0.05]]))
    request = Request(SamplingParams(temperature=1.0, seed=5))
    counts = torch.zeros(4)
    for _ in range(4000):
        counts[Sampler().sample(logits, [request])[0].token_id] += 1
    expected = torch.tensor([0.5, 0.3, 0.15, 0.05]) * 4000
    chi_square = float(((counts - expected) ** 2 / expected).sum())
    assert chi_square < 16.3, "0.1 % point with 3 degrees of freedom"


def draws(seed: int, beside: int) -> list[int]:
    torch.manual_seed(beside)
    mine = Request(SamplingParams(temperature=1.0, seed=seed))
    others = [Request(SamplingParams(temperature=2.0, seed=n)) for n in range(beside)]
    steps = torch.Generator().manual_seed(9)
    result = []
    for _ in range(20):
        row = torch.randn(1, 100, generator=steps)
        logits = torch.cat([torch.randn(beside, 100), row])
        result.append(Sampler().sample(logits, [*others, mine])[-1].token_id)
    return result


def test_a_seed_gives_the_same_answer_whatever_else_is_in_the_batch() -> None:
    alone = draws(7, beside=0)
    assert draws(7, beside=3) == alone
    assert draws(8, beside=0) != alone
    assert len(draws(2**64 - 1, beside=0)) == 20, "the largest seed works"


def test_greedy_takes_the_likeliest_and_draws_nothing() -> None:
    logits = torch.tensor([[0.0, 3.0, 1.0], [2.0, 0.0, 1.0]])
    for options in ({}, {"temperature": 0.0}, {"top_k": 1, "temperature": 5.0}, {"top_p": 1.0}):
        requests = [Request(SamplingParams(**options)) for _ in range(2)]
        assert [s.token_id for s in Sampler().sample(logits, requests)] == [1, 0]
        assert all(request.generator is None for request in requests)


def test_logprobs_are_of_the_models_own_distribution() -> None:
    logits = torch.tensor([[1.0, 3.0, 2.0]])
    request = Request(SamplingParams(temperature=0.1, seed=1, logprobs=2))
    sampled = Sampler().sample(logits, [request])[0]
    expected = logits[0].log_softmax(-1)
    assert sampled.logprobs is not None
    assert sampled.logprobs.logprob == pytest.approx(float(expected[sampled.token_id]))
    assert [token for token, _ in sampled.logprobs.top] == [1, 2]
    assert [value for _, value in sampled.logprobs.top] == pytest.approx(expected[[1, 2]].tolist())
    nothing_beside = Request(SamplingParams(logprobs=0))
    assert Sampler().sample(logits, [nothing_beside])[0].logprobs.top == ()
