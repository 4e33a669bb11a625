# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Gemma 3."""

from __future__ import annotations

from pathlib import Path

import torch
from transformers import Gemma3Config, Gemma3ForConditionalGeneration

from examples.tiny.tokenizer import END_OF_TEXT, make_tokenizer
from examples.tiny.weights import add_processor_settings, save, text_sizes

SIDE, PATCH_SIZE, ROWS = 112, 7, 64
# Less than a picture has rows, so that not all of its rows see each other in a layer with a window.
WINDOW = 48

# As Gemma's: an assistant is a model, and there are no system messages of their own.
TEMPLATE = """\
{%- for message in messages -%}
{{- '<start_of_turn>' + ('model' if message['role'] == 'assistant' else message['role']) + '\n' -}}
{%- if message['content'] is string -%}
{{- message['content'] | trim -}}
{%- else -%}
{%- for part in message['content'] -%}
{%- if part['type'] == 'text' -%}{{- part['text'] | trim -}}
{%- elif part['type'] in ['image', 'image_url'] -%}{{- '<start_of_image>' -}}
{%- else -%}{{- raise_exception('unknown content part: ' + part['type']) -}}
{%- endif -%}
{%- endfor -%}
{%- endif -%}
{{- '<end_of_turn>\n' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- '<start_of_turn>model\n' -}}{%- endif -%}
"""


def build_gemma3(out: Path, generator: torch.Generator) -> None:
    """Writes a Gemma 3 checkpoint; a picture takes 64 rows, two of three layers see 48 tokens."""
    end = "<end_of_turn>"
    names = {
        "boi_token": "<start_of_image>",
        "eoi_token": "<end_of_image>",
        "image_token": "<image_soft_token>",
    }
    tokenizer = make_tokenizer(
        [END_OF_TEXT, end, "<start_of_turn>", *names.values()],
        TEMPLATE,
        # Lines between are one token, as in the full-size tokenizer.
        ["\n\n", "\n\n\n", "\n\n\n\n"] * 20,
        **names,
    )
    ids = tokenizer.get_vocab()
    config = Gemma3Config(
        text_config={
            **text_sizes(tokenizer),
            "head_dim": 16,
            "query_pre_attn_scalar": 16,
            "sliding_window": WINDOW,
            "layer_types": ["sliding_attention", "full_attention", "sliding_attention"],
        },
        vision_config={
            "model_type": "siglip_vision_model",
            "hidden_size": 32,
            "intermediate_size": 64,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "image_size": SIDE,
            "patch_size": PATCH_SIZE,
            "vision_use_head": False,
        },
        mm_tokens_per_image=ROWS,
        tie_word_embeddings=False,
        boi_token_index=ids["<start_of_image>"],
        eoi_token_index=ids["<end_of_image>"],
        image_token_index=ids["<image_soft_token>"],
    )
    save(Gemma3ForConditionalGeneration(config), tokenizer, out, generator, end)
    settings = {
        "processor_class": "Gemma3Processor",
        "image_processor_type": "Gemma3ImageProcessor",
        "image_seq_length": ROWS,
        "size": {"height": SIDE, "width": SIDE},
        "do_pan_and_scan": None,
        "resample": 2,
        "image_mean": [0.5, 0.5, 0.5],
        "image_std": [0.5, 0.5, 0.5],
    }
    add_processor_settings(out, settings)
