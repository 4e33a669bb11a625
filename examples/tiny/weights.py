# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Seeded weights, and how a checkpoint is written."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from examples.tiny.tokenizer import END, END_OF_TEXT, MAX_POSITIONS

DECODER_SIZES: dict[str, Any] = {
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": MAX_POSITIONS,
}

# Gain of a weight matrix over 1/sqrt(fan in), by the first pattern its name matches. The defaults
# of transformers are so small that a random model answers everything alike. Sharp attention
# (queries and keys) makes a token see few others rather than their average, and strong value paths
# let what it sees outweigh the token itself, so that the answer depends on the media. The wide head
# gives most tokens a clear winner.
GAINS = (
    (r"lm_head", 8.0),
    (r"encoder\.embed\.", 2.5),
    (r"layers\.\d+\.mlp", 2.2),
    (r"layers\.\d+\.self_attn\.(qkv_proj|q_proj|k_proj)", 2.0),
    (r"layers\.\d+\.self_attn\.(o_proj|v_proj|out_proj)", 2.0),
    (r"position_embedding|embed_positions|bias_values", 0.5),
    (r"img_projection_down|down_proj_for", 2.0),
    (r"", 1.4),
)


def seed_weights(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerFast,
    generator: torch.Generator,
    end: str,
    gains: Sequence[tuple[str, float]] = (),
) -> None:
    """Draws every weight anew, from the generator only.

    Matrices are normal with a gain by name, norms one, biases small. Tokens that a text answer
    should not contain (all special tokens but the end mark, single bytes that are no ASCII text)
    get an output row of zero, so greedy answers decode to readable words.
    """
    with torch.no_grad():
        for name, weight in sorted(model.named_parameters()):
            if weight.ndim >= 2:
                gain = next(gain for pattern, gain in (*gains, *GAINS) if re.search(pattern, name))
                weight.normal_(0.0, gain / _fan_in(name, weight) ** 0.5, generator=generator)
            elif name.endswith("bias") or re.search(r"\.b[12]$", name):
                weight.normal_(0.0, 0.02, generator=generator)
            else:
                weight.fill_(1.0)
        silent = [i for i in range(len(tokenizer)) if not _is_answer_token(tokenizer, i, end)]
        model.get_output_embeddings().weight[silent] = 0.0


def _fan_in(name: str, weight: torch.Tensor) -> int:
    # Rows of a table are picked, not summed, and the separators of image rows stand for a feature.
    if re.search(r"embed_tokens\.|position_embedding|embed_positions|bias_values|extensor", name):
        return 1
    return weight[0].numel()


def _is_answer_token(tokenizer: PreTrainedTokenizerFast, token: int, end: str) -> bool:
    if token in tokenizer.all_special_ids or token in tokenizer.added_tokens_decoder:
        return tokenizer.convert_ids_to_tokens(token) == end
    text = tokenizer.decode([token])
    assert isinstance(text, str)
    return text.isprintable() and "\N{REPLACEMENT CHARACTER}" not in text


def save(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerFast,
    out: Path,
    generator: torch.Generator,
    end: str = END,
    gains: Sequence[tuple[str, float]] = (),
) -> None:
    """Draws a model's weights and writes it with its tokenizer.

    ``end`` closes a turn; ``gains`` go before those of all families.
    """
    seed_weights(model, tokenizer, generator, end, gains)
    ends = [tokenizer.convert_tokens_to_ids(END_OF_TEXT), tokenizer.convert_tokens_to_ids(end)]
    model.config.eos_token_id = model.generation_config.eos_token_id = ends
    model.config.bos_token_id = model.generation_config.bos_token_id = ends[0]
    model.config.pad_token_id = model.generation_config.pad_token_id = ends[0]
    model.eval().save_pretrained(out)
    tokenizer.save_pretrained(out)


def add_processor_settings(out: Path, settings: dict[str, Any]) -> None:
    """Adds to the folder's ``preprocessor_config.json``, the layout of published checkpoints."""
    path = out / "preprocessor_config.json"
    present = json.loads(path.read_text()) if path.exists() else {}
    path.write_text(json.dumps(present | settings, indent=2, sort_keys=True) + "\n")


def text_sizes(tokenizer: PreTrainedTokenizerFast) -> dict[str, Any]:
    """Configuration of a decoder for that tokenizer."""
    ids = {"bos_token_id": 0, "eos_token_id": 1, "pad_token_id": 0}
    return {"vocab_size": len(tokenizer), **ids, **DECODER_SIZES}
