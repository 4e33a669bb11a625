# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Qwen2-VL, Qwen2.5-VL and Qwen3-VL."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from transformers import (
    PreTrainedTokenizerFast,
    Qwen2_5_VLConfig,
    Qwen2_5_VLForConditionalGeneration,
    Qwen2VLConfig,
    Qwen2VLForConditionalGeneration,
    Qwen3VLConfig,
    Qwen3VLForConditionalGeneration,
)
from transformers.image_utils import OPENAI_CLIP_MEAN, OPENAI_CLIP_STD

from examples.tiny.qwen import QWEN_TEMPLATE
from examples.tiny.tokenizer import END_OF_TEXT, TURN, TURN_END, make_tokenizer
from examples.tiny.weights import DECODER_SIZES, add_processor_settings, save, text_sizes

PATCH_SIZE = 14
# A head of 16 turns 8 pairs: 2 by time, 3 by height, 3 by width.
ROPE = {"rope_type": "default", "rope_theta": 10000.0, "mrope_section": [2, 3, 3]}


def build_qwen2_vl(out: Path, generator: torch.Generator) -> None:
    """Writes a Qwen2-VL checkpoint; a picture takes a token for 28 x 28 pixels, at most 256."""
    tokenizer, shared = _qwen_vl_parts()
    config = Qwen2VLConfig(
        vision_config={
            "depth": 2,
            "embed_dim": 32,
            "hidden_size": DECODER_SIZES["hidden_size"],
            "num_heads": 4,
            "mlp_ratio": 2,
        },
        **shared,
    )
    save(Qwen2VLForConditionalGeneration(config), tokenizer, out, generator, TURN_END)
    save_qwen_vl_processor(out, "Qwen2VLProcessor")


def build_qwen2_5_vl(out: Path, generator: torch.Generator) -> None:
    """Writes a Qwen2.5-VL checkpoint, whose picture encoder attends within windows."""
    tokenizer, shared = _qwen_vl_parts()
    config = Qwen2_5_VLConfig(
        vision_config={
            "depth": 2,
            "hidden_size": 32,
            "intermediate_size": 64,
            "num_heads": 4,
            "out_hidden_size": DECODER_SIZES["hidden_size"],
            "window_size": 56,
            "fullatt_block_indexes": [1],
        },
        **shared,
    )
    save(Qwen2_5_VLForConditionalGeneration(config), tokenizer, out, generator, TURN_END)
    save_qwen_vl_processor(out, "Qwen2_5_VLProcessor")


def build_qwen3_vl(out: Path, generator: torch.Generator) -> None:
    """Writes a Qwen3-VL checkpoint: patches of 16 pixels, features of two encoder layers."""
    tokenizer, shared = _qwen_vl_parts()
    shared["text_config"]["head_dim"] = 16
    config = Qwen3VLConfig(
        vision_config={
            "depth": 3,
            "hidden_size": 32,
            "intermediate_size": 64,
            "num_heads": 4,
            "out_hidden_size": DECODER_SIZES["hidden_size"],
            "patch_size": 16,
            "num_position_embeddings": 64,
            "deepstack_visual_indexes": [0, 1],
        },
        **shared,
    )
    save(Qwen3VLForConditionalGeneration(config), tokenizer, out, generator, TURN_END)
    save_qwen_vl_processor(out, "Qwen3VLProcessor", patch_size=16, mean=[0.5] * 3, std=[0.5] * 3)
    save_video_settings(
        out,
        video_processor_type="Qwen3VLVideoProcessor",
        size={"shortest_edge": 4 * 64**2, "longest_edge": 1024 * 32**2},
        patch_size=16,
        image_mean=[0.5] * 3,
        image_std=[0.5] * 3,
    )


def _qwen_vl_parts() -> tuple[PreTrainedTokenizerFast, dict[str, Any]]:
    """Tokenizer of both families, and what their configurations have in common."""
    marks = ["<|vision_start|>", "<|vision_end|>", "<|image_pad|>", "<|video_pad|>"]
    tokenizer = make_tokenizer(
        [END_OF_TEXT, TURN_END, TURN, *marks],
        QWEN_TEMPLATE,
        image_token="<|image_pad|>",
        video_token="<|video_pad|>",
    )
    ids = {
        f"{mark[2:-2].removesuffix('_pad')}_token_id": tokenizer.convert_tokens_to_ids(mark)
        for mark in marks
    }
    return tokenizer, {"text_config": {"rope_parameters": ROPE, **text_sizes(tokenizer)}, **ids}


def save_video_settings(out: Path, **settings: Any) -> None:
    """Writes a checkpoint's own settings of video, where it has any."""
    shared = {"merge_size": 2, "temporal_patch_size": 2}
    path = out / "video_preprocessor_config.json"
    path.write_text(json.dumps(shared | settings, indent=2, sort_keys=True) + "\n")


def save_qwen_vl_processor(
    out: Path,
    processor_class: str,
    patch_size: int = PATCH_SIZE,
    mean: Sequence[float] = OPENAI_CLIP_MEAN,
    std: Sequence[float] = OPENAI_CLIP_STD,
) -> None:
    """Adds the settings of pictures to a checkpoint's processor."""
    settings = {
        "processor_class": processor_class,
        "image_processor_type": "Qwen2VLImageProcessor",
        "min_pixels": (4 * patch_size) ** 2,
        "max_pixels": 256 * (2 * patch_size) ** 2,
        "patch_size": patch_size,
        "merge_size": 2,
        "temporal_patch_size": 2,
        "image_mean": list(mean),
        "image_std": list(std),
    }
    add_processor_settings(out, settings)
