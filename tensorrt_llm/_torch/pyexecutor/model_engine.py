# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""One step of the model: a scheduled batch in, logits of each request's last token out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch

from tensorrt_llm._torch.attention_backend import (
    AttentionBackend,
    AttentionMetadata,
    PagedKVPool,
    SequenceAttention,
    SequenceBatch,
)
from tensorrt_llm._torch.models.modeling_multimodal_utils import (
    find_input_mm_embeds,
    fuse_input_embeds,
)
from tensorrt_llm._torch.models.modeling_utils import DecoderModel
from tensorrt_llm._torch.peft import AdapterRows, LoraAdapter
from tensorrt_llm._torch.pyexecutor.cuda_graphs import DecoderGraphs
from tensorrt_llm._torch.pyexecutor.llm_request import LlmRequest
from tensorrt_llm._torch.pyexecutor.prompt_scores import score_prompt
from tensorrt_llm._torch.pyexecutor.scheduler import ScheduledRequest
from tensorrt_llm._torch.pyexecutor.step_layout import (
    Chunk,
    StepLayout,
    chunks_ahead,
    chunks_of,
)


class ModelEngine:
    """Lays a step out as one flattened batch and runs the model over it. Keeps no request state.

    Args:
        model: The model.
        pool: The paged KV pool.
        backend: Who computes attention.
        graphs: Run steps of one token a request, if any.
    """

    def __init__(
        self,
        model: DecoderModel,
        pool: PagedKVPool,
        backend: AttentionBackend,
        graphs: DecoderGraphs | None = None,
    ) -> None:
        self.model = model
        self._pool = pool
        self._backend = backend
        self._graphs = graphs
        # Asked of the model these take longer than the rest of a layout.
        self._device = pool.device
        self._embedding = model.embedding
        self._position_axes = model.position_axes

    @torch.inference_mode()
    def forward(
        self,
        scheduled: Sequence[ScheduledRequest[LlmRequest]],
        block_tables: np.ndarray,
        layout: StepLayout | None = None,
    ) -> torch.Tensor:
        """Writes the KV of all scheduled tokens and scores what comes next.

        Args:
            scheduled: Context requests first. Rows of media in their chunks must be at hand.
            block_tables: int32 ``[len(scheduled), most blocks]``.
            layout: Of this step, if it has been made already.

        Returns:
            float32 logits ``[n, vocab_size]`` after each request's last token here, and where it
            has a draft after the last known token and each of the draft's: ``num_scored`` rows.
            Requests that ask for log-probabilities of their prompt have those of their chunk.
        """
        if layout is None:
            layout = self._lay_out(chunks_of(scheduled), block_tables)
        replayed = self._replay(layout, block_tables)
        if replayed is not None:
            return replayed
        embeds, layer_inputs = self._embed(layout)
        with self.model.lora.applied(self._adapter_rows(layout), layout.num_tokens):
            hidden = self.model.forward(
                embeds, layout.position_ids, self._metadata(layout, block_tables), layer_inputs
            )
        for chunk in layout.chunks:
            if chunk.request.prompt_scores is not None:
                score_prompt(self.model, chunk.request, chunk.begin, hidden[chunk.rows])
        return self.model.logits(hidden[layout.scored])

    def _replay(self, layout: StepLayout, block_tables: np.ndarray) -> torch.Tensor | None:
        """The step as a graph; None where it is more than a graph does."""
        if self._graphs is None or layout.media is not None:
            return None
        if layout.num_tokens > len(layout.chunks):
            return None
        if any(chunk.request.prompt_scores is not None for chunk in layout.chunks):
            return None
        return self._graphs.run(
            layout,
            [chunk.end for chunk in layout.chunks],
            block_tables,
            [chunk.request.adapters for chunk in layout.chunks],
        )

    def lay_out_ahead(self, requests: Sequence[LlmRequest], block_tables: np.ndarray) -> StepLayout:
        """Lays out the step of each request's next token, which is not known yet.

        Args:
            requests: Those that are going to have a token more than they have.
            block_tables: int32 ``[len(requests), most blocks]``, that token's block included.

        Returns:
            A layout that lacks token ids; see ``StepLayout.with_tokens``.
        """
        return self._lay_out(chunks_ahead(requests), block_tables)

    def _lay_out(self, chunks: Sequence[Chunk], block_tables: np.ndarray) -> StepLayout:
        return StepLayout.of(
            chunks,
            block_tables,
            tokens_per_block=self._pool.tokens_per_block,
            position_axes=self._position_axes,
            device=self._device,
        )

    def _embed(self, layout: StepLayout) -> tuple[torch.Tensor, Mapping[str, Any]]:
        """Text from the embedding layer, media rows from items.

        Returns:
            Embeddings ``[num_tokens, hidden_size]``, and what rows hold beyond them as arguments
            of the decoder.
        """
        if layout.media is None:
            return self._embedding(layout.input_ids), {}
        params, rows = [], []
        for chunk in layout.chunks:
            for item in chunk.request.items:
                if item.touches(chunk.begin, chunk.end):
                    assert item.rows is not None, "a scheduled chunk lacks its rows"
                    rows.append(item.rows)
                    params.append(item.params(chunk.begin, chunk.end, chunk.request.prompt_len))
        needed, width = find_input_mm_embeds(rows, params), self.model.hidden_size
        _, fused = fuse_input_embeds(
            self._embedding,
            layout.input_ids,
            [part[:, :width] for part in needed],
            text_token_indices=layout.text,
            mm_token_indices=layout.media,
        )
        assert fused is not None, "items touch the step and none of their rows are in it"
        if self.model.row_width == width:
            return fused, {}
        extra = torch.cat([part[:, width:] for part in needed])
        mask = torch.zeros(layout.num_tokens, dtype=torch.bool, device=self._device)
        mask[layout.media] = True
        return fused, self.model.layer_inputs(mask, extra)

    def _adapter_rows(self, layout: StepLayout) -> list[AdapterRows]:
        """Which tokens of the batch each adapter changes."""
        rows: dict[LoraAdapter, list[np.ndarray]] = {}
        for chunk in layout.chunks:
            for adapter in chunk.request.adapters:
                rows.setdefault(adapter, []).append(np.arange(chunk.rows.start, chunk.rows.stop))
        return [
            AdapterRows(adapter, torch.from_numpy(np.concatenate(parts)).to(self._device))
            for adapter, parts in rows.items()
        ]

    def _metadata(self, layout: StepLayout, block_tables: np.ndarray) -> AttentionMetadata:
        sequences = tuple(
            SequenceAttention(
                query_start=chunk.offset,
                query_len=chunk.end - chunk.begin,
                kv_len=chunk.end,
                block_table=table,
                both_ways=_both_ways(chunk, self.model.bidirectional_modalities),
            )
            for chunk, table in zip(layout.chunks, layout.block_tables, strict=True)
        )
        return AttentionMetadata(
            pool=self._pool,
            slots=layout.slots,
            sequences=sequences,
            backend=self._backend,
            batch=self._batch(sequences, block_tables),
        )

    def _batch(
        self, sequences: Sequence[SequenceAttention], block_tables: np.ndarray
    ) -> SequenceBatch | None:
        """The sequences as tensors, for a backend that wants them."""
        if self._backend.tile_tokens is None:
            return None
        return SequenceBatch.of(
            [one.query_len for one in sequences],
            [one.kv_len for one in sequences],
            block_tables,
            [one.both_ways for one in sequences],
            tile_tokens=self._backend.tile_tokens,
            device=self._device,
        )


def _both_ways(chunk: Chunk, modalities: frozenset[str]) -> tuple[tuple[int, int], ...]:
    """The runs of a chunk whose rows see each other; a reused prefix may end inside the first."""
    if not modalities:
        return ()
    return tuple(
        (run.position, run.position + run.length)
        for item in chunk.request.items
        if item.item.modality in modalities
        for run in item.item.runs
        if run.position < chunk.end and chunk.begin < run.position + run.length
    )
