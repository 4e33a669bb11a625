# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Voxtral."""

from __future__ import annotations

from pathlib import Path

import torch
from transformers import VoxtralConfig, VoxtralForConditionalGeneration, WhisperFeatureExtractor

from examples.tiny.tokenizer import END_OF_TEXT, make_tokenizer
from examples.tiny.weights import add_processor_settings, save, text_sizes

WINDOW_SECONDS = 4

# As Mistral's: turns of a user stand in marks, and only an answer is closed.
TEMPLATE = """\
{%- for message in messages -%}
{%- if message['role'] == 'assistant' -%}
{{- message['content'] + '</s>' -}}
{%- else -%}
{{- '[INST]' -}}
{%- if message['content'] is string -%}
{{- message['content'] -}}
{%- else -%}
{%- for part in message['content'] -%}
{%- if part['type'] == 'text' -%}{{- part['text'] -}}
{%- elif part['type'] in ['audio', 'audio_url', 'input_audio'] -%}
{{- '[BEGIN_AUDIO][AUDIO]' -}}
{%- else -%}{{- raise_exception('unknown content part: ' + part['type']) -}}
{%- endif -%}
{%- endfor -%}
{%- endif -%}
{{- '[/INST]' -}}
{%- endif -%}
{%- endfor -%}
"""


def build_voxtral(out: Path, generator: torch.Generator) -> None:
    """Writes a Voxtral checkpoint that hears windows of 4 seconds, 50 rows each."""
    end = "</s>"
    marks = ["[INST]", "[/INST]", "[BEGIN_AUDIO]", "[AUDIO]"]
    tokenizer = make_tokenizer([END_OF_TEXT, end, *marks], TEMPLATE)
    config = VoxtralConfig(
        text_config={"model_type": "llama", **text_sizes(tokenizer), "head_dim": 16},
        audio_config={
            "hidden_size": 32,
            "intermediate_size": 128,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "num_mel_bins": 128,
            "max_source_positions": 50 * WINDOW_SECONDS,
        },
        audio_token_id=tokenizer.get_vocab()["[AUDIO]"],
    )
    # A sharper encoder makes so much of the last bits that clips heard together, as the stock model
    # does, and alone differ visibly. More rounding than elsewhere is left: smaller scores.
    gains = [("audio_tower", 1.0), ("lm_head", 7.5)]
    save(VoxtralForConditionalGeneration(config), tokenizer, out, generator, end, gains)
    extractor = WhisperFeatureExtractor(feature_size=128, chunk_length=WINDOW_SECONDS)
    extractor.save_pretrained(out)
    add_processor_settings(out, {"processor_class": "VoxtralProcessor"})
