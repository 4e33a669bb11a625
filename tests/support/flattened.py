# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Whole sequences through a model of ours in one flattened batch, without an engine around it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

import torch

from tensorrt_llm._torch.attention_backend import (
    AttentionMetadata,
    PagedKVPool,
    SdpaAttention,
    SequenceAttention,
)
from tensorrt_llm._torch.models import DecoderModel, MultimodalDecoderModel
from tensorrt_llm.inputs.data import ProcessedPrompt

BLOCK = 8


def encoded(model: MultimodalDecoderModel, prompt: ProcessedPrompt) -> list[torch.Tensor]:
    """Encoder rows of each item."""
    return [
        model.encode(item.modality, item.encoder_inputs, **item.encoder_kwargs)
        for item in prompt.items
    ]


def embeddings(model: MultimodalDecoderModel, prompt: ProcessedPrompt) -> torch.Tensor:
    """A prompt's embeddings ``[prompt_len, hidden_size]``, rows of media put in."""
    embeds = model.embedding(torch.from_numpy(prompt.token_ids).long())
    for item, rows in zip(prompt.items, encoded(model, prompt), strict=True):
        for run, part in zip(item.runs, rows.split([r.length for r in item.runs]), strict=True):
            embeds[run.position : run.position + run.length] = part
    return embeds


@torch.no_grad()
def run_flattened(
    model: DecoderModel,
    sequences: Sequence[torch.Tensor],
    positions: Sequence[torch.Tensor] | None = None,
) -> list[torch.Tensor]:
    """Logits of whole sequences, run as one flattened batch.

    Args:
        model: The model.
        sequences: Embeddings ``[length, hidden_size]`` of each.
        positions: Rotary positions ``[axes, length]`` of each; their indices if not given.
    """
    lengths = [len(sequence) for sequence in sequences]
    counts = [-(-length // BLOCK) for length in lengths]
    pool = PagedKVPool.allocate(
        num_layers=model.num_layers,
        num_blocks=sum(counts),
        tokens_per_block=BLOCK,
        num_kv_heads=model.num_kv_heads,
        head_dim=model.head_dim,
        dtype=model.dtype,
        device=model.device,
    )
    # Blocks are handed out backwards, so that no order can be taken for granted.
    tables = torch.arange(sum(counts)).flip(0).split(counts)
    indices = [torch.arange(length) for length in lengths]
    slots = [
        table[place // BLOCK] * BLOCK + place % BLOCK
        for table, place in zip(tables, indices, strict=True)
    ]
    starts = [0, *accumulate(lengths)]
    attention = tuple(
        SequenceAttention(start, length, length, table)
        for start, length, table in zip(starts, lengths, tables, strict=False)
    )
    metadata = AttentionMetadata(pool, torch.cat(slots), attention, SdpaAttention())
    places = positions if positions is not None else [index[None] for index in indices]
    expanded = [place.long().expand(model.position_axes, -1) for place in places]
    hidden = model.forward(torch.cat(list(sequences)), torch.cat(expanded, 1), metadata)
    return list(model.logits(hidden).split(lengths))
