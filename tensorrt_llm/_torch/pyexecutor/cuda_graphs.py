# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""The decoder's step for one token a request as CUDA graphs, one for each padded batch size.

Such a step is the generation phase, and the last token of a repeated prompt. Launched one by one
its kernels take the processor longer than the device; a graph launches all of them at once. What
differs between steps stands in tensors whose place does not change. Rows that only fill a batch up
have no slot and see no token, so that they write and read nothing.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from tqdm import tqdm  # type: ignore[import-untyped]

from tensorrt_llm._torch.attention_backend import (
    AttentionBackend,
    AttentionMetadata,
    PagedKVPool,
    SequenceBatch,
    Tiles,
)
from tensorrt_llm._torch.load_progress import draws_bars
from tensorrt_llm._torch.models.modeling_utils import DecoderModel
from tensorrt_llm._torch.pyexecutor.step_layout import StepLayout
from tensorrt_llm.logger import get_logger

logger = get_logger(__name__)

# What the driver keeps of a graph of some thousand kernels, and its part of the activations.
_GRAPH_BYTES = 64 << 20


def graph_bytes(model: DecoderModel, sizes: Sequence[int]) -> int:
    """Device memory to leave free for graphs of these sizes, in bytes; an upper estimate."""
    if not sizes:
        return 0
    return len(sizes) * _GRAPH_BYTES + 3 * max(sizes) * model.vocab_size * 4


@dataclass(frozen=True)
class _Graph:
    """One captured batch size, and what it reads.

    Attributes:
        graph: It.
        input_ids: int64 ``[size]``.
        position_ids: int64 ``[axes, size]``.
        slots: int64 ``[size]``; below zero for a row that fills up.
        kv_lens: int32 ``[size]``; 0 for such a row.
        block_tables: int32 ``[size, most blocks]``.
    """

    graph: torch.cuda.CUDAGraph = field(repr=False)
    input_ids: torch.Tensor = field(repr=False)
    position_ids: torch.Tensor = field(repr=False)
    slots: torch.Tensor = field(repr=False)
    kv_lens: torch.Tensor = field(repr=False)
    block_tables: torch.Tensor = field(repr=False)

    @classmethod
    def empty(cls, size: int, axes: int, most_blocks: int, device: torch.device) -> _Graph:
        """One whose rows all fill up."""

        def zeros(*shape: int, dtype: torch.dtype = torch.int64) -> torch.Tensor:
            return torch.zeros(shape, dtype=dtype, device=device)

        return cls(
            graph=torch.cuda.CUDAGraph(),
            input_ids=zeros(size),
            position_ids=zeros(axes, size),
            slots=zeros(size) - 1,
            kv_lens=zeros(size, dtype=torch.int32),
            block_tables=zeros(size, most_blocks, dtype=torch.int32),
        )

    def metadata(self, pool: PagedKVPool, backend: AttentionBackend) -> AttentionMetadata:
        """The step, as the attention reads it."""
        size, device = len(self.slots), self.slots.device
        rows = torch.arange(size + 1, dtype=torch.int32, device=device)
        single = Tiles(rows[:size], torch.zeros_like(rows[:size]), size)
        batch = SequenceBatch(
            query_starts=rows,
            kv_lens=self.kv_lens,
            block_tables=self.block_tables,
            context=Tiles(rows[:0], rows[:0], 0),
            single=single,
            single_rows=rows[:size],
            spans=None,
        )
        return AttentionMetadata(pool, self.slots, (), backend, batch)

    def fill(self, layout: StepLayout, kv_lens: Sequence[int], block_tables: np.ndarray) -> None:
        """Puts a step in."""
        count, size = layout.num_tokens, len(self.slots)
        self.input_ids[:count].copy_(layout.input_ids)
        self.position_ids[:, :count].copy_(layout.position_ids)
        self.slots[:count].copy_(layout.slots)
        if count < size:
            self.slots[count:].fill_(-1)
        lens = np.zeros(size, np.int32)
        lens[:count] = kv_lens
        self.kv_lens.copy_(torch.from_numpy(lens))
        tables = torch.from_numpy(block_tables)
        self.block_tables[:count, : tables.shape[1]].copy_(tables)


class DecoderGraphs:
    """Graphs of a model over a pool.

    Args:
        model: The model.
        pool: The paged KV pool.
        backend: An attention backend with ``tile_tokens``.
        sizes: Batch sizes to capture.
    """

    def __init__(
        self,
        model: DecoderModel,
        pool: PagedKVPool,
        backend: AttentionBackend,
        sizes: Sequence[int],
    ) -> None:
        self._model, self._pool, self._backend = model, pool, backend
        self._most_blocks = -(-model.max_seq_len // pool.tokens_per_block)
        self._graphs: dict[int, _Graph] = {}
        # A graph reads tensors by address: what it has captured must live as long as it does.
        self._metadata: list[AttentionMetadata] = []
        self._logits = torch.zeros(
            max(sizes, default=0), model.vocab_size, dtype=torch.float32, device=pool.device
        )
        self._capture(sorted(sizes, reverse=True))

    @property
    def sizes(self) -> tuple[int, ...]:
        """Captured batch sizes, ascending."""
        return tuple(sorted(self._graphs))

    def run(
        self, layout: StepLayout, kv_lens: Sequence[int], block_tables: np.ndarray
    ) -> torch.Tensor | None:
        """Runs a step of one token a sequence, none of them a row of media.

        Args:
            layout: The step.
            kv_lens: Tokens of each sequence once this step's are written.
            block_tables: int32 ``[sequences, most blocks]``.

        Returns:
            float32 logits ``[sequences, vocab_size]``; None if no graph is large enough.
        """
        size = next((size for size in self.sizes if size >= layout.num_tokens), None)
        if size is None or block_tables.shape[1] > self._most_blocks:
            return None
        graph = self._graphs[size]
        graph.fill(layout, kv_lens, block_tables)
        graph.graph.replay()
        # The next step writes over them.
        return self._logits[: layout.num_tokens].clone()

    @torch.inference_mode()
    def _capture(self, sizes: Sequence[int]) -> None:
        """Captures the largest first: the smaller ones find its memory."""
        started, device = time.perf_counter(), self._pool.device
        before, _ = torch.cuda.mem_get_info(device)
        stream, memory = torch.cuda.Stream(device), torch.cuda.graph_pool_handle()
        bars = tqdm(sizes, desc="capturing CUDA graphs", unit="graph", disable=not draws_bars())
        for size in bars:
            graph = _Graph.empty(size, self._model.position_axes, self._most_blocks, device)
            try:
                metadata = graph.metadata(self._pool, self._backend)
                self._metadata.append(metadata)
                stream.wait_stream(torch.cuda.current_stream(device))
                with torch.cuda.stream(stream):
                    self._step(graph, metadata)  # compiles, and lets libraries take what they want
                torch.cuda.current_stream(device).wait_stream(stream)
                with torch.cuda.graph(
                    graph.graph, pool=memory, stream=stream, capture_error_mode="thread_local"
                ):
                    self._step(graph, metadata)
            except Exception as error:
                logger.warning("steps run kernel by kernel: no CUDA graph of %d: %s", size, error)
                self._graphs.clear()
                torch.cuda.synchronize(device)
                return
            self._graphs[size] = graph
        after, _ = torch.cuda.mem_get_info(device)
        logger.info(
            "captured %d CUDA graphs in %.1f s, %.0f MiB",
            len(self._graphs),
            time.perf_counter() - started,
            (before - after) / 2**20,
        )

    def _step(self, graph: _Graph, metadata: AttentionMetadata) -> None:
        embeds = self._model.embedding(graph.input_ids)
        with self._model.lora.applied([], len(graph.slots)):
            hidden = self._model.forward(embeds, graph.position_ids, metadata)
        self._logits[: len(graph.slots)].copy_(self._model.logits(hidden))
