# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Idefics3 and SmolVLM."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from transformers import (
    Idefics3Config,
    Idefics3ForConditionalGeneration,
    SmolVLMConfig,
    SmolVLMForConditionalGeneration,
)

from examples.tiny.tokenizer import END_OF_TEXT, TURN, make_tokenizer
from examples.tiny.weights import add_processor_settings, save, text_sizes

# As Idefics3's: roles in words, and white space that depends on what a message begins with.
IDEFICS_TEMPLATE = """\
{{- '<|im_start|>' -}}
{%- for message in messages -%}
{{- message['role'] | capitalize -}}
{%- if message['content'] is string -%}
{{- ': ' + message['content'] -}}
{%- else -%}
{{- ':' if message['content'] and message['content'][0]['type'] == 'image' else ': ' -}}
{%- for part in message['content'] -%}
{%- if part['type'] == 'text' -%}{{- part['text'] -}}
{%- elif part['type'] in ['image', 'image_url'] -%}{{- '<image>' -}}
{%- else -%}{{- raise_exception('unknown content part: ' + part['type']) -}}
{%- endif -%}
{%- endfor -%}
{%- endif -%}
{{- '<end_of_utterance>\n' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- 'Assistant:' -}}{%- endif -%}
"""


def build_idefics3(out: Path, generator: torch.Generator) -> None:
    """Writes an Idefics3 checkpoint with tiles of 56 pixels, at most 3 x 3 and 16 tokens each."""
    _build_idefics(Idefics3Config, Idefics3ForConditionalGeneration, out, generator)


def build_smolvlm(out: Path, generator: torch.Generator) -> None:
    """Writes a SmolVLM checkpoint, which takes pictures as Idefics3 does."""
    _build_idefics(SmolVLMConfig, SmolVLMForConditionalGeneration, out, generator)


def _build_idefics(
    config_class: Any, model_class: Any, out: Path, generator: torch.Generator
) -> None:
    end = "<end_of_utterance>"
    tags = [f"<row_{line}_col_{column}>" for line in range(1, 4) for column in range(1, 4)]
    marks = ["<fake_token_around_image>", "<image>", "<global-img>", *tags]
    tokenizer = make_tokenizer([END_OF_TEXT, end, TURN, *marks], IDEFICS_TEMPLATE)
    config = config_class(
        text_config={"model_type": "llama", **text_sizes(tokenizer)},
        vision_config={
            "hidden_size": 32,
            "intermediate_size": 64,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "image_size": 56,
            "patch_size": 7,
        },
        image_token_id=tokenizer.get_vocab()["<image>"],
        scale_factor=2,
        pad_token_id=0,
    )
    save(model_class(config), tokenizer, out, generator, end)
    name = config_class.__name__.removesuffix("Config")
    settings = {
        "processor_class": f"{name}Processor",
        "image_processor_type": f"{name}ImageProcessor",
        "size": {"longest_edge": 168},
        "max_image_size": {"longest_edge": 56},
        "do_image_splitting": True,
        "image_mean": [0.5, 0.5, 0.5],
        "image_std": [0.5, 0.5, 0.5],
    }
    add_processor_settings(out, settings)
