# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Paged attention against attention over one contiguous sequence, written out."""

from __future__ import annotations

import random

import pytest
import torch

from tensorrt_llm._torch.attention_backend import (
    AttentionMetadata,
    PagedKVPool,
    SdpaAttention,
    SequenceAttention,
)

LAYERS, HEADS, KV_HEADS, DIM, BLOCK = 2, 4, 2, 8, 4


def plain_attention(query, key, value, first, scaling, window, span=(0, 0)):
    """query [n, H, D] at positions first.., key and value [m, H, D]; softmax written out."""
    key = key.repeat_interleave(HEADS // KV_HEADS, 1)
    value = value.repeat_interleave(HEADS // KV_HEADS, 1)
    output = torch.empty_like(query)
    for row in range(query.shape[0]):
        position = first + row
        start = 0 if window is None else max(0, position - window + 1)
        end = span[1] if span[0] <= position < span[1] else position + 1
        for head in range(HEADS):
            scores = key[start:end, head] @ query[row, head] * scaling
            output[row, head] = scores.softmax(0) @ value[start:end, head]
    return output


@pytest.mark.parametrize("both_ways", [False, True])
@pytest.mark.parametrize("window", [None, 3])
@pytest.mark.parametrize("scaling", [None, 0.7])
def test_random_batches_of_chunks_and_single_tokens(window, scaling, both_ways) -> None:
    seed = random.randrange(2**32)
    rng, generator = random.Random(seed), torch.Generator().manual_seed(seed)

    def randn(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=generator)

    pool = PagedKVPool.allocate(
        num_layers=LAYERS,
        num_blocks=32,
        tokens_per_block=BLOCK,
        num_kv_heads=KV_HEADS,
        head_dim=DIM,
        dtype=torch.float32,
        device=torch.device("cpu"),
    )
    pool.keys.fill_(torch.nan)  # reading what was never written must show
    pool.values.fill_(torch.nan)
    blocks = list(range(32))
    rng.shuffle(blocks)
    tables = [torch.tensor([blocks.pop() for _ in range(8)]) for _ in range(3)]
    lengths = [0, 0, 0]
    keys = [[torch.empty(0, KV_HEADS, DIM)] * 3 for _ in range(LAYERS)]
    values = [[torch.empty(0, KV_HEADS, DIM)] * 3 for _ in range(LAYERS)]
    for _ in range(6):
        counts = [rng.choice([0, 1, 1, 4]) for _ in range(3)]
        sequences, slots, offset = [], [], 0
        # The last tokens but one of a chunk, and one or two that an earlier step wrote.
        spans = [
            (max(0, length - 2), length + 3) if both_ways and count == 4 else (0, 0)
            for length, count in zip(lengths, counts, strict=True)
        ]
        for number, count in enumerate(counts):
            positions = torch.arange(lengths[number], lengths[number] + count)
            lengths[number] += count
            if count:
                table = tables[number][: -(-lengths[number] // BLOCK)]
                span = (spans[number],) if spans[number][1] else ()
                sequences.append(SequenceAttention(offset, count, lengths[number], table, span))
                slots.append(table[positions // BLOCK] * BLOCK + positions % BLOCK)
                offset += count
        if not sequences:
            continue
        backend = SdpaAttention()
        metadata = AttentionMetadata(pool, torch.cat(slots), tuple(sequences), backend)
        for layer in range(LAYERS):
            query = randn(offset, HEADS, DIM)
            key, value = randn(offset, KV_HEADS, DIM), randn(offset, KV_HEADS, DIM)
            got = backend.forward(
                layer, query, key, value, metadata, scaling=scaling, sliding_window=window
            )
            start = 0
            for number, count in enumerate(counts):
                rows = slice(start, start + count)
                start += count
                keys[layer][number] = torch.cat([keys[layer][number], key[rows]])
                values[layer][number] = torch.cat([values[layer][number], value[rows]])
                expected = plain_attention(
                    query[rows],
                    keys[layer][number],
                    values[layer][number],
                    lengths[number] - count,
                    DIM**-0.5 if scaling is None else scaling,
                    window,
                    spans[number],
                )
                torch.testing.assert_close(got[rows], expected, msg=f"seed {seed}")
