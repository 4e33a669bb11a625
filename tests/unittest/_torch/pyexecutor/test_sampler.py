# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""One pass over a batch: each request's options act on its own row, whatever stands beside it."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from transformers import NoBadWordsLogitsProcessor

from tensorrt_llm._torch.pyexecutor.llm_request import LlmRequest
from tensorrt_llm._torch.pyexecutor.sampler import Sampled, Sampler
from tensorrt_llm.errors import RequestError
from tensorrt_llm.executor.request import GenerationRequest
from tensorrt_llm.inputs.data import ProcessedPrompt
from tensorrt_llm.sampling_params import SamplingParams

VOCAB = 100
EOS = 2


def make(
    *,
    seed: int = 0,
    output: tuple[int, ...] = (),
    prompt: tuple[int, ...] = (7, 8, 9),
    bad_words: tuple[tuple[int, ...], ...] = (),
    **options,
) -> LlmRequest:
    ids = ProcessedPrompt(np.array(prompt, np.int32))
    request = LlmRequest(
        request_id=1,
        request=GenerationRequest(ids, SamplingParams(**options)),
        max_new_tokens=50,
        stop_token_ids=frozenset({EOS, 3}),
        push=lambda update: None,
        seed=seed,
        bad_words=bad_words,
    )
    request.output_ids = list(output)
    return request


def sample(logits: torch.Tensor, *requests: LlmRequest) -> list[int]:
    chosen = Sampler().sample(logits, requests)
    assert all(isinstance(one, Sampled) for one in chosen)
    return [one.token_id for one in chosen]


def draws(seed: int, beside: int) -> list[int]:
    torch.manual_seed(beside)
    mine = make(seed=seed, temperature=1.0, top_k=20, presence_penalty=0.5)
    others = [make(seed=n, temperature=2.0, top_p=0.5 + n / 10) for n in range(beside)]
    steps = torch.Generator().manual_seed(9)
    for _ in range(20):
        row = torch.randn(1, VOCAB, generator=steps)
        logits = torch.cat([torch.randn(beside, VOCAB), row])
        mine.output_ids.append(sample(logits, *others, mine)[-1])
    return mine.output_ids


def test_a_seed_gives_the_same_answer_whatever_else_is_in_the_batch() -> None:
    alone = draws(7, beside=0)
    assert draws(7, beside=3) == alone
    assert draws(8, beside=0) != alone
    assert len(draws(2**64 - 1, beside=0)) == 20, "the largest seed works"
    assert len(set(draws(7, beside=0))) > 5, "one number for all would do as well"


def test_greedy_takes_the_likeliest() -> None:
    logits = torch.tensor([[0.0, 3.0, 1.0], [2.0, 0.0, 1.0]])
    for options in ({}, {"temperature": 0.0}, {"top_k": 1, "temperature": 5.0}, {"top_p": 1.0}):
        assert sample(logits, *(make(prompt=(0,), **options) for _ in range(2))) == [1, 0]


def test_logprobs_are_of_the_models_own_distribution() -> None:
    logits = torch.tensor([[1.0, 3.0, 2.0]]).repeat(3, 1)
    asked = make(prompt=(0,), temperature=0.1, logprobs=2, logit_bias={0: 50.0})
    nothing_beside = make(prompt=(0,), logprobs=0)
    first, second, third = Sampler().sample(logits, [asked, make(prompt=(0,)), nothing_beside])
    expected = logits[0].log_softmax(-1)
    assert first.token_id == 0
    assert first.logprobs.logprob == pytest.approx(float(expected[0]))
    assert [token for token, _ in first.logprobs.top] == [1, 2]
    assert [value for _, value in first.logprobs.top] == pytest.approx(expected[[1, 2]].tolist())
    assert second.logprobs is None
    assert (third.logprobs.token_id, third.logprobs.top) == (1, ())


WORDS = ((5,), (9, 11), (20, 21, 22), (7, 8, 9, 30, 31), (1,) * 60)


@pytest.mark.parametrize("output", [(), (20,), (20, 21), (30,), (9,), (20, 9)])
def test_bad_words_are_those_of_transformers(output) -> None:
    request = make(output=output, bad_words=WORDS)
    stock = NoBadWordsLogitsProcessor([list(word) for word in WORDS], eos_token_id=None)
    ids = torch.tensor([[7, 8, 9, *output]])
    forbidden = torch.isneginf(stock(ids, torch.zeros(1, VOCAB))[0]).nonzero().flatten().tolist()
    assert sorted(set(request.ends_of_bad_words())) == forbidden
    for token in range(VOCAB):
        logits = torch.zeros(1, VOCAB)
        logits[0, token] = 1
        assert (sample(logits, request) == [token]) == (token not in forbidden)


def test_nothing_that_ends_an_answer_comes_before_min_tokens() -> None:
    logits = torch.zeros(3, VOCAB)
    logits[:, EOS], logits[:, 3], logits[:, 50] = 9, 8, 7
    short = make(output=(1, 1), min_tokens=3)
    long = make(output=(1, 1, 1), min_tokens=3)
    assert sample(logits, short, long, make()) == [50, EOS, EOS]


def test_bad_token_ids_bias_and_penalties_act_on_their_own_row() -> None:
    logits = torch.zeros(5, VOCAB)
    logits[:, 40], logits[:, 41] = 5.0, 4.5
    assert sample(
        logits,
        make(bad_token_ids=[40]),
        make(logit_bias={60: 10}),
        make(output=(40,), presence_penalty=1),
        make(prompt=(40,), repetition_penalty=2),
        make(prompt=(40,), presence_penalty=1),
    ) == [41, 60, 41, 41, 40]


def test_a_request_whose_options_leave_nothing_fails_alone() -> None:
    logits = torch.randn(3, VOCAB, generator=torch.Generator().manual_seed(4))
    for options in ({}, {"temperature": 1.0}, {"top_p": 0.9}, {"top_k": 5}):
        hopeless = make(bad_token_ids=list(range(VOCAB)), **options)
        first, second, third = Sampler().sample(logits, [make(), hopeless, make(temperature=1.0)])
        assert isinstance(second, RequestError) and "no token is left" in str(second)
        assert first.token_id == int(logits[0].argmax())
        assert [third.token_id] == sample(logits[2:], make(temperature=1.0))


def test_a_request_that_breaks_the_pass_fails_alone() -> None:
    logits = torch.randn(3, VOCAB, generator=torch.Generator().manual_seed(5))
    broken = make(logprobs=1)
    broken.seed = "none"  # type: ignore[assignment]
    object.__setattr__(broken.sampling, "temperature", 1.0)
    first, second, third = Sampler().sample(logits, [make(), broken, make()])
    assert isinstance(second, TypeError)
    assert [first.token_id, third.token_id] == logits[[0, 2]].argmax(-1).tolist()
