# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Text decoders of several families, all of one size."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from transformers import (
    Gemma3ForCausalLM,
    Gemma3TextConfig,
    LlamaConfig,
    LlamaForCausalLM,
    MistralConfig,
    MistralForCausalLM,
    Phi3Config,
    Phi3ForCausalLM,
    Qwen2Config,
    Qwen2ForCausalLM,
    Qwen3Config,
    Qwen3ForCausalLM,
)

from examples.tiny.tokenizer import ASSISTANT, END, END_OF_TEXT, SYSTEM, USER, make_tokenizer
from examples.tiny.weights import DECODER_SIZES, save

# Tokens that a layer with a window sees.
WINDOW = 24

TEXT_TEMPLATE = """\
{%- for message in messages -%}
{{- '<|' + message['role'] + '|>' + message['content'] + '<|end|>' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- '<|assistant|>' -}}{%- endif -%}
"""

_GEMMA: dict[str, Any] = {
    "head_dim": 16,
    "query_pre_attn_scalar": 16,
    "sliding_window": WINDOW,
    "layer_types": ["sliding_attention", "full_attention", "sliding_attention"],
}
_CLASSES: dict[str, tuple[Any, Any, dict[str, Any]]] = {
    "llama": (LlamaConfig, LlamaForCausalLM, {}),
    "qwen2": (Qwen2Config, Qwen2ForCausalLM, {}),
    "qwen3": (Qwen3Config, Qwen3ForCausalLM, {"head_dim": 32}),
    "mistral": (MistralConfig, MistralForCausalLM, {"sliding_window": WINDOW, "head_dim": 16}),
    "phi3": (Phi3Config, Phi3ForCausalLM, {"pad_token_id": 0}),
    "gemma3_text": (Gemma3TextConfig, Gemma3ForCausalLM, _GEMMA),
}
TEXT_FAMILIES = tuple(_CLASSES)


def build_text(family: str, out: Path, generator: torch.Generator) -> None:
    """Writes a text checkpoint whose chat template takes strings only."""
    tokenizer = make_tokenizer([END_OF_TEXT, END, USER, ASSISTANT, SYSTEM], TEXT_TEMPLATE)
    config_class, model_class, own = _CLASSES[family]
    config = config_class(
        vocab_size=len(tokenizer), tie_word_embeddings=False, **DECODER_SIZES, **own
    )
    # Smaller scores than the others': a text's last bits weigh as little as a picture's.
    gains = () if family == "llama" else (("lm_head", 4.0),)
    save(model_class(config), tokenizer, out, generator, gains=gains)
