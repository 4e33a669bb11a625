# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""How a request is cut into chunks."""

from __future__ import annotations

import numpy as np
import pytest

from tensorrt_llm._torch.pyexecutor.llm_request import LlmRequest
from tensorrt_llm.executor.request import GenerationRequest
from tensorrt_llm.inputs.data import PlaceholderRun, ProcessedItem, ProcessedPrompt
from tensorrt_llm.sampling_params import SamplingParams


def request(*runs: tuple[int, int], whole: bool) -> LlmRequest:
    """Twenty tokens, with an image and a clip of the same runs."""
    placed = tuple(PlaceholderRun(*run) for run in runs)
    item = ProcessedItem("image", None, placed, {})
    prompt = ProcessedPrompt(np.arange(20, dtype=np.int32), (item,))
    return LlmRequest(
        request_id=1,
        request=GenerationRequest(prompt, SamplingParams()),
        max_new_tokens=4,
        stop_token_ids=frozenset(),
        push=lambda update: None,
        whole_modalities=frozenset({"image"} if whole else {"audio"}),
    )


@pytest.mark.parametrize(
    ("written", "limit", "chunk"),
    [
        *((0, 4, 4), (0, 5, 4), (0, 9, 4), (0, 10, 10), (0, 12, 11), (0, 0, 0)),
        *((4, 5, 0), (4, 6, 6), (4, 8, 7), (6, 3, 0), (6, 4, 4), (10, 99, 10)),
    ],
)
def test_a_chunk_ends_before_a_run_that_does_not_fit_or_behind_it(written, limit, chunk) -> None:
    whole = request((4, 6), (11, 5), whole=True)
    split = request((4, 6), (11, 5), whole=False)
    whole.num_written = split.num_written = written
    assert whole.largest_chunk(limit) == chunk
    assert split.largest_chunk(limit) == min(limit, 20 - written)


def test_what_was_generated_before_a_pause_is_written_again() -> None:
    paused = request((4, 6), whole=True)
    paused.output_ids = [101, 102]
    assert (paused.num_known, paused.num_to_write, paused.num_new_left) == (22, 22, 2)
    assert paused.largest_chunk(99) == 22
    assert paused.token_ids(18, 22).tolist() == [18, 19, 101, 102]
    assert paused.token_ids(21, 22).tolist() == [102]
