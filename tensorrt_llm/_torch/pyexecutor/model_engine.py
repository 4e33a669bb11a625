# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""One step of the model: a scheduled batch in, logits of each request's last token out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from tensorrt_llm._torch.attention_backend import (
    AttentionBackend,
    AttentionMetadata,
    PagedKVPool,
    SequenceAttention,
)
from tensorrt_llm._torch.models.modeling_multimodal_utils import (
    find_input_mm_embeds,
    fuse_input_embeds,
)
from tensorrt_llm._torch.models.modeling_utils import DecoderModel
from tensorrt_llm._torch.pyexecutor.llm_request import LlmRequest
from tensorrt_llm._torch.pyexecutor.scheduler import ScheduledRequest


@dataclass(frozen=True)
class _Chunk:
    """A request's tokens ``[begin, end)`` and where they start in the flattened batch."""

    request: LlmRequest
    begin: int
    end: int
    offset: int


class ModelEngine:
    """Lays a step out as one flattened batch and runs the model over it. Keeps no request state.

    Args:
        model: The model.
        pool: The paged KV pool.
        backend: Who computes attention.
    """

    def __init__(self, model: DecoderModel, pool: PagedKVPool, backend: AttentionBackend) -> None:
        self.model = model
        self._pool = pool
        self._backend = backend

    @torch.inference_mode()
    def forward(
        self, scheduled: Sequence[ScheduledRequest[LlmRequest]], block_tables: np.ndarray
    ) -> torch.Tensor:
        """Writes the KV of all scheduled tokens and scores what comes next.

        Args:
            scheduled: Context requests first. Rows of media in their chunks must be at hand.
            block_tables: int32 ``[len(scheduled), most blocks]``.

        Returns:
            float32 logits ``[len(scheduled), vocab_size]`` after each request's last token here.
        """
        chunks = _lay_out(scheduled)
        tables = torch.from_numpy(block_tables.astype(np.int64)).to(self._pool.device)
        indices = np.concatenate([np.arange(chunk.begin, chunk.end) for chunk in chunks])
        embeds, layer_inputs = self._embed(chunks)
        hidden = self.model.forward(
            embeds,
            self._position_ids(chunks, len(indices)),
            self._metadata(chunks, indices, block_tables, tables),
            layer_inputs,
        )
        last = [chunk.offset + chunk.end - chunk.begin - 1 for chunk in chunks]
        return self.model.logits(hidden[torch.tensor(last, device=hidden.device)])

    def _embed(self, chunks: Sequence[_Chunk]) -> tuple[torch.Tensor, Mapping[str, Any]]:
        """Text from the embedding layer, media rows from items.

        Returns:
            Embeddings ``[num_tokens, hidden_size]``, and what rows hold beyond them as arguments
            of the decoder.
        """
        token_ids = np.concatenate(
            [chunk.request.token_ids(chunk.begin, chunk.end) for chunk in chunks]
        )
        input_ids = torch.from_numpy(token_ids.astype(np.int64)).to(self.model.device)
        params, rows = [], []
        for chunk in chunks:
            for item in chunk.request.items:
                if item.touches(chunk.begin, chunk.end):
                    assert item.rows is not None, "a scheduled chunk lacks its rows"
                    rows.append(item.rows)
                    params.append(item.params(chunk.begin, chunk.end, chunk.request.prompt_len))
        is_media = _media_mask(chunks, len(token_ids))
        needed, width = find_input_mm_embeds(rows, params), self.model.hidden_size
        _, fused = fuse_input_embeds(
            self.model.embedding,
            input_ids,
            [part[:, :width] for part in needed],
            text_token_indices=_indices(~is_media, self.model.device),
            mm_token_indices=_indices(is_media, self.model.device),
        )
        if fused is None:
            return self.model.embedding(input_ids), {}
        if self.model.row_width == width:
            return fused, {}
        extra = torch.cat([part[:, width:] for part in needed])
        mask = torch.from_numpy(is_media).to(self.model.device)
        return fused, self.model.layer_inputs(mask, extra)

    def _position_ids(self, chunks: Sequence[_Chunk], num_tokens: int) -> torch.Tensor:
        """Rotary positions, int64 ``[axes, num_tokens]``."""
        positions = np.empty((self.model.position_axes, num_tokens), np.int64)
        for chunk in chunks:
            end = chunk.offset + chunk.end - chunk.begin
            # A request without media has one axis, which stands for all.
            positions[:, chunk.offset : end] = chunk.request.position_ids(chunk.begin, chunk.end)
        return torch.from_numpy(positions).to(self.model.device)

    def _metadata(
        self,
        chunks: Sequence[_Chunk],
        indices: np.ndarray,
        block_tables: np.ndarray,
        tables_on_device: torch.Tensor,
    ) -> AttentionMetadata:
        size = self._pool.tokens_per_block
        owner = np.repeat(np.arange(len(chunks)), [chunk.end - chunk.begin for chunk in chunks])
        slots = block_tables[owner, indices // size].astype(np.int64) * size + indices % size
        sequences = tuple(
            SequenceAttention(
                query_start=chunk.offset,
                query_len=chunk.end - chunk.begin,
                kv_len=chunk.end,
                block_table=tables_on_device[index, : -(-chunk.end // size)],
                both_ways=_both_ways(chunk, self.model.bidirectional_modalities),
            )
            for index, chunk in enumerate(chunks)
        )
        return AttentionMetadata(
            pool=self._pool,
            slots=torch.from_numpy(slots).to(self._pool.device),
            sequences=sequences,
            backend=self._backend,
        )


def _lay_out(scheduled: Sequence[ScheduledRequest[LlmRequest]]) -> list[_Chunk]:
    chunks, offset = [], 0
    for entry in scheduled:
        begin = entry.request.num_written
        chunks.append(_Chunk(entry.request, begin, begin + entry.num_tokens, offset))
        offset += entry.num_tokens
    return chunks


def _both_ways(chunk: _Chunk, modalities: frozenset[str]) -> tuple[tuple[int, int], ...]:
    """The runs of a chunk whose rows see each other; a reused prefix may end inside the first."""
    return tuple(
        (run.position, run.position + run.length)
        for item in chunk.request.items
        if item.item.modality in modalities
        for run in item.item.runs
        if run.position < chunk.end and chunk.begin < run.position + run.length
    )


def _media_mask(chunks: Sequence[_Chunk], num_tokens: int) -> np.ndarray:
    """Which tokens of the batch are rows: a bool array ``[num_tokens]``.

    Taken from the runs, never from token ids: a generated token may have a placeholder's id and is
    text all the same.
    """
    mask = np.zeros(num_tokens, bool)
    for chunk in chunks:
        for item in chunk.request.items:
            for run in item.item.runs:
                begin = max(run.position, chunk.begin)
                end = min(run.position + run.length, chunk.end)
                if begin < end:
                    shift = chunk.offset - chunk.begin
                    mask[begin + shift : end + shift] = True
    return mask


def _indices(mask: np.ndarray, device: torch.device) -> torch.Tensor:
    return torch.from_numpy(np.flatnonzero(mask)).to(device)
