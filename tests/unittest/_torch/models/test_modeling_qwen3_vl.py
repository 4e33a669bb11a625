# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Qwen3-VL: what the features for the decoder's layers are worth, and that they are an item's own.

With them, test_modeling_utils compares logits, and test_executor_families chunks and reuse.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from support.checkpoints import build_checkpoint
from support.flattened import embeddings, run_flattened
from support.media import film, picture
from support.prompts import PromptMaker
from support.reference import ReferenceModel
from transformers import AutoConfig

from tensorrt_llm._torch.models import load_model
from tensorrt_llm._torch.models.modeling_qwen3_vl import Qwen3VLModel
from tensorrt_llm.inputs.data import ProcessedPrompt

MARK = "<|vision_start|><|image_pad|><|vision_end|>"
VIDEO_MARK = "<|vision_start|><|video_pad|><|vision_end|>"


@pytest.fixture(scope="module")
def checkpoint(checkpoint_root: Path) -> Path:
    return build_checkpoint("qwen3_vl", checkpoint_root)


@pytest.fixture(scope="module")
def model(checkpoint: Path) -> Qwen3VLModel:
    config = AutoConfig.from_pretrained(checkpoint)
    loaded = load_model(
        str(checkpoint), config, dtype=torch.float32, device=torch.device("cpu"), max_seq_len=512
    )
    assert isinstance(loaded, Qwen3VLModel)
    return loaded


@pytest.fixture(scope="module")
def prompt(checkpoint: Path) -> ProcessedPrompt:
    text = f"Look: {MARK} and {MARK} {VIDEO_MARK} What?"
    return PromptMaker(checkpoint)(text, picture(1), picture(2, 90, 90), film(1))


@pytest.mark.parametrize("dropped", [None, 0, 1])
def test_without_any_of_them_the_logits_are_wrong(
    model: Qwen3VLModel, checkpoint: Path, prompt: ProcessedPrompt, dropped: int | None
) -> None:
    expected = ReferenceModel(checkpoint).greedy(prompt, 1).logits[0]
    embeds = embeddings(model, prompt)
    width = model.hidden_size
    assert embeds.shape[1] == 3 * width
    if dropped is not None:
        embeds[:, (dropped + 1) * width : (dropped + 2) * width] = 0
    places = torch.from_numpy(prompt.position_ids(0, len(prompt)))
    difference = (run_flattened(model, [embeds], [places])[0][-1] - expected).abs().max()
    assert difference < 1e-4 if dropped is None else difference > 0.05


def test_an_items_features_do_not_depend_on_what_stands_beside_it(
    model: Qwen3VLModel, prompt: ProcessedPrompt
) -> None:
    alone = [model.encode("image", item.encoder_inputs) for item in prompt.items[:2]]
    joined = {
        name: torch.cat([item.encoder_inputs[name] for item in prompt.items[:2]])
        for name in ("pixel_values", "image_grid_thw")
    }
    with torch.no_grad():
        together = model.hf_model.model.get_image_features(**joined)  # type: ignore[operator]
    for index, rows in enumerate(alone):
        parts = [together.pooler_output, *together.deepstack_features]
        assert (rows - torch.cat([part[index] for part in parts], 1)).abs().max() < 1e-4
