# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""LLaVA-OneVision."""

from __future__ import annotations

from pathlib import Path

import torch
from transformers import LlavaOnevisionConfig, LlavaOnevisionForConditionalGeneration
from transformers.image_utils import OPENAI_CLIP_MEAN, OPENAI_CLIP_STD

from examples.tiny.qwen import PICTURE, QWEN_TEMPLATE, VIDEO
from examples.tiny.tokenizer import END_OF_TEXT, TURN, TURN_END, make_tokenizer
from examples.tiny.weights import add_processor_settings, save, text_sizes

TILE, PATCH_SIZE = 56, 14
GRIDS = [[TILE * lines, TILE * columns] for lines in (1, 2, 3) for columns in (1, 2, 3)]
MOST_TILES = 4


def build_llava_onevision(out: Path, generator: torch.Generator) -> None:
    """Writes a LLaVA-OneVision checkpoint with tiles of 56 pixels, at most 3 x 3 of 16 rows."""
    names = {"image_token": "<image>", "video_token": "<video>"}
    tokenizer = make_tokenizer(
        [END_OF_TEXT, TURN_END, TURN, *names.values()],
        QWEN_TEMPLATE.replace(PICTURE, "<image>").replace(VIDEO, "<video>"),
        **names,
    )
    config = LlavaOnevisionConfig(
        text_config={"model_type": "qwen2", **text_sizes(tokenizer)},
        vision_config={
            "model_type": "siglip_vision_model",
            "hidden_size": 32,
            "intermediate_size": 64,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "image_size": TILE,
            "patch_size": PATCH_SIZE,
            "vision_use_head": False,
        },
        image_token_index=tokenizer.get_vocab()["<image>"],
        video_token_index=tokenizer.get_vocab()["<video>"],
        image_grid_pinpoints=GRIDS,
        # Less than the largest grid has, so that some pictures' rows are made fewer.
        vision_aspect_ratio=f"anyres_max_{MOST_TILES}",
    )
    save(LlavaOnevisionForConditionalGeneration(config), tokenizer, out, generator, TURN_END)
    settings = {
        "processor_class": "LlavaOnevisionProcessor",
        "image_processor_type": "LlavaOnevisionImageProcessor",
        "size": {"height": TILE, "width": TILE},
        "image_grid_pinpoints": GRIDS,
        "image_mean": list(OPENAI_CLIP_MEAN),
        "image_std": list(OPENAI_CLIP_STD),
    }
    add_processor_settings(out, settings)
