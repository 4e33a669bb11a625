# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""The decoder's step for one token a request as CUDA graphs, by padded batch size and adapters.

Such a step is the generation phase, and the last token of a repeated prompt. Launched one by one
its kernels take the processor longer than the device; a graph launches all of them at once. What
differs between steps stands in tensors whose place does not change. Rows that only fill a batch up
have no slot and see no token, so that they write and read nothing.

Of adapters those of the checkpoint itself are captured, each alone and all together: a mask says
which rows each of them changes. Layers of a graph without adapters are compiled, so that what lies
between two products is one kernel rather than ten.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

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
from tensorrt_llm._torch.peft import AdapterRows, LoraAdapter
from tensorrt_llm._torch.pyexecutor.compiled_layers import compiled_layers
from tensorrt_llm._torch.pyexecutor.step_layout import StepLayout
from tensorrt_llm.logger import get_logger

logger = get_logger(__name__)

# What the driver keeps of a graph of some thousand kernels, and its part of the activations.
_GRAPH_BYTES = 64 << 20


def adapter_sets(model: DecoderModel) -> list[frozenset[LoraAdapter]]:
    """The sets of adapters that graphs are captured for, smaller ones first."""
    own = list(model.mode_adapters.values())
    alone = [frozenset([adapter]) for adapter in own]
    return [frozenset(), *alone, *([frozenset(own)] if len(own) > 1 else [])]


def graph_bytes(model: DecoderModel, sizes: Sequence[int]) -> int:
    """Device memory to leave free for graphs of these sizes, in bytes; an upper estimate."""
    if not sizes:
        return 0
    count = len(sizes) * len(adapter_sets(model))
    return count * _GRAPH_BYTES + 3 * max(sizes) * model.vocab_size * 4


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
        masks: By adapter the rows that it changes, ``[size, 1]`` in the model's type.
    """

    graph: torch.cuda.CUDAGraph = field(repr=False)
    input_ids: torch.Tensor = field(repr=False)
    position_ids: torch.Tensor = field(repr=False)
    slots: torch.Tensor = field(repr=False)
    kv_lens: torch.Tensor = field(repr=False)
    block_tables: torch.Tensor = field(repr=False)
    masks: Mapping[LoraAdapter, torch.Tensor] = field(repr=False)

    @classmethod
    def empty(
        cls, size: int, model: DecoderModel, most_blocks: int, adapters: frozenset[LoraAdapter]
    ) -> _Graph:
        """One whose rows all fill up."""
        axes, device = model.position_axes, model.device

        def zeros(*shape: int, dtype: torch.dtype = torch.int64) -> torch.Tensor:
            return torch.zeros(shape, dtype=dtype, device=device)

        return cls(
            graph=torch.cuda.CUDAGraph(),
            input_ids=zeros(size),
            position_ids=zeros(axes, size),
            slots=zeros(size) - 1,
            kv_lens=zeros(size, dtype=torch.int32),
            block_tables=zeros(size, most_blocks, dtype=torch.int32),
            masks={adapter: zeros(size, 1, dtype=model.dtype) for adapter in adapters},
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

    def fill(
        self,
        layout: StepLayout,
        kv_lens: Sequence[int],
        block_tables: np.ndarray,
        adapters: Sequence[Sequence[LoraAdapter]],
    ) -> None:
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
        for adapter, mask in self.masks.items():
            rows = [adapter in own for own in adapters] + [False] * (size - count)
            mask.copy_(torch.tensor(rows)[:, None])


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
        self._compiles = True
        self._most_blocks = -(-model.max_seq_len // pool.tokens_per_block)
        self._graphs: dict[tuple[int, frozenset[LoraAdapter]], _Graph] = {}
        # A graph reads tensors by address: what it has captured must live as long as it does.
        self._metadata: list[AttentionMetadata] = []
        self._logits = torch.zeros(
            max(sizes, default=0), model.vocab_size, dtype=torch.float32, device=pool.device
        )
        self._capture(sorted(sizes, reverse=True))

    @property
    def sizes(self) -> tuple[int, ...]:
        """Captured batch sizes, ascending."""
        return tuple(sorted({size for size, _ in self._graphs}))

    def run(
        self,
        layout: StepLayout,
        kv_lens: Sequence[int],
        block_tables: np.ndarray,
        adapters: Sequence[Sequence[LoraAdapter]],
    ) -> torch.Tensor | None:
        """Runs a step of one token a sequence, none of them a row of media.

        Args:
            layout: The step.
            kv_lens: Tokens of each sequence once this step's are written.
            block_tables: int32 ``[sequences, most blocks]``.
            adapters: Those of each sequence.

        Returns:
            float32 logits ``[sequences, vocab_size]``; None if no graph is large enough, or has
            the adapters.
        """
        graph = self.fitting(layout.num_tokens, adapters)
        if graph is None or block_tables.shape[1] > self._most_blocks:
            return None
        graph.fill(layout, kv_lens, block_tables, adapters)
        graph.graph.replay()
        # The next step writes over them.
        return self._logits[: layout.num_tokens].clone()

    def fitting(self, count: int, adapters: Sequence[Sequence[LoraAdapter]]) -> _Graph | None:
        """The smallest graph for so many rows that has these adapters; None if there is none."""
        wanted = frozenset(adapter for own in adapters for adapter in own)
        kinds = [(s, own) for s, own in self._graphs if s >= count and wanted <= own]
        return self._graphs[min(kinds, key=lambda kind: (kind[0], len(kind[1])))] if kinds else None

    @torch.inference_mode()
    def _capture(self, sizes: Sequence[int]) -> None:
        """Captures the largest first: the smaller ones find its memory."""
        started, device = time.perf_counter(), self._pool.device
        before, _ = torch.cuda.mem_get_info(device)
        stream, memory = torch.cuda.Stream(device), torch.cuda.graph_pool_handle()
        kinds = [(size, adapters) for size in sizes for adapters in adapter_sets(self._model)]
        bars = tqdm(kinds, desc="capturing CUDA graphs", unit="graph", disable=not draws_bars())
        for size, adapters in bars:
            try:
                graph = self._capture_one(size, adapters, stream, memory)
            except Exception as error:
                logger.warning("steps run kernel by kernel: no CUDA graph of %d: %s", size, error)
                self._graphs.clear()
                torch.cuda.synchronize(device)
                return
            self._graphs[size, adapters] = graph
        after, _ = torch.cuda.mem_get_info(device)
        logger.info(
            "captured %d CUDA graphs in %.1f s, %.0f MiB",
            len(self._graphs),
            time.perf_counter() - started,
            (before - after) / 2**20,
        )

    def _capture_one(
        self, size: int, adapters: frozenset[LoraAdapter], stream: torch.cuda.Stream, memory: Any
    ) -> _Graph:
        # Compiled with adapters the layers take minutes, as each has matrices of its own.
        if self._compiles and not adapters:
            graph = self._empty(size, adapters)
            try:
                with compiled_layers(self._model):
                    self._record(graph, stream, memory)
                return graph
            except Exception as error:
                # What a compiler cannot do is no reason to launch kernels one by one.
                logger.warning("layers of CUDA graphs are not compiled: %s", error)
                self._compiles = False
                torch.cuda.synchronize(self._pool.device)
        graph = self._empty(size, adapters)
        self._record(graph, stream, memory)
        return graph

    def _empty(self, size: int, adapters: frozenset[LoraAdapter]) -> _Graph:
        return _Graph.empty(size, self._model, self._most_blocks, adapters)

    def _record(self, graph: _Graph, stream: torch.cuda.Stream, memory: Any) -> None:
        device = self._pool.device
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

    def _step(self, graph: _Graph, metadata: AttentionMetadata) -> None:
        embeds = self._model.embedding(graph.input_ids)
        groups = [AdapterRows(adapter, mask=mask) for adapter, mask in graph.masks.items()]
        with self._model.lora.applied(groups, len(graph.slots)):
            hidden = self._model.forward(embeds, graph.position_ids, metadata)
        self._logits[: len(graph.slots)].copy_(self._model.logits(hidden))
