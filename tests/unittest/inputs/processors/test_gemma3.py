# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Gemma 3: pixels and ids of the stock processor, also beside other lines, and its settings."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support.checkpoints import altered, build_checkpoint
from support.media import picture
from support.prompts import PromptMaker
from transformers import Gemma3ImageProcessorPil, Gemma3Processor

from tensorrt_llm.errors import ConfigurationError, RequestError

MARK = "<start_of_image>"
SIZES = [(200, 140), (140, 200), (112, 112), (1, 1), (7, 90), (640, 480)]
GREY_LEVEL = 1 / 255 / 0.5
ROWS = 64


@pytest.fixture(scope="module")
def checkpoint(checkpoint_root: Path) -> Path:
    return build_checkpoint("gemma3", checkpoint_root)


@pytest.fixture(scope="module")
def make(checkpoint: Path) -> PromptMaker:
    return PromptMaker(checkpoint)


@pytest.mark.parametrize(
    "text",
    [
        f"Here: {MARK} and what is it?",
        f"<start_of_turn>user\n{MARK}What is it?",
        f"{MARK}\nIt stands between lines.\n{MARK}{MARK}",
        f"{MARK}",
    ],
)
def test_ids_and_pixels_are_those_of_the_stock_processor(
    checkpoint: Path, make: PromptMaker, text: str
) -> None:
    images = Gemma3ImageProcessorPil.from_pretrained(checkpoint)
    stock = Gemma3Processor(images, make.tokenizer, image_seq_length=ROWS)
    pictures = [picture(seed, *SIZES[seed]) for seed in range(text.count(MARK))]
    ours = make(text, *pictures)
    theirs = stock(text=[text], images=[pictures], return_tensors="np")
    assert ours.token_ids.tolist() == theirs["input_ids"][0].tolist()
    made = np.concatenate([item.encoder_inputs["pixel_values"] for item in ours.items])
    assert np.abs(made - theirs["pixel_values"]).max() < GREY_LEVEL
    is_row = np.zeros(len(ours), bool)
    for item in ours.items:
        (run,) = item.runs
        is_row[run.position : run.position + run.length] = True
    assert np.array_equal(is_row, theirs["token_type_ids"][0] == 1)


def test_every_size_is_a_square_of_the_stock_pixels(checkpoint: Path, make: PromptMaker) -> None:
    images = Gemma3ImageProcessorPil.from_pretrained(checkpoint)
    for seed, size in enumerate(SIZES):
        (item,) = make(MARK, picture(seed, *size)).items
        expected = images(picture(seed, *size), return_tensors="np")["pixel_values"]
        assert np.abs(item.encoder_inputs["pixel_values"].numpy() - expected).max() < GREY_LEVEL
        assert item.num_rows == ROWS


def test_the_lines_around_a_picture_are_one_token_with_those_beside(make: PromptMaker) -> None:
    """Otherwise the comparison above would show nothing."""
    (three,) = make.tokenizer("\n\n\n", add_special_tokens=False)["input_ids"]
    assert three in make(f"user\n{MARK}", picture(1)).token_ids.tolist()


def test_token_ids_hold_one_mark_for_a_picture(make: PromptMaker) -> None:
    mark = make.processor.placeholder_token_id("image")
    item = make.loader.load("image", picture(1))
    prompt = make.processor.process([9, mark, 9], [item])
    assert len(prompt) == ROWS + 4 and prompt.token_ids[1] == mark
    assert prompt.items[0].identity == make(MARK, picture(1)).items[0].identity


def test_options_are_refused_and_settings_count(
    checkpoint: Path, make: PromptMaker, tmp_path: Path
) -> None:
    with pytest.raises(RequestError, match="'do_pan_and_scan'; this model takes: none"):
        make(MARK, picture(1), do_pan_and_scan=True)
    other = PromptMaker(altered(checkpoint, tmp_path / "other", image_mean=[0.4, 0.5, 0.5]))
    one, two = (maker(MARK, picture(1)).items[0].identity for maker in (make, other))
    assert one is not None and one != two


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"size": {"height": 56, "width": 56}}, "pictures of 56 pixels a side, .* takes 112"),
        ({"size": {"height": 112, "width": 56}}, "not a square"),
        ({"do_pan_and_scan": True}, "do_pan_and_scan is true"),
    ],
)
def test_settings_that_cannot_work_are_found_at_start(
    checkpoint: Path, tmp_path: Path, values: dict[str, object], message: str
) -> None:
    with pytest.raises(ConfigurationError, match=message):
        PromptMaker(altered(checkpoint, tmp_path / "broken", **values))
