# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Gemma 3: what its two rules are worth. With either of them, test_modeling_utils compares."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from support.checkpoints import build_checkpoint
from support.flattened import embeddings, run_flattened
from support.media import picture
from support.prompts import PromptMaker
from support.reference import ReferenceModel
from transformers import AutoConfig

from tensorrt_llm._torch.models import MultimodalDecoderModel, load_model


@pytest.fixture
def model(checkpoint_root: Path) -> MultimodalDecoderModel:
    checkpoint = build_checkpoint("gemma3", checkpoint_root)
    config = AutoConfig.from_pretrained(checkpoint)
    loaded = load_model(
        str(checkpoint),
        config,
        dtype=torch.float32,
        device=torch.device("cpu"),
        max_seq_len=512,
    )
    assert isinstance(loaded, MultimodalDecoderModel)
    return loaded


@pytest.mark.parametrize("rule", ["both", "rows see each other", "windows"])
def test_without_either_rule_the_logits_are_wrong(
    model: MultimodalDecoderModel, checkpoint_root: Path, rule: str
) -> None:
    checkpoint = build_checkpoint("gemma3", checkpoint_root)
    prompt = PromptMaker(checkpoint)("Look: <start_of_image> What is this?", picture(1))
    expected = ReferenceModel(checkpoint).greedy(prompt, 1).logits[0]
    if rule == "windows":
        for layer in model.decoder.layers:
            layer.self_attn.sliding_window = None
    prompts = None if rule == "rows see each other" else [prompt]
    logits = run_flattened(model, [embeddings(model, prompt)], None, prompts)[0][-1]
    difference = float((logits - expected).detach().abs().max())
    assert difference < 1e-4 if rule == "both" else difference > 0.05
