# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Idefics3 and SmolVLM: sizes, tiles and ids of the stock processor, identities, settings."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from support.checkpoints import build_checkpoint
from support.media import picture
from support.prompts import PromptMaker
from transformers import Idefics3Processor
from transformers.models.idefics3.image_processing_pil_idefics3 import (
    Idefics3ImageProcessorPil,
    get_resize_output_image_size,
)

from tensorrt_llm.errors import ConfigurationError, RequestError
from tensorrt_llm.inputs.processors.idefics3 import (
    ImageSettings,
    cut_tiles,
    edge_size,
    tiled_size,
)

SIZES = [(200, 140), (140, 200), (56, 56), (1, 1), (7, 90), (640, 480), (168, 168), (1500, 300)]
GREY_LEVEL = 1 / 255 / 0.5
ROWS = 16


@pytest.fixture(scope="module", params=["idefics3", "smolvlm"])
def checkpoint(request: pytest.FixtureRequest, checkpoint_root: Path) -> Path:
    return build_checkpoint(request.param, checkpoint_root)


@pytest.fixture(scope="module")
def make(checkpoint: Path) -> PromptMaker:
    return PromptMaker(checkpoint)


@pytest.mark.parametrize("splits", [True, False])
def test_ids_and_tiles_are_those_of_the_stock_processor(
    checkpoint: Path, make: PromptMaker, splits: bool
) -> None:
    images = Idefics3ImageProcessorPil.from_pretrained(checkpoint)
    stock = Idefics3Processor(images, PromptMaker(checkpoint).tokenizer, image_seq_len=ROWS)
    for seed, size in enumerate(SIZES):
        image = picture(seed, *size)
        text = "Here: <image> and what is it?"
        ours = make(text, image, do_image_splitting=splits)
        theirs = stock(
            text=[text], images=[[image]], do_image_splitting=splits, return_tensors="np"
        )
        assert ours.token_ids.tolist() == theirs["input_ids"][0].tolist()
        made, expected = ours.items[0].encoder_inputs["pixel_values"], theirs["pixel_values"]
        assert made.shape == expected.shape and theirs["pixel_attention_mask"].all()
        assert np.abs(made.numpy() - expected).max() < GREY_LEVEL
        assert np.abs(made.numpy() - expected).mean() < GREY_LEVEL / 100
        assert ours.items[0].num_rows == made.shape[1] * ROWS
        assert len(ours.items[0].runs) == made.shape[1]


@given(st.integers(1, 3000), st.integers(1, 3000), st.sampled_from([56, 168, 1456, 4096]))
def test_sizes_are_the_stock_ones(height: int, width: int, longest: int) -> None:
    image = np.broadcast_to(np.uint8(0), (3, height, width))
    assert edge_size(height, width, longest) == get_resize_output_image_size(image, longest)


def test_a_line_of_tiles_is_a_line_of_the_picture() -> None:
    settings = ImageSettings(longest_edge=168, tile=56)
    pixels = np.random.default_rng(0).integers(0, 256, (112, 168, 3), np.uint8)
    tiles, grid = cut_tiles(Image.fromarray(pixels), settings, splits=True)
    assert grid == (2, 3) and len(tiles) == 7
    lines = [np.concatenate(list(tiles[line * 3 : line * 3 + 3]), axis=2) for line in (0, 1)]
    whole = (np.concatenate(lines, axis=1) * 0.5 + 0.5) * 255
    assert np.abs(whole.transpose(1, 2, 0) - pixels).max() < 1e-3


def test_thin_pictures_keep_at_least_one_tile() -> None:
    assert edge_size(1, 4000, 168) == (1, 168)
    assert tiled_size(1, 168, 56) == (56, 168)
    assert tiled_size(4096, 1, 364) == (4368, 364)


def test_options_count_by_value_and_unknown_ones_are_refused(make: PromptMaker) -> None:
    image = picture(1)

    def identity(**options: Any) -> Any:
        return make("<image>", image, **options).items[0].identity

    assert identity() == identity(do_image_splitting=True) == identity(do_image_splitting=None)
    assert identity() != identity(do_image_splitting=False)
    with pytest.raises(RequestError, match="do_image_splitting must be true or false, not 1"):
        identity(do_image_splitting=1)
    with pytest.raises(RequestError, match="'size'; this model takes: do_image_splitting"):
        identity(size=3)


def test_settings_that_cannot_work_are_found_at_start(checkpoint: Path, tmp_path: Path) -> None:
    folder = tmp_path / "broken"
    shutil.copytree(checkpoint, folder)
    path = folder / "preprocessor_config.json"
    settings = json.loads(path.read_text())
    path.write_text(json.dumps(settings | {"max_image_size": {"longest_edge": 364}}))
    with pytest.raises(ConfigurationError, match="tiles of 364 pixels, the encoder takes 56"):
        PromptMaker(folder)
    path.write_text(json.dumps(settings | {"size": {"longest_edge": 5000}}))
    with pytest.raises(ConfigurationError, match="longest edge is 5000 pixels; at most 4096"):
        PromptMaker(folder)
    path.unlink()
    with pytest.raises(ConfigurationError, match="no image settings"):
        PromptMaker(folder)
