# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""The Triton backend against the SDPA backend, over the same random steps and pools."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace

import numpy as np
import pytest
import torch

from tensorrt_llm._torch.attention_backend import (
    AttentionBackend,
    AttentionMetadata,
    PagedKVPool,
    SdpaAttention,
    SequenceAttention,
    SequenceBatch,
)

pytestmark = pytest.mark.gpu

# Largest difference to the same attention computed in float64, as a part of the largest value.
TOLERANCE = {torch.float32: 2e-5, torch.bfloat16: 2e-2, torch.float16: 3e-3}


@dataclass(frozen=True)
class Shape:
    """Sizes of one case."""

    heads: int
    kv_heads: int
    dim: int
    block: int
    dtype: torch.dtype = torch.bfloat16
    pool_dtype: torch.dtype | None = None


SHAPES = (
    Shape(24, 8, 128, 32),
    Shape(8, 8, 64, 16),
    Shape(16, 2, 96, 32),
    Shape(32, 1, 128, 64),
    Shape(4, 2, 8, 4, torch.float32),
    Shape(6, 2, 64, 32, torch.float16),
    Shape(8, 4, 128, 32, torch.float32, torch.bfloat16),
)


def backend_of(shape: Shape) -> AttentionBackend:
    from tensorrt_llm._torch.attention_backend.triton_paged import TritonAttention

    return TritonAttention(
        num_heads=shape.heads, num_kv_heads=shape.kv_heads, dtype=shape.dtype, processors=132
    )


class Steps:
    """Random steps over one pool: some sequences grow by chunks, some by one token."""

    def __init__(self, shape: Shape, seed: int, device: str, most: int) -> None:
        self.shape, self.device, self.most = shape, torch.device(device), most
        self.rng = random.Random(seed)
        self.generator = torch.Generator().manual_seed(seed)
        self.lengths = [0] * 5
        self.blocks_each = -(-6 * most // shape.block) + 1
        self.tables = np.arange(5 * self.blocks_each, dtype=np.int32)
        np.random.default_rng(seed).shuffle(self.tables)
        self.tables = self.tables.reshape(5, -1)

    def pool(self) -> PagedKVPool:
        """An empty pool; what was never written must not be read, so it is no number."""
        pool = PagedKVPool.allocate(
            num_layers=2,
            num_blocks=self.tables.size,
            tokens_per_block=self.shape.block,
            num_kv_heads=self.shape.kv_heads,
            head_dim=self.shape.dim,
            dtype=self.shape.pool_dtype or self.shape.dtype,
            device=self.device,
        )
        pool.keys.fill_(torch.nan)
        pool.values.fill_(torch.nan)
        return pool

    def randn(self, *shape: int) -> torch.Tensor:
        """Heads first and then turned, as transformers' layers give them."""
        tokens, heads, dim = shape
        drawn = torch.randn(heads, tokens, dim, generator=self.generator)
        return drawn.transpose(0, 1).to(self.device, self.shape.dtype)

    def next(self, pool: PagedKVPool, backend: AttentionBackend, both_ways: bool):
        """Metadata of the next step."""
        counts = [self.rng.choice([0, 1, 1, 2, self.most]) for _ in range(5)]
        counts[self.rng.randrange(5)] = self.most  # a chunk is always in it
        sequences, slots, chosen, offset = [], [], [], 0
        for number, count in enumerate(counts):
            if not count:
                continue
            first = self.lengths[number]
            self.lengths[number] += count
            end, size = self.lengths[number], self.shape.block
            table = torch.from_numpy(self.tables[number, : -(-end // size)]).long()
            at = torch.arange(first, end)
            slots.append(table[at // size] * size + at % size)
            spans = ((max(0, first - 2), end - 1),) if both_ways and count > 3 else ()
            sequences.append(
                SequenceAttention(offset, count, end, table.to(self.device), both_ways=spans)
            )
            chosen.append(number)
            offset += count
        assert backend.tile_tokens is not None
        batch = SequenceBatch.of(
            [one.query_len for one in sequences],
            [one.kv_len for one in sequences],
            self.tables[chosen],
            [one.both_ways for one in sequences],
            tile_tokens=backend.tile_tokens,
            device=self.device,
        )
        return AttentionMetadata(
            pool, torch.cat(slots).to(self.device), tuple(sequences), backend, batch
        )


def check(shape: Shape, window, both_ways: bool, most: int, device: str, steps: int = 6) -> None:
    seed = random.randrange(2**32)
    random_steps = Steps(shape, seed, device, most)
    ours, theirs = random_steps.pool(), random_steps.pool()
    backend = backend_of(shape)
    for _ in range(steps):
        metadata = random_steps.next(ours, backend, both_ways)
        expected_metadata = replace(metadata, pool=theirs, backend=SdpaAttention())
        tokens = metadata.slots.shape[0]
        query = random_steps.randn(tokens, shape.heads, shape.dim)
        key = random_steps.randn(tokens, shape.kv_heads, shape.dim)
        value = random_steps.randn(tokens, shape.kv_heads, shape.dim)
        options = {"scaling": 0.11, "sliding_window": window}
        got = backend.forward(1, query, key, value, metadata, **options)
        expected = SdpaAttention().forward(1, query, key, value, expected_metadata, **options)
        assert torch.equal(ours.keys[1].isnan(), theirs.keys[1].isnan()), f"seed {seed}"
        assert torch.equal(ours.values[1].nan_to_num(), theirs.values[1].nan_to_num())
        most_off = TOLERANCE[shape.dtype] * float(expected.abs().max())
        torch.testing.assert_close(got, expected, atol=most_off, rtol=0, msg=f"seed {seed}")


# Compiling takes most of the time: all shapes once, all options with the first.
CASES = [(shape, None, False) for shape in SHAPES]
CASES += [(SHAPES[0], 37, False), (SHAPES[0], 37, True), (SHAPES[4], 37, True)]
CASES += [(SHAPES[0], None, True), (SHAPES[2], None, True)]


@pytest.mark.parametrize(("shape", "window", "both_ways"), CASES, ids=str)
def test_random_steps_equal_sdpa(shape: Shape, window, both_ways: bool) -> None:
    check(shape, window, both_ways, most=150, device="cuda")


@pytest.mark.parametrize("shape", SHAPES[:2], ids=str)
def test_long_contexts_equal_sdpa(shape: Shape) -> None:
    check(shape, None, False, most=3000, device="cuda", steps=3)


def test_a_slot_below_zero_and_a_sequence_without_tokens_change_nothing() -> None:
    shape = SHAPES[0]
    steps, backend = Steps(shape, 1, "cuda", 40), backend_of(shape)
    pool = steps.pool()
    tensors = SequenceBatch.of(
        [1, 1], [0, 0], steps.tables[:2], [(), ()], tile_tokens=32, device=steps.device
    )
    slots = torch.full((2,), -1, device="cuda")
    parts = [steps.randn(2, heads, 128) for heads in (24, 8, 8)]
    metadata = AttentionMetadata(pool, slots, (), backend, tensors)
    got = backend.forward(0, *parts, metadata, scaling=None, sliding_window=None)
    assert bool((got == 0).all())
    assert bool(pool.keys.isnan().all()) and bool(pool.values.isnan().all())
