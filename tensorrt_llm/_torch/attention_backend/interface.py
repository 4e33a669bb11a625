# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Paged attention behind transformers' attention interface.

A step is one flattened batch: the new tokens of every scheduled sequence laid end to end. The
model's layers call ``paged_attention_forward`` (registered with transformers under
``PAGED_ATTENTION``) with that batch and the ``AttentionMetadata`` of the step, which reaches the
layers as the keyword ``attn_metadata``. A backend writes the new keys and values to their slots
of the paged pool and attends over each sequence's blocks. It knows block tables, not requests.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any

import torch
from transformers import AttentionInterface

from tensorrt_llm._torch.attention_backend.batch import SequenceBatch

PAGED_ATTENTION = "trtllm_paged"


@dataclass(frozen=True)
class PagedKVPool:
    """Keys and values of all blocks.

    Attributes:
        keys: ``[num_layers, num_blocks, tokens_per_block, num_kv_heads, head_dim]``.
        values: Same shape.
    """

    keys: torch.Tensor = field(repr=False)
    values: torch.Tensor = field(repr=False)

    @classmethod
    def allocate(
        cls,
        *,
        num_layers: int,
        num_blocks: int,
        tokens_per_block: int,
        num_kv_heads: int,
        head_dim: int,
        dtype: torch.dtype,
        device: torch.device,
        pin_memory: bool = False,
    ) -> PagedKVPool:
        """Allocates a pool. Its content is undefined until written.

        Args:
            num_layers: Decoder layers.
            num_blocks: Blocks.
            tokens_per_block: Tokens a block holds.
            num_kv_heads: Key and value heads a layer.
            head_dim: Size of one head.
            dtype: Of keys and values.
            device: Where it lives.
            pin_memory: Lock host memory, so that a CUDA device copies to and from it by itself.
        """
        shape = (num_layers, num_blocks, tokens_per_block, num_kv_heads, head_dim)

        def empty() -> torch.Tensor:
            return torch.empty(shape, dtype=dtype, device=device, pin_memory=pin_memory)

        return cls(keys=empty(), values=empty())

    @property
    def tokens_per_block(self) -> int:
        """Tokens a block holds."""
        return self.keys.shape[2]

    @property
    def device(self) -> torch.device:
        """Where the pool lives."""
        return self.keys.device

    def copy_block(
        self, source: int, destination_pool: PagedKVPool, destination: int, num_tokens: int
    ) -> None:
        """Copies the first tokens of a block, in all layers, to a block of this or another pool.

        In stream order on CUDA: what is run afterwards sees the copy.
        """
        for ours, theirs in (
            (self.keys, destination_pool.keys),
            (self.values, destination_pool.values),
        ):
            theirs[:, destination, :num_tokens].copy_(
                ours[:, source, :num_tokens], non_blocking=True
            )


@dataclass(frozen=True)
class SequenceAttention:
    """One sequence's part of a step.

    Attributes:
        query_start: Index of its first new token in the flattened batch.
        query_len: Number of its new tokens.
        kv_len: Tokens it has in the pool once this step's are written.
        block_table: int64 block ids on the pool's device, enough to hold ``kv_len`` tokens.
        both_ways: Spans ``[begin, end)`` of its tokens that see each other whatever their order,
            each written as a whole once this step's tokens are.
    """

    query_start: int
    query_len: int
    kv_len: int
    block_table: torch.Tensor = field(repr=False)
    both_ways: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True)
class AttentionMetadata:
    """What a backend needs to know of a step.

    Attributes:
        pool: The paged pool.
        slots: int64 ``[num_tokens]``: for each new token ``block * tokens_per_block + offset``.
        sequences: In the order of the flattened batch; empty where ``batch`` says all.
        backend: Who computes it.
        batch: The sequences as tensors, for a backend that has ``tile_tokens``.
    """

    pool: PagedKVPool
    slots: torch.Tensor = field(repr=False)
    sequences: tuple[SequenceAttention, ...]
    backend: AttentionBackend
    batch: SequenceBatch | None = None


class AttentionBackend(ABC):
    """Computes attention of one layer over a flattened batch."""

    @property
    def tile_tokens(self) -> int | None:
        """Tokens of a context tile, where the backend wants ``AttentionMetadata.batch``.

        Such a backend reads lengths on the device only, so that its launches can be captured in a
        CUDA graph. It writes nothing for a slot below zero. None: it takes ``sequences``.
        """
        return None

    @abstractmethod
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
        """Writes the new keys and values to the pool, then attends, causally but for both_ways.

        Args:
            layer: Layer index into the pool.
            query: ``[num_tokens, num_heads, head_dim]``.
            key: ``[num_tokens, num_kv_heads, head_dim]``, with positions already applied.
            value: Like ``key``.
            metadata: The step.
            scaling: Factor on the scores; None means ``head_dim ** -0.5``.
            sliding_window: A token sees itself and of those before it no more than the
                ``sliding_window - 1`` nearest; None sees all.

        Returns:
            ``[num_tokens, num_heads, head_dim]``.
        """


def paged_attention_forward(
    module: torch.nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    scaling: float | None = None,
    sliding_window: int | None = None,
    attn_metadata: AttentionMetadata | None = None,
    softcap: float | None = None,
    s_aux: torch.Tensor | None = None,
    **_: Any,
) -> tuple[torch.Tensor, None]:
    """The function that transformers' layers call; tensors are ``[1, heads, tokens, dim]``."""
    if softcap is not None or s_aux is not None:
        # To leave either out would be another model's answer.
        raise NotImplementedError("attention with capped scores or with sinks is not computed")
    assert attn_metadata is not None, "the model dropped the attn_metadata keyword on its way"
    output = attn_metadata.backend.forward(
        int(module.layer_idx),  # type: ignore[arg-type]
        query[0].transpose(0, 1),
        key[0].transpose(0, 1),
        value[0].transpose(0, 1),
        attn_metadata,
        scaling=scaling,
        sliding_window=sliding_window,
    )
    return output[None], None


# No mask function is registered under this name, so transformers builds no mask.
AttentionInterface.register(PAGED_ATTENTION, paged_attention_forward)
