# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""A step laid out as one flattened batch: every index tensor that the model needs, built once.

All of them are written into one host buffer, which goes to the device in one transfer; what the
model gets are views of it. A call into torch costs as much as the arithmetic of a small step, so
their number does not grow with the number of requests.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch

from tensorrt_llm._torch.pyexecutor.llm_request import LlmRequest
from tensorrt_llm._torch.pyexecutor.scheduler import ScheduledRequest


@dataclass(frozen=True)
class Chunk:
    """A request's tokens ``[begin, end)`` and where they start in the flattened batch.

    The last of them may be a draft's, which the request does not have.
    """

    request: LlmRequest
    begin: int
    end: int
    offset: int
    draft: tuple[int, ...] = ()

    @property
    def rows(self) -> slice:
        """Its tokens in the flattened batch."""
        return slice(self.offset, self.offset + self.end - self.begin)


@dataclass(frozen=True)
class StepLayout:
    """Where everything is in a step. Tensors are int64 on the device and views of one buffer.

    Attributes:
        chunks: In the order of the flattened batch.
        num_tokens: Tokens of all chunks.
        input_ids: ``[num_tokens]``.
        position_ids: Rotary positions ``[axes, num_tokens]``.
        slots: ``[num_tokens]``: for each token ``block * tokens_per_block + offset``.
        scored: For each chunk the index of its last token, those of a draft behind it.
        block_tables: For each chunk the blocks ``[n]`` that hold its tokens and those before.
        text: Indices of the tokens that are no rows of media; empty if ``media`` is None.
        media: Indices of the rows; None if the step holds none.
    """

    chunks: tuple[Chunk, ...]
    num_tokens: int
    input_ids: torch.Tensor = field(repr=False)
    position_ids: torch.Tensor = field(repr=False)
    slots: torch.Tensor = field(repr=False)
    scored: torch.Tensor = field(repr=False)
    block_tables: tuple[torch.Tensor, ...] = field(repr=False)
    text: torch.Tensor = field(repr=False)
    media: torch.Tensor | None = field(repr=False)

    @classmethod
    def of(
        cls,
        chunks: Sequence[Chunk],
        block_tables: np.ndarray,
        *,
        tokens_per_block: int,
        position_axes: int,
        device: torch.device,
    ) -> StepLayout:
        """Lays a step out.

        Args:
            chunks: At least one, side by side.
            block_tables: int32 ``[len(chunks), most blocks]``.
            tokens_per_block: Tokens a block holds.
            position_axes: Of the model.
            device: Where the tensors go.
        """
        num_tokens = chunks[-1].rows.stop
        lengths = np.array([chunk.end - chunk.begin for chunk in chunks])
        ends = np.array([chunk.end for chunk in chunks])
        stops = lengths.cumsum()
        # Index of each token in its own sequence, and the row of the block tables it belongs to.
        indices = np.arange(num_tokens) + (ends - stops).repeat(lengths)
        owners = np.arange(len(chunks)).repeat(lengths)
        num_blocks = -(-ends // tokens_per_block)
        used = np.arange(block_tables.shape[1]) < num_blocks[:, None]
        is_media = _media_mask(chunks, num_tokens)
        marked = () if is_media is None else (np.flatnonzero(~is_media), np.flatnonzero(is_media))
        blocks, offsets = np.divmod(indices, tokens_per_block)
        parts = (
            _input_ids(chunks, num_tokens),
            _position_ids(chunks, indices, position_axes).reshape(-1),
            block_tables[owners, blocks] * np.int64(tokens_per_block) + offsets,
            _scored(chunks, stops),
            block_tables[used],
            *marked,
        )
        buffer = torch.from_numpy(np.concatenate(parts, dtype=np.int64)).to(device)
        ids, positions, slots, scored, tables, *rest = buffer.split([len(part) for part in parts])
        return cls(
            chunks=tuple(chunks),
            num_tokens=num_tokens,
            input_ids=ids,
            position_ids=positions.view(position_axes, num_tokens),
            slots=slots,
            scored=scored,
            block_tables=tables.split(num_blocks.tolist()),
            text=rest[0] if rest else ids[:0],
            media=rest[1] if rest else None,
        )

    def with_tokens(self, token_ids: np.ndarray) -> StepLayout:
        """The same with these tokens, int64 ``[num_tokens]``, in place of what it has."""
        ids = torch.from_numpy(token_ids).to(self.input_ids.device)
        return dataclasses.replace(self, input_ids=ids)


def chunks_of(scheduled: Sequence[ScheduledRequest[LlmRequest]]) -> tuple[Chunk, ...]:
    """The chunks of a step: the next tokens of each request that have to be written."""
    chunks, offset = [], 0
    for entry in scheduled:
        begin = entry.request.num_written
        chunks.append(Chunk(entry.request, begin, begin + entry.num_tokens, offset, entry.draft))
        offset += entry.num_tokens
    return tuple(chunks)


def chunks_ahead(requests: Sequence[LlmRequest]) -> tuple[Chunk, ...]:
    """The chunks of a step in which each request writes the token behind all that it has."""
    return tuple(
        Chunk(request, request.num_known, request.num_known + 1, offset)
        for offset, request in enumerate(requests)
    )


def _scored(chunks: Sequence[Chunk], stops: np.ndarray) -> np.ndarray:
    """Indices of the tokens after which something is chosen."""
    counts = np.array([1 + len(chunk.draft) for chunk in chunks])
    total = counts.sum()
    if total == len(counts):
        return stops - 1
    behind = counts.cumsum()
    return np.arange(total) + (stops - behind).repeat(counts)


def _input_ids(chunks: Sequence[Chunk], num_tokens: int) -> np.ndarray:
    ids = np.empty(num_tokens, np.int64)
    for chunk in chunks:
        request = chunk.request
        if chunk.begin == request.num_known:
            ids[chunk.offset] = 0  # not known yet
        elif chunk.end - chunk.begin == 1 and chunk.begin >= request.prompt_len:
            ids[chunk.offset] = request.output_ids[chunk.begin - request.prompt_len]
        else:
            known = chunk.end - len(chunk.draft)
            rows = chunk.rows
            ids[rows.start : rows.stop - len(chunk.draft)] = request.token_ids(chunk.begin, known)
            ids[rows.stop - len(chunk.draft) : rows.stop] = chunk.draft
    return ids


def _position_ids(chunks: Sequence[Chunk], indices: np.ndarray, axes: int) -> np.ndarray:
    """``[axes, num_tokens]``: the indices, except where a prompt has positions of its own."""
    positions = np.empty((axes, len(indices)), np.int64)
    # One axis stands for all: a request without media has no more.
    positions[:] = indices
    for chunk in chunks:
        if chunk.request.request.prompt.positions is not None:
            positions[:, chunk.rows] = chunk.request.position_ids(chunk.begin, chunk.end)
    return positions


def _media_mask(chunks: Sequence[Chunk], num_tokens: int) -> np.ndarray | None:
    """Which tokens of the batch are rows: a bool array ``[num_tokens]``; None if none is.

    Taken from the runs, never from token ids: a generated token may have a placeholder's id and is
    text all the same.
    """
    mask: np.ndarray | None = None
    for chunk in chunks:
        if chunk.begin >= chunk.request.prompt_len:
            continue
        for item in chunk.request.items:
            for run in item.item.runs:
                begin = max(run.position, chunk.begin)
                end = min(run.position + run.length, chunk.end)
                if begin < end:
                    if mask is None:
                        mask = np.zeros(num_tokens, bool)
                    shift = chunk.offset - chunk.begin
                    mask[begin + shift : end + shift] = True
    return mask
