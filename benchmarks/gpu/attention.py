# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""How fast is paged attention of one layer, and what bounds it?

    python benchmarks/gpu/attention.py [--json FILE]

Phi-4-multimodal's heads (24 query, 8 key, 128 wide) in bf16. Each row gives microseconds of
device time by graph replay (median of 20 runs of 20), beside torch's own attention over contiguous
keys, which is what stock transformers calls, and the bytes or operations that it takes at least.
"""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import click
import numpy as np
import torch
import torch.nn.functional as F

if __package__ in (None, ""):  # run as a script
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tensorrt_llm._torch.attention_backend import AttentionMetadata, PagedKVPool, SequenceBatch
from tensorrt_llm._torch.attention_backend.triton_paged import TritonAttention

HEADS, KV_HEADS, DIM, BLOCK = 24, 8, 128, 32
DTYPE = torch.bfloat16
REPLAYS, RUNS = 20, 20
# Name, sequences, new tokens of each, tokens of each once these are written.
CASES = (
    ("decode, batch 1, 4k", 1, 1, 4096),
    ("decode, batch 8, 4k", 8, 1, 4096),
    ("decode, batch 64, 4k", 64, 1, 4096),
    ("prefill 8k", 1, 8192, 8192),
    ("512 tokens after 8k", 1, 512, 8704),
)


@dataclass(frozen=True)
class Row:
    """One case; microseconds a layer."""

    name: str
    ours_us: float
    torch_us: float
    kv_megabytes: float
    gigaflop: float
    largest_difference: float


def timed(run: Callable[[], torch.Tensor]) -> float:
    """Microseconds of one call, replayed."""
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        run()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(REPLAYS):
            run()
    times = []
    for _ in range(RUNS):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        graph.replay()
        end.record()
        torch.cuda.synchronize()
        times.append(1e3 * begin.elapsed_time(end) / REPLAYS)
    return statistics.median(times)


def measure(name: str, count: int, new: int, length: int) -> Row:
    device = torch.device("cuda")
    torch.manual_seed(0)
    processors = torch.cuda.get_device_properties(device).multi_processor_count
    backend = TritonAttention(
        num_heads=HEADS, num_kv_heads=KV_HEADS, dtype=DTYPE, processors=processors
    )
    each = -(-length // BLOCK)
    tables = np.random.default_rng(0).permutation(count * each).astype(np.int32).reshape(count, -1)
    pool = PagedKVPool.allocate(
        num_layers=1,
        num_blocks=tables.size,
        tokens_per_block=BLOCK,
        num_kv_heads=KV_HEADS,
        head_dim=DIM,
        dtype=DTYPE,
        device=device,
    )
    pool.keys.normal_()
    pool.values.normal_()
    batch = SequenceBatch.of(
        [new] * count,
        [length] * count,
        tables,
        [()] * count,
        tile_tokens=backend.tile_tokens,
        device=device,
    )
    at = np.arange(length - new, length)
    slots = torch.from_numpy(tables[:, at // BLOCK].astype(np.int64) * BLOCK + at % BLOCK)
    metadata = AttentionMetadata(pool, slots.flatten().to(device), (), backend, batch)
    query, key, value = (
        torch.randn(count * new, heads, DIM, dtype=DTYPE, device=device)
        for heads in (HEADS, KV_HEADS, KV_HEADS)
    )

    def ours() -> torch.Tensor:
        return backend.forward(0, query, key, value, metadata, scaling=None, sliding_window=None)

    got = ours()
    blocks = torch.from_numpy(tables).long().to(device)
    # Heads first, as a cache of transformers holds them.
    keys, values = (
        part[0][blocks].flatten(1, 2)[:, :length].transpose(1, 2).contiguous()
        for part in (pool.keys, pool.values)
    )
    turned = query.view(count, new, HEADS, DIM).transpose(1, 2)
    mask = None
    if 1 < new < length:
        mask = torch.ones(new, length, dtype=torch.bool, device=device).tril(length - new)

    def theirs() -> torch.Tensor:
        return F.scaled_dot_product_attention(
            turned, keys, values, attn_mask=mask, is_causal=new == length, enable_gqa=True
        )

    expected = theirs().transpose(1, 2).flatten(0, 1)
    pairs = count * new * (length - (new - 1) / 2)
    return Row(
        name,
        round(timed(ours), 2),
        round(timed(theirs), 2),
        round(2 * count * length * KV_HEADS * DIM * 2 / 1e6, 1),
        round(4 * pairs * HEADS * DIM / 1e9, 1),
        float((got - expected).abs().max()),
    )


@click.command(help=__doc__)
@click.option("--json", "json_file", help="Write the figures to this file.")
@torch.inference_mode()
def main(json_file: str | None) -> None:
    rows = []
    for case in CASES:
        rows.append(measure(*case))
        click.echo(rows[-1])
    report = {"gpu": torch.cuda.get_device_name(), "torch": torch.__version__}
    if json_file is not None:
        content = {**report, "rows": [asdict(row) for row in rows]}
        Path(json_file).write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
