# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""The search alone: against every answer there is, and against the stock search."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
import torch
import transformers

from tensorrt_llm._torch.pyexecutor.sampling import BeamOptions, BeamSearch, Hypothesis

VOCAB, LENGTH = 24, 9


@pytest.fixture(scope="module")
def model() -> Any:
    torch.manual_seed(5)
    config = transformers.LlamaConfig(
        vocab_size=VOCAB,
        hidden_size=16,
        intermediate_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1,
        initializer_range=0.6,
        pad_token_id=0,
        bos_token_id=None,
        eos_token_id=None,
    )
    return transformers.LlamaForCausalLM(config).eval()


@torch.no_grad()
def search(model: Any, prompt: list[int], options: BeamOptions) -> tuple[BeamSearch, int]:
    """The search, over a model that computes everything anew each step; and how many steps."""
    found = BeamSearch(options)
    steps = 0
    while not found.done:
        ids = torch.tensor([prompt + one.token_ids for one in found.running])
        before = found.running
        parents = found.step(model(ids).logits[:, -1].log_softmax(-1))
        steps += 1
        if not found.done:
            for one, parent in zip(found.running, parents, strict=True):
                assert one.tokens[:-1] == before[parent].tokens
    return found, steps


@pytest.mark.parametrize("early", [True, False, "never"])
@pytest.mark.parametrize("penalty", [1.0, 0.0, 2.0, -0.7])
def test_it_is_the_stock_search(model, early, penalty) -> None:
    ended_early = ended_at_length = 0
    for seed, (width, stops) in enumerate(itertools.product((2, 3, 5), ((), (3,), (1, 4, 7, 9)))):
        prompt = [(5 * seed + 3 * n) % VOCAB for n in range(4 + seed % 3)]
        expected = model.generate(
            torch.tensor([prompt]),
            attention_mask=torch.ones(1, len(prompt), dtype=torch.long),
            max_new_tokens=LENGTH,
            num_beams=width,
            num_return_sequences=width,
            do_sample=False,
            length_penalty=penalty,
            early_stopping=early,
            eos_token_id=list(stops) or None,
            output_scores=True,
            return_dict_in_generate=True,
        )
        options = BeamOptions(width, LENGTH, frozenset(stops), penalty, early, num_top=2)
        found, steps = search(model, prompt, options)
        lengths = (expected.beam_indices >= 0).sum(-1).tolist()
        rows = expected.sequences[:, len(prompt) :].tolist()
        assert [one.token_ids for _, one in found.finished] == [
            row[:length] for row, length in zip(rows, lengths, strict=True)
        ]
        assert [score for score, _ in found.finished] == pytest.approx(
            expected.sequences_scores.tolist(), abs=1e-4
        )
        for _, one in found.finished:
            assert one.total == pytest.approx(sum(t.logprob for t in one.tokens), abs=1e-5)
            assert all(len(token.top) == 2 for token in one.tokens)
        assert steps == len(expected.scores)
        ended_early += min(lengths) < LENGTH
        ended_at_length += max(lengths) == LENGTH
    # That penalty favours length so much that whatever ended is overtaken.
    assert ended_at_length and (ended_early or penalty == 2)


def test_a_beam_as_wide_as_all_answers_finds_the_best_of_all(model) -> None:
    few, length = 6, 3

    @torch.no_grad()
    def log_probs(tokens: list[int]) -> torch.Tensor:
        return model(torch.tensor([[2, *tokens]])).logits[0, -1, :few].log_softmax(-1)

    def total(tokens: tuple[int, ...]) -> float:
        return sum(float(log_probs(list(tokens[:n]))[tokens[n]]) for n in range(length))

    everything = sorted(itertools.product(range(few), repeat=length), key=total, reverse=True)
    found = BeamSearch(BeamOptions(few**length, length, frozenset()))
    while not found.done:
        found.step(torch.stack([log_probs(one.token_ids) for one in found.running]))
    assert [tuple(one.token_ids) for _, one in found.finished] == everything


def test_what_ends_below_the_beam_does_not_count() -> None:
    search = BeamSearch(BeamOptions(2, 5, frozenset([2]), early_stopping=True))
    parents = search.step(torch.tensor([[0.5, 0.3, 0.15, 0.05]]).log())
    assert (parents, search.finished) == ([0, 0], [])
    assert [one.token_ids for one in search.running] == [[0], [1]]
    # Both go on where the first ends as the likeliest of all.
    parents = search.step(torch.tensor([[0.1, 0.1, 0.7, 0.1], [0.6, 0.2, 0.1, 0.1]]).log())
    assert [one.token_ids for _, one in search.finished] == [[0, 2]]
    assert [one.token_ids for one in search.running] == [[1, 0], [1, 1]]
    assert parents == [1, 1] and not search.done
    assert search.running[0] != Hypothesis()
