# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Qwen2-VL, Qwen2.5-VL and Qwen3-VL: positions of the stock model, and none kept between requests.

Logits and tokens are compared with the stock model's in test_modeling_utils.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from support.checkpoints import build_checkpoint
from support.families import FAMILIES, Family
from support.media import film, picture
from support.prompts import PromptMaker
from support.reference import ReferenceModel


@pytest.fixture(scope="module", params=["qwen2_vl", "qwen2_5_vl", "qwen3_vl"])
def family(request: pytest.FixtureRequest) -> Family:
    return next(family for family in FAMILIES if family.name == request.param)


@pytest.fixture(scope="module")
def checkpoint(family: Family, checkpoint_root: Path) -> Path:
    return build_checkpoint(family.name, checkpoint_root)


def test_positions_and_delta_are_those_of_the_stock_model(family: Family, checkpoint: Path) -> None:
    make, rate = PromptMaker(checkpoint), 1.3
    stock = ReferenceModel(checkpoint, rate)
    wide, tall, small = picture(1, 252, 112), picture(2, 112, 252), picture(3, 28, 28)
    long, short = film(1, 13, 84, 56, rate=rate), film(2, 1, 56, 112, rate=rate)
    for parts in (
        ["Look: ", long, " and ", small, " What?", short],
        [long, long],
        ["Look: ", wide, " and ", tall, " What is this?"],
        [tall, wide],
        ["Look: ", small],
        [small, small, "?"],
    ):
        prompt = family.prompt(make, *parts)
        inputs = stock.inputs(prompt)
        positions, delta = stock.model.model.get_rope_index(
            inputs["input_ids"],
            mm_token_type_ids=inputs["mm_token_type_ids"],
            image_grid_thw=inputs.get("image_grid_thw"),
            video_grid_thw=inputs.get("video_grid_thw"),
            second_per_grid_ts=inputs.get("second_per_grid_ts"),
        )
        assert prompt.positions is not None
        assert torch.equal(torch.from_numpy(prompt.positions).long(), positions[:, 0])
        # Where stock `generate` goes on: behind the last token. The model's own number says so too,
        # but where a video lasts longer than all that stands behind it.
        assert prompt.position_delta == int(positions[0, 0, -1]) + 1 - len(prompt)
        assert prompt.position_delta == int(delta) or long in parts
