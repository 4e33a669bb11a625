# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Qwen2.5-Omni's thinker."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from transformers import (
    Qwen2_5OmniThinkerConfig,
    Qwen2_5OmniThinkerForConditionalGeneration,
    WhisperFeatureExtractor,
)

from examples.tiny.qwen import PICTURE, QWEN_TEMPLATE, VIDEO
from examples.tiny.qwen2_vl import PATCH_SIZE, ROPE, save_qwen_vl_processor, save_video_settings
from examples.tiny.tokenizer import END_OF_TEXT, TURN, TURN_END, make_tokenizer
from examples.tiny.weights import DECODER_SIZES, save, text_sizes

LONGEST_SECONDS = 10


def build_qwen2_5_omni(out: Path, generator: torch.Generator) -> None:
    """Writes the thinker: pictures as the tiny Qwen2.5-VL, sound of at most 10 seconds."""
    names = {
        "image_token": "<|IMAGE|>",
        "video_token": "<|VIDEO|>",
        "audio_token": "<|AUDIO|>",
        "vision_bos_token": "<|vision_bos|>",
        "vision_eos_token": "<|vision_eos|>",
        "audio_bos_token": "<|audio_bos|>",
        "audio_eos_token": "<|audio_eos|>",
    }
    tokenizer = make_tokenizer(
        [END_OF_TEXT, TURN_END, TURN, *names.values()],
        QWEN_TEMPLATE.replace(PICTURE, "<|vision_bos|><|IMAGE|><|vision_eos|>").replace(
            VIDEO, "<|vision_bos|><|VIDEO|><|vision_eos|>"
        ),
        **names,
    )
    ids = tokenizer.get_vocab()
    # Not named by the configuration's class, and yet read by the model.
    seen: dict[str, Any] = {
        "vision_start_token_id": ids["<|vision_bos|>"],
        "vision_end_token_id": ids["<|vision_eos|>"],
    }
    config = Qwen2_5OmniThinkerConfig(
        text_config={"rope_parameters": ROPE, **text_sizes(tokenizer)},
        vision_config={
            "depth": 2,
            "hidden_size": 32,
            "intermediate_size": 64,
            "num_heads": 4,
            "out_hidden_size": DECODER_SIZES["hidden_size"],
            "window_size": 56,
            "fullatt_block_indexes": [1],
        },
        audio_config={
            "d_model": 32,
            "encoder_layers": 2,
            "encoder_attention_heads": 4,
            "encoder_ffn_dim": 64,
            "num_mel_bins": 128,
            "output_dim": DECODER_SIZES["hidden_size"],
        },
        image_token_index=ids["<|IMAGE|>"],
        video_token_index=ids["<|VIDEO|>"],
        audio_token_index=ids["<|AUDIO|>"],
        audio_start_token_id=ids["<|audio_bos|>"],
        audio_end_token_id=ids["<|audio_eos|>"],
        **seen,
    )
    model = Qwen2_5OmniThinkerForConditionalGeneration(config)
    # Three encoders' rounding meets in one answer: smaller scores than the others'.
    save(model, tokenizer, out, generator, TURN_END, [("lm_head", 5.0)])
    extractor = WhisperFeatureExtractor(
        feature_size=128, chunk_length=LONGEST_SECONDS, return_attention_mask=True
    )
    extractor.save_pretrained(out)
    save_qwen_vl_processor(out, "Qwen2_5OmniProcessor")
    save_video_settings(
        out,
        video_processor_type="Qwen2VLVideoProcessor",
        size={"shortest_edge": (4 * PATCH_SIZE) ** 2, "longest_edge": 256 * (2 * PATCH_SIZE) ** 2},
        patch_size=PATCH_SIZE,
    )
