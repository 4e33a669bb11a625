# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Paged attention with torch's scaled dot product attention: one call a sequence.

Runs wherever torch runs. It gathers a sequence's blocks into one contiguous tensor, so its cost
on a GPU is launches and copies; it is the reference that faster backends are compared with.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F

from tensorrt_llm._torch.attention_backend.interface import (
    AttentionBackend,
    AttentionMetadata,
    SequenceAttention,
)


class SdpaAttention(AttentionBackend):
    """Gather the blocks, then ``scaled_dot_product_attention``."""

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
        keys, values = metadata.pool.keys[layer], metadata.pool.values[layer]
        keys.flatten(0, 1).index_copy_(0, metadata.slots, key.to(keys.dtype))
        values.flatten(0, 1).index_copy_(0, metadata.slots, value.to(values.dtype))
        output = torch.empty_like(query)
        for sequence in metadata.sequences:
            rows = slice(sequence.query_start, sequence.query_start + sequence.query_len)
            attended = F.scaled_dot_product_attention(
                _heads_first(query[rows]),
                _gather(keys, sequence, query.dtype),
                _gather(values, sequence, query.dtype),
                attn_mask=_mask(sequence, sliding_window, query.device),
                is_causal=_plain_causal(sequence, sliding_window),
                scale=scaling,
                enable_gqa=query.shape[1] != keys.shape[2],
            )
            output[rows] = attended[0].transpose(0, 1)
        return output


def _heads_first(tensor: torch.Tensor) -> torch.Tensor:
    """``[tokens, heads, dim]`` to ``[1, heads, tokens, dim]``, a view."""
    return tensor.transpose(0, 1)[None]


def _gather(
    pool_layer: torch.Tensor, sequence: SequenceAttention, dtype: torch.dtype
) -> torch.Tensor:
    """One sequence's keys or values, ``[1, kv_heads, kv_len, dim]``."""
    blocks = pool_layer.index_select(0, sequence.block_table)
    return _heads_first(blocks.flatten(0, 1)[: sequence.kv_len].to(dtype))


def _plain_causal(sequence: SequenceAttention, sliding_window: int | None) -> bool:
    """Whether torch's own causal mask is the right one: all tokens are new and none is hidden."""
    whole = sequence.query_len == sequence.kv_len > 1 and not sequence.both_ways
    return whole and (sliding_window is None or sequence.kv_len <= sliding_window)


def _mask(
    sequence: SequenceAttention, sliding_window: int | None, device: torch.device
) -> torch.Tensor | None:
    """Boolean ``[query_len, kv_len]``, True where a token may look; None where no mask is due."""
    if _plain_causal(sequence, sliding_window):
        return None
    one = sequence.query_len == 1  # it is the last token, so there is nothing behind it to see
    if one and (sliding_window is None or sequence.kv_len <= sliding_window):
        return None
    first = sequence.kv_len - sequence.query_len
    query = torch.arange(first, sequence.kv_len, device=device)[:, None]
    key = torch.arange(sequence.kv_len, device=device)[None, :]
    visible = key <= query
    for begin, end in sequence.both_ways:
        visible |= (begin <= query) & (query < end) & (begin <= key) & (key < end)
    if sliding_window is not None:
        visible &= key > query - sliding_window
    return visible
