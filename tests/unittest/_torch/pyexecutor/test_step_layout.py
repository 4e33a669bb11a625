# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""A layout says of each token what going through the requests token by token says."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from tensorrt_llm._torch.pyexecutor.llm_request import LlmRequest
from tensorrt_llm._torch.pyexecutor.scheduler import ScheduledRequest
from tensorrt_llm._torch.pyexecutor.step_layout import StepLayout, chunks_ahead, chunks_of
from tensorrt_llm.executor.request import GenerationRequest
from tensorrt_llm.inputs.data import PlaceholderRun, ProcessedItem, ProcessedPrompt
from tensorrt_llm.sampling_params import SamplingParams

SIZE = 4
CPU = torch.device("cpu")


def random_request(rng: np.random.Generator, number: int, axes: int) -> LlmRequest:
    """Somewhere between its first token and its last, with or without an item of two runs."""
    length = int(rng.integers(6, 20))
    items: tuple[ProcessedItem, ...] = ()
    positions = None
    if rng.random() < 0.6:
        runs = (PlaceholderRun(1, int(rng.integers(1, 3))), PlaceholderRun(4, 2))
        items = (ProcessedItem("image", None, runs, {}),)
        if axes > 1:
            positions = rng.integers(0, 50, (axes, length)).astype(np.int32)
    prompt = ProcessedPrompt(
        rng.integers(0, 99, length).astype(np.int32), items, positions=positions
    )
    request = LlmRequest(
        request_id=number,
        request=GenerationRequest(prompt, SamplingParams(max_tokens=9)),
        max_new_tokens=9,
        stop_token_ids=frozenset(),
        push=lambda update: None,
    )
    request.output_ids = rng.integers(0, 99, int(rng.integers(0, 6))).tolist()
    request.num_written = int(rng.integers(0, request.num_known))
    return request


def with_draft(
    rng: np.random.Generator, entry: ScheduledRequest[LlmRequest]
) -> ScheduledRequest[LlmRequest]:
    """Where all known tokens but the last are written, guesses may run behind it."""
    if entry.num_tokens != entry.request.num_to_write or not entry.request.output_ids:
        return entry
    draft = tuple(rng.integers(0, 99, int(rng.integers(0, 4))).tolist())
    return ScheduledRequest(entry.request, entry.num_tokens + len(draft), draft)


def token_by_token(
    scheduled: list[ScheduledRequest[LlmRequest]], tables: np.ndarray, axes: int
) -> dict[str, Any]:
    found: dict[str, list[Any]] = {
        name: [] for name in ("input_ids", "position_ids", "slots", "scored", "text", "media")
    }
    place = 0
    for row, entry in enumerate(scheduled):
        request = entry.request
        known = [*request.prompt_ids.tolist(), *request.output_ids, *entry.draft]
        rows = {
            token
            for item in request.items
            for run in item.item.runs
            for token in range(run.position, run.position + run.length)
        }
        for token in range(request.num_written, request.num_written + entry.num_tokens):
            found["input_ids"].append(known[token])
            position = request.position_ids(token, token + 1)[:, 0]
            found["position_ids"].append(np.broadcast_to(position, (axes,)))
            found["slots"].append(int(tables[row, token // SIZE]) * SIZE + token % SIZE)
            found["media" if token in rows else "text"].append(place)
            place += 1
        found["scored"] += range(place - entry.num_scored, place)
    return found


@pytest.mark.parametrize("axes", [1, 3])
def test_each_token_is_where_it_belongs(axes: int) -> None:
    rng = np.random.default_rng(axes)
    with_media = 0
    for _ in range(200):
        requests = [random_request(rng, number, axes) for number in range(rng.integers(1, 6))]
        scheduled = [
            ScheduledRequest(request, int(rng.integers(1, request.num_to_write + 1)))
            for request in requests
        ]
        scheduled = [with_draft(rng, entry) for entry in scheduled]
        most = max(-(-(request.num_known + 3) // SIZE) for request in requests)
        tables = rng.permutation(len(requests) * most).reshape(-1, most).astype(np.int32)
        ends = [entry.request.num_written + entry.num_tokens for entry in scheduled]
        for row, end in enumerate(ends):
            tables[row, -(-end // SIZE) :] = -1  # a table may end there, and is padded then
        layout = StepLayout.of(
            chunks_of(scheduled), tables, tokens_per_block=SIZE, position_axes=axes, device=CPU
        )
        right = token_by_token(scheduled, tables, axes)
        assert layout.num_tokens == len(right["input_ids"])
        for name in ("input_ids", "slots", "scored"):
            assert getattr(layout, name).tolist() == right[name], name
        assert layout.position_ids.tolist() == np.transpose(right["position_ids"]).tolist()
        if right["media"]:
            assert layout.media is not None
            assert (layout.text.tolist(), layout.media.tolist()) == (right["text"], right["media"])
            with_media += 1
        else:
            assert layout.media is None
        for row, end in enumerate(ends):
            assert layout.block_tables[row].tolist() == tables[row, : -(-end // SIZE)].tolist()
            chunk = layout.chunks[row]
            assert chunk.end == end
            last = sum(entry.num_scored for entry in scheduled[: row + 1]) - 1
            assert chunk.rows.stop == right["scored"][last] + 1
    assert 50 < with_media < 190


@pytest.mark.parametrize("axes", [1, 3])
def test_a_step_laid_out_ahead_is_the_step_that_comes(axes: int) -> None:
    rng = np.random.default_rng(10 + axes)
    options = {"tokens_per_block": SIZE, "position_axes": axes, "device": CPU}
    for _ in range(50):
        requests = [random_request(rng, number, axes) for number in range(rng.integers(1, 6))]
        most = max(request.num_known // SIZE + 1 for request in requests)
        tables = rng.permutation(len(requests) * most).reshape(-1, most).astype(np.int32)
        ahead = StepLayout.of(chunks_ahead(requests), tables, **options)
        for request in requests:
            request.num_written = request.num_known
            request.output_ids.append(int(rng.integers(0, 99)))
        chosen = np.array([request.output_ids[-1] for request in requests])
        named = ahead.with_tokens(chosen)
        scheduled = [ScheduledRequest(request, 1) for request in requests]
        right = StepLayout.of(chunks_of(scheduled), tables, **options)
        assert named.chunks == right.chunks and named.media is right.media is None
        for name in ("input_ids", "position_ids", "slots", "scored"):
            assert torch.equal(getattr(named, name), getattr(right, name)), name
        for one, other in zip(named.block_tables, right.block_tables, strict=True):
            assert torch.equal(one, other)
