# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Qwen2-VL and alike: sizes, patches and ids of the stock processor, positions, identities."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.checkpoints import altered, build_checkpoint
from support.media import clip, picture
from support.prompts import PromptMaker
from transformers import Qwen2VLProcessor
from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import (
    Qwen2VLImageProcessorPil,
    smart_resize,
)

from tensorrt_llm.errors import (
    ConfigurationError,
    MediaError,
    RequestError,
    UnsupportedModalityError,
)
from tensorrt_llm.inputs.data import DeferredInputs, Digest
from tensorrt_llm.inputs.media_memo import MediaMemo
from tensorrt_llm.inputs.processors.qwen_pixels import ImageSettings, scaled_size

MARK = "<|vision_start|><|image_pad|><|vision_end|>"
SIZES = [(200, 140), (140, 200), (28, 28), (1, 1), (7, 9), (640, 480), (61, 999), (1500, 1100)]
GREY_LEVEL = 1 / 255 / min(ImageSettings().std)


@pytest.fixture(scope="module", params=["qwen2_vl", "qwen2_5_vl"])
def checkpoint(request: pytest.FixtureRequest, checkpoint_root: Path) -> Path:
    return build_checkpoint(request.param, checkpoint_root)


@pytest.fixture(scope="module")
def make(checkpoint: Path) -> PromptMaker:
    return PromptMaker(checkpoint)


class StockProcessor(Qwen2VLProcessor):
    """The stock processor without its video half, which cannot be made without torchvision."""

    @classmethod
    def get_attributes(cls) -> list[str]:
        return ["image_processor", "tokenizer"]

    def __init__(self, image_processor: Any, tokenizer: Any) -> None:
        super().__init__(image_processor, tokenizer, None)


@pytest.mark.parametrize("name", ["qwen2_vl", "qwen2_5_vl", "qwen3_vl"])
def test_ids_and_patches_are_those_of_the_stock_processor(name: str, checkpoint_root: Path) -> None:
    checkpoint = build_checkpoint(name, checkpoint_root)
    make = PromptMaker(checkpoint)
    images = Qwen2VLImageProcessorPil.from_pretrained(checkpoint)
    stock = StockProcessor(images, make.tokenizer)
    pictures = [picture(seed, *size) for seed, size in enumerate(SIZES)]
    text = "".join(f"{MARK} is number {number}. " for number in range(len(pictures)))
    ours = make(text, *pictures)
    theirs = stock(text=[text], images=pictures, return_tensors="np")
    assert ours.token_ids.tolist() == theirs["input_ids"][0].tolist()
    grids = np.concatenate([item.encoder_inputs["image_grid_thw"] for item in ours.items])
    assert grids.tolist() == theirs["image_grid_thw"].tolist()
    made = np.concatenate([item.encoder_inputs["pixel_values"] for item in ours.items])
    assert made.dtype == np.float32
    assert np.abs(made - theirs["pixel_values"]).max() < GREY_LEVEL
    assert np.abs(made - theirs["pixel_values"]).mean() < GREY_LEVEL / 100


@given(
    st.integers(1, 3000),
    st.integers(1, 3000),
    st.sampled_from([28, 32]),
    st.integers(1, 10_000),
    st.integers(10_000, 2_000_000),
)
def test_sizes_are_the_stock_ones(
    height: int, width: int, square: int, least: int, most: int
) -> None:
    try:
        expected = smart_resize(height, width, square, least, most)
    except ValueError:
        with pytest.raises(MediaError, match=f"{width} x {height} pixels is too long and thin"):
            scaled_size(height, width, square, least, most)
    else:
        assert scaled_size(height, width, square, least, most) == expected


def identities(make: PromptMaker, *media: Any, **options: Any) -> list[Digest | None]:
    return [item.identity for item in make(MARK * len(media), *media, **options).items]


def test_a_picture_is_one_item_wherever_it_stands(make: PromptMaker) -> None:
    one, other = picture(1), picture(2)
    (alone,) = identities(make, one)
    assert identities(make, other, one.copy())[1] == alone
    assert identities(make, other) != [alone]


def test_options_count_by_value_and_decide_rows_and_places(make: PromptMaker) -> None:
    image = picture(1, 200, 140)
    default = identities(make, image)
    given = {"min_pixels": 56 * 56, "max_pixels": 256 * 28 * 28}
    assert identities(make, image, **given) == default
    assert identities(make, image, max_pixels=None) == default
    assert identities(make, image, max_pixels=20 * 28 * 28) != default
    assert identities(make, image, min_pixels=28 * 28) != default
    assert make(MARK, image).items[0].num_rows == 35
    assert make(MARK, image, max_pixels=20 * 28 * 28).items[0].num_rows == 15


@pytest.mark.parametrize("value", [0, -1, 2.0, "4", True, [3], 16384 * 28 * 28 + 1])
@pytest.mark.parametrize("name", ["min_pixels", "max_pixels"])
def test_an_option_out_of_range_is_refused(make: PromptMaker, name: str, value: object) -> None:
    with pytest.raises(RequestError, match=f"mm_processor_kwargs: {name} must be an int from 1"):
        make(MARK, picture(1), **{name: value})


def test_options_that_contradict_or_are_unknown_are_refused(make: PromptMaker) -> None:
    with pytest.raises(RequestError, match="min_pixels 4000 exceeds max_pixels 3999"):
        make(MARK, picture(1), min_pixels=4000, max_pixels=3999)
    with pytest.raises(
        RequestError, match="'size'; this model takes: min_pixels, max_pixels, video_min"
    ):
        make(MARK, picture(1), size=3)


def test_lines_and_sound_are_refused(make: PromptMaker) -> None:
    assert make(MARK, picture(1, 10, 2000)).items[0].num_rows == 29
    with pytest.raises(MediaError, match=r"10 x 2001 pixels is too long.*at most 200 times"):
        make(MARK, picture(1, 10, 2001))
    with pytest.raises(
        UnsupportedModalityError, match="not take audio; it takes: text, image, video"
    ):
        make(MARK, clip(1))


@pytest.mark.parametrize("width", [4, 9])
def test_places_follow_the_shape_also_where_a_repeat_is_not_preprocessed(
    make: PromptMaker, width: int
) -> None:
    """Text behind a picture of 9 x 4 rows stands elsewhere than behind one of 6 x 6."""
    image = picture(1, width * 28, 36 // width * 28)
    item = make.loader.load("image", image)
    located = make.processor.locate_placeholders(f"Look: {MARK} What?", [item])
    memo = MediaMemo(1 << 20)
    first, again = (make.processor.process(located, [item], memo=memo) for _ in range(2))
    assert not isinstance(first.items[0].encoder_inputs, DeferredInputs)
    assert isinstance(again.items[0].encoder_inputs, DeferredInputs)
    for prompt in (first, again):
        (run,) = prompt.items[0].runs
        assert run.length == 36 and prompt.positions is not None
        assert prompt.positions[:, run.position + run.length].tolist() == [run.position + 9] * 3
        assert prompt.position_delta == 9 - 36
    assert make("Just words").positions is None


def test_settings_are_read_from_both_layouts(
    checkpoint: Path, make: PromptMaker, tmp_path: Path
) -> None:
    image = picture(1, 640, 480)
    folder = altered(checkpoint, tmp_path / "nested")
    path = folder / "preprocessor_config.json"
    flat = json.loads(path.read_text())
    size = {"shortest_edge": flat.pop("min_pixels"), "longest_edge": flat.pop("max_pixels")}
    path.unlink()
    nested = {"image_processor": flat | {"size": size}}
    (folder / "processor_config.json").write_text(json.dumps(nested))
    assert identities(PromptMaker(folder), image) == identities(make, image)
    other = altered(checkpoint, tmp_path / "other", image_mean=[0.5, 0.5, 0.5])
    assert identities(PromptMaker(other), image) != identities(make, image)


def test_missing_or_contradicting_settings_are_found_at_start(
    checkpoint: Path, tmp_path: Path
) -> None:
    folder = altered(checkpoint, tmp_path / "broken", patch_size=16)
    with pytest.raises(ConfigurationError, match="processor has patch_size 16, the encoder 14"):
        PromptMaker(folder)
    (folder / "preprocessor_config.json").unlink()
    with pytest.raises(ConfigurationError, match="no image settings"):
        PromptMaker(folder)
