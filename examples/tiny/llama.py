# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""A text decoder."""

from __future__ import annotations

from pathlib import Path

import torch
from transformers import LlamaConfig, LlamaForCausalLM

from examples.tiny.tokenizer import ASSISTANT, END, END_OF_TEXT, SYSTEM, USER, make_tokenizer
from examples.tiny.weights import DECODER_SIZES, save

TEXT_TEMPLATE = """\
{%- for message in messages -%}
{{- '<|' + message['role'] + '|>' + message['content'] + '<|end|>' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- '<|assistant|>' -}}{%- endif -%}
"""


def build_llama(out: Path, generator: torch.Generator) -> None:
    """Writes a text checkpoint whose chat template takes strings only."""
    tokenizer = make_tokenizer([END_OF_TEXT, END, USER, ASSISTANT, SYSTEM], TEXT_TEMPLATE)
    config = LlamaConfig(vocab_size=len(tokenizer), tie_word_embeddings=False, **DECODER_SIZES)
    save(LlamaForCausalLM(config), tokenizer, out, generator)
