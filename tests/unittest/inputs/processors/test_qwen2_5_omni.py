# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Qwen2.5-Omni: ids, patches, features and positions of the stock classes, identities, lengths."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from support.checkpoints import build_checkpoint
from support.media import RATE, clip, picture
from support.prompts import PromptMaker
from support.reference import ReferenceModel
from transformers import Qwen2_5OmniProcessor, WhisperFeatureExtractor
from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil

from tensorrt_llm.errors import ConfigurationError, MediaError
from tensorrt_llm.inputs.data import ProcessedPrompt

SEEN, HEARD = "<|vision_bos|><|IMAGE|><|vision_eos|>", "<|audio_bos|><|AUDIO|><|audio_eos|>"
GREY_LEVEL = 1 / 255 / 0.26


@pytest.fixture(scope="module")
def checkpoint(checkpoint_root: Path) -> Path:
    return build_checkpoint("qwen2_5_omni", checkpoint_root)


@pytest.fixture(scope="module")
def make(checkpoint: Path) -> PromptMaker:
    return PromptMaker(checkpoint)


class StockProcessor(Qwen2_5OmniProcessor):
    """The stock processor without its video half, which cannot be made without torchvision."""

    @classmethod
    def get_attributes(cls) -> list[str]:
        return ["image_processor", "feature_extractor", "tokenizer"]

    def __init__(self, image_processor: Any, feature_extractor: Any, tokenizer: Any) -> None:
        super(Qwen2_5OmniProcessor, self).__init__(image_processor, feature_extractor, tokenizer)
        for name in ("image_token", "audio_token", "video_token"):
            setattr(self, name, getattr(tokenizer, name))
            setattr(self, f"{name}_id", getattr(tokenizer, f"{name}_id"))


TEXT = f"{SEEN} and {HEARD}, then {HEARD}{SEEN}?"
PICTURES = [picture(1), picture(2, 90, 300)]
CLIPS = [clip(1, 0.5), clip(2, 3.21)]


@pytest.fixture(scope="module")
def prompt(make: PromptMaker) -> ProcessedPrompt:
    return make(TEXT, PICTURES[0], CLIPS[0], CLIPS[1], PICTURES[1])


def joined(prompt: ProcessedPrompt, name: str) -> torch.Tensor:
    inputs = [item.encoder_inputs for item in prompt.items]
    return torch.cat([one[name] for one in inputs if name in one])


def test_ids_patches_and_features_are_those_of_the_stock_processor(
    checkpoint: Path, make: PromptMaker, prompt: ProcessedPrompt
) -> None:
    stock = StockProcessor(
        Qwen2VLImageProcessorPil.from_pretrained(checkpoint),
        WhisperFeatureExtractor.from_pretrained(checkpoint),
        make.tokenizer,
    )
    theirs = stock(text=[TEXT], images=PICTURES, audio=CLIPS, return_tensors="pt")
    assert prompt.token_ids.tolist() == theirs["input_ids"][0].tolist()
    for name in ("input_features", "feature_attention_mask", "image_grid_thw"):
        assert torch.equal(joined(prompt, name), theirs[name])
    difference = (joined(prompt, "pixel_values") - theirs["pixel_values"]).abs()
    assert difference.max() < GREY_LEVEL and difference.mean() < GREY_LEVEL / 100


def test_positions_and_delta_are_those_of_the_stock_model(
    checkpoint: Path, prompt: ProcessedPrompt
) -> None:
    ids = torch.from_numpy(prompt.token_ids).long()[None]
    positions, delta = ReferenceModel(checkpoint).model.get_rope_index(
        ids,
        image_grid_thw=joined(prompt, "image_grid_thw"),
        audio_seqlens=joined(prompt, "feature_attention_mask").sum(-1),
        attention_mask=torch.ones_like(ids),
    )
    assert prompt.positions is not None
    assert torch.equal(torch.from_numpy(prompt.positions).long(), positions[:, 0].long())
    assert prompt.position_delta == int(delta)


def test_an_item_is_one_wherever_it_stands_and_options_are_for_pictures(
    make: PromptMaker, prompt: ProcessedPrompt
) -> None:
    (heard,) = make(HEARD, CLIPS[1], max_pixels=20 * 28 * 28).items
    assert heard.identity == prompt.items[2].identity != prompt.items[1].identity
    seen, smaller = (make(SEEN, PICTURES[0], **more) for more in ({}, {"max_pixels": 15_680}))
    assert seen.items[0].identity == prompt.items[0].identity != smaller.items[0].identity


def test_too_long_a_clip_and_settings_that_cannot_work_are_refused(
    checkpoint: Path, make: PromptMaker, tmp_path: Path
) -> None:
    with pytest.raises(MediaError, match=r"too long: 10\.000 seconds, .* hears at most 10"):
        make(HEARD, np.resize(clip(0), 10 * RATE + 1))
    folder = tmp_path / "broken"
    shutil.copytree(checkpoint, folder)
    path = folder / "preprocessor_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"feature_size": 80}))
    with pytest.raises(ConfigurationError, match="of 80 mel bins, the encoder takes any frames of"):
        PromptMaker(folder)
