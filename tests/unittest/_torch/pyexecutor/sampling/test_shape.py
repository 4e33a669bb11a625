# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""What options make of logits, beside transformers' processors."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from transformers import RepetitionPenaltyLogitsProcessor, SequenceBiasLogitsProcessor

from tensorrt_llm._torch.pyexecutor.sampling import LogitChanges, PenaltyState
from tensorrt_llm.sampling_params import SamplingParams

VOCAB = 70
PROMPT = np.array([3, 3, 5, 8, 69], np.int32)
ANSWER = [5, 6, 6, 6, 7]


def some_logits(rows: int) -> torch.Tensor:
    return torch.randn(rows, VOCAB, generator=torch.Generator().manual_seed(rows)) * 4


def state() -> PenaltyState:
    made = PenaltyState(PROMPT, VOCAB, torch.device("cpu"))
    made.count(ANSWER[:2])
    made.count(ANSWER[:2])
    made.count(ANSWER)
    return made


@pytest.mark.parametrize("penalty", [1.7, 0.6])
def test_repetition_counts_prompt_and_answer_as_transformers_does(penalty) -> None:
    logits = some_logits(1)
    changes = LogitChanges(VOCAB)
    changes.penalize(0, SamplingParams(repetition_penalty=penalty), state())
    ids = torch.tensor([[*PROMPT.tolist(), *ANSWER]])
    expected = RepetitionPenaltyLogitsProcessor(penalty)(ids, logits.clone())
    torch.testing.assert_close(changes.apply(logits), expected)


def test_presence_and_frequency_count_the_answer_only() -> None:
    logits = some_logits(2)
    changes = LogitChanges(VOCAB)
    changes.penalize(1, SamplingParams(presence_penalty=0.5, frequency_penalty=-0.25), state())
    expected = logits.clone()
    for token in range(VOCAB):
        times = ANSWER.count(token)
        expected[1, token] -= 0.5 * (times > 0) - 0.25 * times
    torch.testing.assert_close(changes.apply(logits), expected)


def test_biases_are_added_as_transformers_does() -> None:
    logits = some_logits(2)
    bias = {3: 1.5, 9: -100.0, 69: 0.25}
    changes = LogitChanges(VOCAB)
    changes.bias(0, bias.items())
    stock = SequenceBiasLogitsProcessor([[[token], value] for token, value in bias.items()])
    expected = logits.clone()
    expected[:1] = stock(torch.zeros(1, 1, dtype=torch.long), logits[:1].clone())
    torch.testing.assert_close(changes.apply(logits), expected)


def test_what_is_forbidden_is_so_whatever_else_is_asked() -> None:
    logits = some_logits(3)
    changes = LogitChanges(VOCAB)
    changes.forbid(1, [4, 69, 70, 2**40, -1])
    changes.bias(1, [(4, 100.0)])
    allowed = [0, 31, 32, 63, 69]
    bits = np.zeros(96, np.uint8)
    bits[allowed] = 1
    words = np.packbits(bits, bitorder="little").view(np.int32)
    changes.allow_only(2, torch.from_numpy(words))
    changed = changes.apply(logits)
    assert torch.isneginf(changed[1]).nonzero().flatten().tolist() == [4, 69]
    assert (~torch.isneginf(changed[2])).nonzero().flatten().tolist() == allowed
    torch.testing.assert_close(changed[0], logits[0])
    torch.testing.assert_close(changed[2, allowed], logits[2, allowed])


def test_logits_that_nothing_changes_are_not_copied() -> None:
    logits = some_logits(1)
    changes = LogitChanges(VOCAB)
    changes.forbid(0, [])
    changes.bias(0, [])
    assert changes.apply(logits) is logits
    changes.bias(0, [(1, 1.0)])
    before = logits.clone()
    changes.apply(logits)
    torch.testing.assert_close(logits, before)
