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


def text_embeddings(model: DecoderModel, token_ids: torch.Tensor) -> torch.Tensor:
    """Embeddings of text ``[num_tokens, row_width]``, with nothing beyond ``hidden_size``."""
    embeds = model.embedding(token_ids.long())
    return torch.nn.functional.pad(embeds, (0, model.row_width - model.hidden_size))


def embeddings(model: MultimodalDecoderModel, prompt: ProcessedPrompt) -> torch.Tensor:
    """A prompt's embeddings ``[prompt_len, row_width]``, rows of media put in."""
    embeds = text_embeddings(model, torch.from_numpy(prompt.token_ids))
    for item, rows in zip(prompt.items, encoded(model, prompt), strict=True):
        for run, part in zip(item.runs, rows.split([r.length for r in item.runs]), strict=True):
            embeds[run.position : run.position + run.length] = part
    return embeds


def _both_ways(model: DecoderModel, prompt: ProcessedPrompt) -> tuple[tuple[int, int], ...]:
    return tuple(
        (run.position, run.position + run.length)
        for item in prompt.items
        if item.modality in model.bidirectional_modalities
        for run in item.runs
    )


@torch.no_grad()
def run_flattened(
    model: DecoderModel,
    sequences: Sequence[torch.Tensor],
    positions: Sequence[torch.Tensor] | None = None,
    prompts: Sequence[ProcessedPrompt] | None = None,
) -> list[torch.Tensor]:
    """Logits of whole sequences, run as one flattened batch.

    Args:
        model: The model.
        sequences: Embeddings ``[length, row_width]`` of each.
        positions: Rotary positions ``[axes, length]`` of each; their indices if not given.
        prompts: The prompts they begin with, where the model looks both ways within items.
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
    spans = [_both_ways(model, prompt) for prompt in prompts] if prompts else [()] * len(lengths)
    attention = tuple(
        SequenceAttention(start, length, length, table, both_ways)
        for start, length, table, both_ways in zip(starts, lengths, tables, spans, strict=False)
    )
    metadata = AttentionMetadata(pool, torch.cat(slots), attention, SdpaAttention())
    places = positions if positions is not None else [index[None] for index in indices]
    expanded = [place.long().expand(model.position_axes, -1) for place in places]
    embeds, extra = torch.cat(list(sequences)).tensor_split([model.hidden_size], 1)
    # To add nothing to a token of text is to leave it as it is.
    everywhere = torch.ones(len(embeds), dtype=torch.bool)
    layer_inputs = model.layer_inputs(everywhere, extra) if extra.shape[1] else {}
    hidden = model.forward(embeds, torch.cat(expanded, 1), metadata, layer_inputs)
    return list(model.logits(hidden).split(lengths))
