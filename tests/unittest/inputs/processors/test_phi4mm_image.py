# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Crops, masks and row counts, against Pillow's scaling and figures of the stock image class."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from support.media import picture

from tensorrt_llm.errors import ConfigurationError, MediaError
from tensorrt_llm.inputs.processors.phi4mm_image import (
    ImageSettings,
    encoder_inputs,
    num_rows,
    plan_crops,
)

FULL = ImageSettings()
SMALL = ImageSettings(crop_size=112, max_crops=9)

# (width, height) to tokens, as transformers' own class counts them (it needs torchvision, so the
# figures stand here). It counts right for crops of 448 pixels only.
STOCK_TOKENS = {
    (300, 200): 460,
    (448, 448): 545,
    (447, 449): 562,
    (1, 1): 545,
    (30, 20): 460,
    (2000, 700): 2541,
    (700, 2000): 2593,
    (3000, 3000): 9585,
    (4000, 500): 2883,
    (500, 4000): 3009,
    (100, 900): 609,
    (5000, 2500): 8529,
    (897, 449): 1449,
}


@pytest.mark.parametrize(("size", "tokens"), STOCK_TOKENS.items())
def test_row_counts_are_the_stock_ones(size: tuple[int, int], tokens: int) -> None:
    width, height = size
    assert num_rows(plan_crops(height, width, FULL, FULL.max_crops), FULL) == tokens


def test_a_picture_of_one_crop_takes_forty_one_rows() -> None:
    assert num_rows(plan_crops(112, 112, SMALL, 9), SMALL) == 4 * 5 + 1 + 4 * 5


@given(
    st.integers(1, 2000), st.integers(1, 2000), st.integers(1, 40), st.sampled_from([98, 112, 448])
)
def test_any_plan_is_sound(width: int, height: int, most: int, crop: int) -> None:
    settings = ImageSettings(crop_size=crop)
    try:
        plan = plan_crops(height, width, settings, most)
    except MediaError:
        assert max(width / height, height / width) > crop / 10 / math.sqrt(most) / 2
        return
    down, across = plan.grid
    assert 1 <= down * across <= most
    full = (down * crop, across * crop)
    # The picture touches the grid in one direction and keeps its shape to within a pixel.
    assert plan.scaled[0] == full[0] or plan.scaled[1] == full[1]
    assert all(scaled <= whole for scaled, whole in zip(plan.scaled, full, strict=True))
    scale = max(plan.scaled[0] / height, plan.scaled[1] / width)
    assert abs(plan.scaled[0] - height * scale) <= 1 + scale
    assert abs(plan.scaled[1] - width * scale) <= 1 + scale
    # A patch counts unless all of it is padding.
    for useful, scaled in zip(plan.useful, plan.scaled, strict=True):
        assert useful == math.ceil(scaled / settings.patch_size)


@pytest.mark.parametrize("size", [(100, 60), (60, 100), (112, 112), (300, 200), (900, 80), (7, 9)])
def test_crops_hold_the_scaled_picture(size: tuple[int, int]) -> None:
    image = picture(1, *size)
    plan = plan_crops(image.height, image.width, SMALL, 9)
    inputs = encoder_inputs(image, plan, SMALL)
    down, across = plan.grid
    pixels, mask = inputs["image_pixel_values"], inputs["image_attention_mask"]
    assert pixels.shape == (1, 1 + down * across, 3, 112, 112)
    assert mask.shape == (1, 1 + down * across, 8, 8)
    assert inputs["image_sizes"].tolist() == [[down * 112, across * 112]]
    # Put the crops together again and compare with Pillow's own scaling on white.
    canvas = Image.new("RGB", (across * 112, down * 112), "white")
    scaled = image.resize(plan.scaled[::-1], Image.Resampling.BILINEAR)
    canvas.paste(scaled, (0, 0))
    levels = ((pixels[0, 1:] * 0.5 + 0.5) * 255).numpy()
    for index in range(down * across):
        row, column = divmod(index, across)
        expected = np.asarray(canvas)[
            row * 112 : row * 112 + 112, column * 112 : column * 112 + 112
        ]
        assert np.abs(levels[index].transpose(1, 2, 0) - expected).max() <= 1.01
    # The mask covers the picture, and nothing but the picture.
    assert mask[0, 0].all()
    whole = mask[0, 1:].reshape(down, across, 8, 8).transpose(1, 2).reshape(down * 8, across * 8)
    expected_mask = torch.zeros_like(whole)
    expected_mask[: plan.useful[0], : plan.useful[1]] = 1
    assert torch.equal(whole, expected_mask)


def test_rows_follow_the_mask_that_the_encoder_reads() -> None:
    for settings in (SMALL, ImageSettings(crop_size=98)):
        for width, height in ((300, 200), (90, 500), (500, 90), (113, 113), (20, 19)):
            plan = plan_crops(height, width, settings, 9)
            mask = encoder_inputs(picture(0, width, height), plan, settings)[
                "image_attention_mask"
            ][0, 1:, ::2, ::2]
            side, (down, across) = mask.shape[-1], plan.grid
            lines = sum(
                int(mask[row * across, line, 0]) for row in range(down) for line in range(side)
            )
            assert num_rows(plan, settings) == side * side + side + 1 + int(mask.sum()) + lines


@pytest.mark.parametrize("size", [(3000, 4), (4, 3000), (1254, 2)])
def test_lines_are_refused_with_their_sizes(size: tuple[int, int]) -> None:
    with pytest.raises(MediaError, match=rf"{size[0]} x {size[1]} pixels.*below 10 pixels"):
        plan_crops(size[1], size[0], SMALL, 9)


def test_settings_come_from_the_stock_file() -> None:
    assert ImageSettings.from_config({}) == FULL
    settings = ImageSettings.from_config(
        {"size": {"height": 112, "width": 112}, "dynamic_hd": 9, "image_mean": [0.1, 0.2, 0.3]}
    )
    assert settings == ImageSettings(crop_size=112, max_crops=9, mean=(0.1, 0.2, 0.3))


@pytest.mark.parametrize("size", [{"height": 112, "width": 224}, 100, {"shortest_edge": 112}])
def test_impossible_crops_are_refused(size: object) -> None:
    with pytest.raises(ConfigurationError, match="multiple of the patch of 14 pixels"):
        ImageSettings.from_config({"size": size})
