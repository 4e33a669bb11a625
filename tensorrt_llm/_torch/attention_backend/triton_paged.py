# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Paged attention in Triton: reads block tables directly, all sequences of a step in one call.

Sequences with several new tokens and those with one are launched apart, because they want other
tiles: the first compute, the second read. A launch does not depend on lengths that only the
device knows, so a step of single tokens can be captured in a CUDA graph.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
import torch.nn.functional as F
import triton

from tensorrt_llm._torch.attention_backend import triton_kernels as kernels
from tensorrt_llm._torch.attention_backend.batch import SequenceBatch, Tiles
from tensorrt_llm._torch.attention_backend.interface import (
    AttentionBackend,
    AttentionMetadata,
    SequenceAttention,
)

# Rows (tokens times query heads of one key head) of a context tile, by bytes of an element: what
# is in float32 needs twice the shared memory. tl.dot wants 16 at least.
_CONTEXT_ROWS = {2: 128, 4: 32}
_MIN_ROWS = 16
_CONTEXT_KEYS = {2: 64, 4: 32}
_SINGLE_KEYS = {2: 64, 4: 32}
# Programs that a launch over single tokens should have; what one multiprocessor holds, times all.
_PROGRAMS_PER_PROCESSOR = 4
_MAX_SPLITS = 64
# More calls than that in a layer cost more than one launch for all.
_MOST_TORCH_CALLS = 4


class TritonAttention(AttentionBackend):
    """One launch for context tiles, one for single tokens, and one that joins the splits of these.

    Args:
        num_heads: Query heads.
        num_kv_heads: Key and value heads.
        dtype: Of the queries.
        processors: Multiprocessors of the device.
    """

    def __init__(
        self, *, num_heads: int, num_kv_heads: int, dtype: torch.dtype, processors: int
    ) -> None:
        self._num_heads = num_heads
        self._num_kv_heads = num_kv_heads
        self._group = num_heads // num_kv_heads
        self._size = dtype.itemsize
        self._programs = processors * _PROGRAMS_PER_PROCESSOR
        least = max(_MIN_ROWS, triton.next_power_of_2(self._group))
        self._context_rows = max(_CONTEXT_ROWS[self._size], least)
        self._single_rows = least
        self._precision = "ieee" if dtype == torch.float32 else "tf32"

    @property
    def tile_tokens(self) -> int:
        """See the interface."""
        return self._context_rows // self._group

    def forward(
        self,
        layer: int,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        metadata: AttentionMetadata,
        *,
        scaling: float | None,
        sliding_window: int | None,
    ) -> torch.Tensor:
        """See the interface."""
        batch = metadata.batch
        assert batch is not None, "a step for this backend lacks its sequences as tensors"
        keys, values = metadata.pool.keys[layer], metadata.pool.values[layer]
        self._store(key, value, keys, values, metadata.slots)
        output = torch.empty(query.shape, dtype=query.dtype, device=query.device)
        scale = (query.shape[-1] ** -0.5 if scaling is None else scaling) * math.log2(math.e)
        if key.dtype == keys.dtype and _all_new(metadata.sequences, sliding_window):
            for sequence in metadata.sequences:
                _attend_new(sequence, query, key, value, output, scaling)
        elif batch.context.count:
            self._attend(
                query, keys, values, output, batch, batch.context, scale, sliding_window,
                rows=self._context_rows, block_n=_CONTEXT_KEYS[self._size],
                splits=1, warps=8 if self._size == 2 else 4,
            )  # fmt: skip
        if batch.single.count:
            self._attend(
                query, keys, values, output, batch, batch.single, scale, sliding_window,
                rows=self._single_rows, block_n=_SINGLE_KEYS[self._size],
                splits=self._splits(batch.single.count), warps=4,
            )  # fmt: skip
        return output

    def _splits(self, count: int) -> int:
        """Programs for each single token and key head: enough for the device, a power of two."""
        wanted = self._programs / (count * self._num_kv_heads)
        return min(max(triton.next_power_of_2(math.ceil(wanted)), 1), _MAX_SPLITS)

    def _store(
        self,
        key: torch.Tensor,
        value: torch.Tensor,
        keys: torch.Tensor,
        values: torch.Tensor,
        slots: torch.Tensor,
    ) -> None:
        key, value = _dense_heads(key), _dense_heads(value)
        tokens, heads, dim = key.shape
        kernels.store_kv[(tokens,)](
            key, value, keys, values, slots,
            key.stride(0), key.stride(1), value.stride(0), value.stride(1), keys.stride(1),
            HEADS=heads, HEAD_DIM=dim, ROW=triton.next_power_of_2(heads * dim),
        )  # fmt: skip

    def _attend(
        self,
        query: torch.Tensor,
        keys: torch.Tensor,
        values: torch.Tensor,
        output: torch.Tensor,
        batch: SequenceBatch,
        tiles: Tiles,
        scale: float,
        window: int | None,
        *,
        rows: int,
        block_n: int,
        splits: int,
        warps: int,
    ) -> None:
        query = _dense_heads(query)
        _, heads, head_dim = query.shape
        dim = max(_MIN_ROWS, triton.next_power_of_2(head_dim))
        # Where nothing is split these are not touched, but a kernel wants tensors.
        partial = top = total = output
        if splits > 1:
            shape = (tiles.count, heads, splits)
            partial = output.new_empty((*shape, head_dim), dtype=torch.float32)
            top, total = (output.new_empty(shape, dtype=torch.float32) for _ in range(2))
        kernels.attend[(tiles.count, self._num_kv_heads, splits)](
            query, keys, values, output, partial, top, total,
            tiles.sequences, tiles.tokens, batch.query_starts, batch.kv_lens, batch.block_tables,
            output if batch.spans is None else batch.spans,
            scale, 0 if window is None else window,
            query.stride(0), query.stride(1), output.stride(0), keys.stride(1),
            batch.block_tables.stride(0), heads, splits,
            GROUP=self._group, HEAD_DIM=head_dim, DIM=dim, TOKENS_PER_BLOCK=keys.shape[1],
            BLOCK_M=rows, BLOCK_Q=rows // self._group, BLOCK_N=block_n, SPLIT=splits > 1,
            HAS_SPANS=batch.spans is not None, HAS_WINDOW=window is not None,
            PRECISION=self._precision, num_warps=warps, num_stages=3 if self._size == 2 else 2,
        )  # fmt: skip
        if splits > 1:
            kernels.join_splits[(tiles.count, heads)](
                partial, top, total, output, batch.single_rows, splits,
                HEADS=heads, HEAD_DIM=head_dim, DIM=dim, SPLITS=splits,
            )  # fmt: skip


def _all_new(sequences: Sequence[SequenceAttention], window: int | None) -> bool:
    """Whether all context sequences have no other tokens than this step's, each seeing all before.

    Then nothing is read from the pool, and torch's own attention is the fastest (measured on an
    H200, 8192 tokens: 0.77 ms a layer, the kernel here 1.38 ms).
    """
    several = [one for one in sequences if one.query_len > 1]
    return 0 < len(several) <= _MOST_TORCH_CALLS and all(
        one.query_len == one.kv_len
        and not one.both_ways
        and (window is None or one.kv_len <= window)
        for one in several
    )


def _attend_new(
    sequence: SequenceAttention,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    output: torch.Tensor,
    scaling: float | None,
) -> None:
    """Torch's causal attention over one whole sequence; nothing for a single token."""
    if sequence.query_len == 1:
        return
    rows = slice(sequence.query_start, sequence.query_start + sequence.query_len)
    attended = F.scaled_dot_product_attention(
        query[rows].transpose(0, 1)[None],
        key[rows].transpose(0, 1)[None],
        value[rows].transpose(0, 1)[None],
        is_causal=True,
        scale=scaling,
        enable_gqa=query.shape[1] != key.shape[1],
    )
    output[rows] = attended[0].transpose(0, 1)


def _dense_heads(tensor: torch.Tensor) -> torch.Tensor:
    """A view or copy whose heads are each contiguous."""
    return tensor if tensor.stride(-1) == 1 else tensor.contiguous()
