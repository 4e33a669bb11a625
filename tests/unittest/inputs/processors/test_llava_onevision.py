# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""LLaVA-OneVision: grids, tiles and ids of the stock processor, identities, settings."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.checkpoints import altered, build_checkpoint
from support.media import picture
from support.prompts import PromptMaker
from transformers import LlavaOnevisionProcessor
from transformers.image_processing_utils import select_best_resolution
from transformers.models.llava_onevision.image_processing_pil_llava_onevision import (
    LlavaOnevisionImageProcessorPil,
)

from tensorrt_llm.errors import ConfigurationError, RequestError
from tensorrt_llm.inputs.processors.llava_onevision import ImageSettings, best_grid

SIZES = [
    (200, 140),
    (140, 200),
    (56, 56),
    (1, 1),
    (7, 90),
    (500, 1),
    (640, 480),
    (112, 168),
    (1500, 300),
]
GREY_LEVEL = 1 / 255 / 0.26
GRIDS = [(56 * lines, 56 * columns) for lines in range(1, 7) for columns in range(1, 7)]


@pytest.fixture(scope="module")
def checkpoint(checkpoint_root: Path) -> Path:
    return build_checkpoint("llava_onevision", checkpoint_root)


@pytest.fixture(scope="module")
def make(checkpoint: Path) -> PromptMaker:
    return PromptMaker(checkpoint)


class StockProcessor(LlavaOnevisionProcessor):
    """The stock processor without its video half, which cannot be made without torchvision."""

    @classmethod
    def get_attributes(cls) -> list[str]:
        return ["image_processor", "tokenizer"]


@pytest.fixture(scope="module")
def stock(checkpoint: Path, make: PromptMaker) -> StockProcessor:
    return StockProcessor(
        LlavaOnevisionImageProcessorPil.from_pretrained(checkpoint),
        make.tokenizer,
        num_image_tokens=16,
        vision_feature_select_strategy="full",
        vision_aspect_ratio="anyres_max_4",
    )


def each(make: PromptMaker, stock: StockProcessor) -> Iterator[tuple[Any, Any]]:
    for seed, size in enumerate(SIZES):
        image, text = picture(seed, *size), "Here: <image> and what is it?"
        yield make(text, image), stock(text=[text], images=[image], return_tensors="np")


def test_ids_and_tiles_are_those_of_the_stock_processor(
    make: PromptMaker, stock: StockProcessor
) -> None:
    counts = set()
    for ours, theirs in each(make, stock):
        assert ours.token_ids.tolist() == theirs["input_ids"][0].tolist()
        made, expected = ours.items[0].encoder_inputs["pixel_values"], theirs["pixel_values"]
        assert made.shape == expected.shape
        assert np.abs(made.numpy() - expected).max() < GREY_LEVEL
        assert np.abs(made.numpy() - expected).mean() < GREY_LEVEL / 100
        assert (
            ours.items[0].encoder_inputs["image_sizes"].tolist() == theirs["image_sizes"].tolist()
        )
        counts.add(made.shape[1])
    assert max(counts) == 10 and min(counts) == 2, "no grid was large, or none was small"


def test_a_picture_is_cut_into_tiles_whatever_stands_beside_it(
    make: PromptMaker, stock: StockProcessor
) -> None:
    """The stock processor does not where a list of lists holds two: then it is another item."""
    images = [picture(1), picture(2)]
    text = "First <image> then <image>."
    ours = make(text, *images)
    flat = stock(text=[text], images=images, return_tensors="np")
    nested = stock(text=[text], images=[images], return_tensors="np")
    assert ours.token_ids.tolist() == flat["input_ids"][0].tolist()
    assert len(ours) > len(nested["input_ids"][0])
    (alone,) = make("<image>", images[1]).items
    assert ours.items[1].identity == alone.identity


@given(st.integers(1, 3000), st.integers(1, 3000))
def test_grids_are_the_stock_ones(height: int, width: int) -> None:
    assert best_grid(height, width, GRIDS) == select_best_resolution((height, width), GRIDS)


def test_options_are_refused(make: PromptMaker) -> None:
    with pytest.raises(RequestError, match="'size'; this model takes: none"):
        make("<image>", picture(1), size=3)


def test_settings_count_and_have_defaults(checkpoint: Path, tmp_path: Path) -> None:
    image = picture(1)
    folders = [checkpoint, altered(checkpoint, tmp_path / "other", image_mean=[0.5, 0.5, 0.5])]
    one, other = (PromptMaker(folder)("<image>", image).items[0].identity for folder in folders)
    assert one is not None and one != other
    assert ImageSettings.from_config({}, 56, GRIDS) == ImageSettings(56, tuple(GRIDS))


def test_settings_that_cannot_work_are_found_at_start(checkpoint: Path, tmp_path: Path) -> None:
    wrong = {
        "tile": ({"size": {"height": 64, "width": 64}}, "tiles of 64 pixels, the encoder takes 56"),
        "grids": ({"image_grid_pinpoints": [[56, 56]]}, "name other grids: 1 and 9 of them"),
    }
    for name, (values, message) in wrong.items():
        with pytest.raises(ConfigurationError, match=message):
            PromptMaker(altered(checkpoint, tmp_path / name, **values))
    wrong = {
        "vision_feature_select_strategy": ("default", "'default' is not taken, only 'full'"),
        "vision_aspect_ratio": ("anyres", "'anyres' is not taken, only 'anyres_max_N'"),
    }
    for name, (value, message) in wrong.items():
        folder = altered(checkpoint, tmp_path / name, "config.json", **{name: value})
        with pytest.raises(ConfigurationError, match=message):
            PromptMaker(folder)
