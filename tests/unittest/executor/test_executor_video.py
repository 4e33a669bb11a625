# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Answers behind a long video of Qwen2.5-VL, whose last moment is a place behind all text.

Generated tokens stand behind the last token of the prompt all the same, as in stock ``generate``,
and so where the next turn's prompt has them: what was written for the answer may be reused.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from support.checkpoints import build_checkpoint
from support.engine import assert_idle, running, start
from support.media import film
from support.prompts import PromptMaker
from support.reference import ReferenceModel

from tensorrt_llm.inputs.data import ProcessedPrompt

NEW = 40
BEFORE = "Look: <|vision_start|>"
AFTER = "<|vision_end|> What is it?"


@pytest.fixture(scope="module")
def checkpoint(checkpoint_root: Path) -> Path:
    return build_checkpoint("qwen2_5_vl", checkpoint_root)


def going_on(make: PromptMaker, rate: float, answer: list[int]) -> ProcessedPrompt:
    """A conversation as token ids: the question, an answer, and the next question."""
    item = make.loader.load("video", film(1, rate=rate))
    ids = make.tokenizer(f"{BEFORE}<|video_pad|>{AFTER}").input_ids + answer
    if answer:
        ids += make.tokenizer(" Why?").input_ids
    return make.processor.process(ids, [item])


@pytest.mark.parametrize("rate", [0.1, 20.0])
def test_an_answer_stands_where_the_next_turn_has_it(checkpoint: Path, rate: float) -> None:
    make, reference = PromptMaker(checkpoint), ReferenceModel(checkpoint, rate)
    first = going_on(make, rate, [])
    assert first.positions is not None
    lasts = int(first.positions.max()) > len(first) + first.position_delta
    assert lasts == (rate < 1), "the video's last moment is behind the text, or it is not"
    with running(checkpoint) as executor:
        answer = start(executor, first, NEW).result().outputs[0].token_ids
        assert answer == reference.greedy(first, NEW).tokens
        second = going_on(make, rate, answer)
        result = start(executor, second, NEW).result()
        expected = reference.greedy(second, NEW)
        assert result.outputs[0].token_ids == expected.tokens
        torch.testing.assert_close(
            result.outputs[0].generation_logits, expected.logits, atol=1e-4, rtol=0
        )
        # The last token of an answer was never written.
        assert result.cached_tokens == len(first) + NEW - 1
        assert_idle(executor)
