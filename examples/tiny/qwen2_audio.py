# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Qwen2-Audio."""

from __future__ import annotations

from pathlib import Path

import torch
from transformers import (
    Qwen2AudioConfig,
    Qwen2AudioForConditionalGeneration,
    WhisperFeatureExtractor,
)

from examples.tiny.qwen import QWEN_TEMPLATE
from examples.tiny.tokenizer import END_OF_TEXT, TURN, TURN_END, make_tokenizer
from examples.tiny.weights import add_processor_settings, save, text_sizes


def build_qwen2_audio(out: Path, generator: torch.Generator) -> None:
    """Writes a Qwen2-Audio checkpoint; sound takes 25 tokens a second, at most 30 seconds."""
    names = {
        "audio_token": "<|AUDIO|>",
        "audio_bos_token": "<|audio_bos|>",
        "audio_eos_token": "<|audio_eos|>",
    }
    tokenizer = make_tokenizer(
        [END_OF_TEXT, TURN_END, TURN, *names.values()], QWEN_TEMPLATE, **names
    )
    config = Qwen2AudioConfig(
        text_config={"model_type": "qwen2", **text_sizes(tokenizer)},
        audio_config={
            "d_model": 32,
            "encoder_layers": 2,
            "encoder_attention_heads": 4,
            "encoder_ffn_dim": 64,
            "num_mel_bins": 128,
        },
        audio_token_index=tokenizer.get_vocab()["<|AUDIO|>"],
    )
    save(Qwen2AudioForConditionalGeneration(config), tokenizer, out, generator, TURN_END)
    WhisperFeatureExtractor(feature_size=128, return_attention_mask=True).save_pretrained(out)
    add_processor_settings(out, {"processor_class": "Qwen2AudioProcessor"})
