# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Video of the Qwen families: pixels, ids, sizes and places of the stock classes, identities."""

from __future__ import annotations

import dataclasses
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from support.checkpoints import build_checkpoint
from support.media import clip, film, picture
from support.prompts import PromptMaker
from support.reference import ReferenceModel
from transformers import Qwen2_5OmniProcessor
from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil
from transformers.models.qwen3_vl.processing_qwen3_vl import Qwen3VLProcessor
from transformers.models.qwen3_vl.video_processing_qwen3_vl import smart_resize

from tensorrt_llm.errors import MediaError, RequestError
from tensorrt_llm.inputs.data import Digest
from tensorrt_llm.inputs.processors.qwen3_vl import scaled_volume
from tensorrt_llm.inputs.video_data import VideoClip

MARK = "<|vision_start|><|video_pad|><|vision_end|>"
OMNI_MARK = "<|vision_bos|><|VIDEO|><|vision_eos|>"
SOUND = {"use_audio_in_video": True}


@pytest.fixture(scope="module")
def makers(checkpoint_root: Path) -> dict[str, PromptMaker]:
    names = ("qwen2_vl", "qwen2_5_vl", "qwen3_vl", "qwen2_5_omni")
    return {name: PromptMaker(build_checkpoint(name, checkpoint_root)) for name in names}


def mark(name: str) -> str:
    return OMNI_MARK if name == "qwen2_5_omni" else MARK


def test_each_frame_is_cut_as_a_picture_by_the_stock_processor(
    makers: dict[str, PromptMaker], checkpoint_root: Path
) -> None:
    images = Qwen2VLImageProcessorPil.from_pretrained(checkpoint_root / "qwen2_vl-0")
    video = film(3, 5, 150, 90)
    inputs = makers["qwen2_vl"](MARK, video).items[0].encoder_inputs
    groups, high, wide = inputs["video_grid_thw"][0].tolist()
    assert groups == 3
    made = inputs["pixel_values_videos"].numpy().reshape(groups, high * wide, 3, 2, -1)
    for number in range(2 * groups):
        frame = Image.fromarray(video.frames[min(number, 4)])
        still = images(images=[frame], return_tensors="np")
        assert still["image_grid_thw"].tolist() == [[1, high, wide]]
        expected = still["pixel_values"].reshape(high * wide, 3, 2, -1)[:, :, 0]
        assert np.abs(made[number // 2, :, :, number % 2] - expected).max() < 1 / 255 / 0.26


@pytest.mark.parametrize("frames", [1, 2, 5, 8])
def test_ids_of_qwen3_are_those_of_the_stock_processor(
    makers: dict[str, PromptMaker], frames: int
) -> None:
    make, rate = makers["qwen3_vl"], 3.7
    video = film(1, frames, 100, 70, rate=rate)
    prompt = make(f"Look: {MARK} and?", video)
    token = make.tokenizer.convert_ids_to_tokens(make.processor.placeholder_token_id("video"))
    stock = SimpleNamespace(
        video_processor=SimpleNamespace(merge_size=2, temporal_patch_size=2),
        video_token=token,
        vision_start_token="<|vision_start|>",
        vision_end_token="<|vision_end|>",
        _calculate_timestamps=partial(Qwen3VLProcessor._calculate_timestamps, None),
    )
    told = {
        "video_grid_thw": prompt.items[0].encoder_inputs["video_grid_thw"],
        "video_metadata": [SimpleNamespace(fps=rate, frames_indices=list(range(frames)))],
    }
    text = Qwen3VLProcessor.replace_video_token(stock, told, 0)
    expected = make.tokenizer(f"Look: {MARK} and?".replace(token, text)).input_ids
    assert prompt.token_ids.tolist() == expected
    assert len(prompt.items[0].runs) == -(-frames // 2)


@given(
    st.integers(2, 64),
    st.integers(1, 2000),
    st.integers(1, 2000),
    st.integers(1, 100_000),
    st.integers(100_000, 20_000_000),
)
def test_sizes_of_qwen3_are_the_stock_ones(
    frames: int, height: int, width: int, least: int, most: int
) -> None:
    try:
        expected = smart_resize(frames, height, width, 2, 32, least, most)
    except ValueError:
        with pytest.raises(MediaError, match="pixels is too long and thin"):
            scaled_volume(frames, height, width, 2, 32, least, most)
    else:
        assert scaled_volume(frames, height, width, 2, 32, least, most) == expected


@pytest.mark.parametrize(
    ("frames", "rate", "seconds"), [(4, 2.0, 2.0), (9, 1.3, 4.1), (3, 0.2, 6.3), (8, 7.7, 3.0)]
)
def test_a_video_that_is_heard_is_that_of_the_stock_classes(
    makers: dict[str, PromptMaker],
    checkpoint_root: Path,
    frames: int,
    rate: float,
    seconds: float,
) -> None:
    """Ids and places, of a video of the length of its sound and of a longer or shorter one."""
    make = makers["qwen2_5_omni"]
    video = film(1, frames, 84, 56, sound=clip(1, seconds), rate=rate)
    parts = [f"Look: {OMNI_MARK} and <|vision_bos|><|IMAGE|><|vision_eos|>?", video, picture(1)]
    prompt = make(*parts, **SOUND)
    inputs = ReferenceModel(checkpoint_root / "qwen2_5_omni-0", rate).inputs(prompt)
    heard = int(inputs["feature_attention_mask"].sum())
    stock = SimpleNamespace(
        audio_bos_token="<|audio_bos|>",
        audio_eos_token="<|audio_eos|>",
        audio_token="<|AUDIO|>",
        video_token="<|VIDEO|>",
        video_processor=SimpleNamespace(merge_size=2),
        get_chunked_index=partial(Qwen2_5OmniProcessor.get_chunked_index, None),
    )
    text = Qwen2_5OmniProcessor.replace_video_with_audio_token(
        stock,
        {
            "video_grid_thw": inputs["video_grid_thw"].numpy(),
            "video_second_per_grid": inputs["video_second_per_grid"].tolist(),
        },
        0,
        {"num_audio_tokens": [((heard - 1) // 2 + 1 - 2) // 2 + 1]},
        0,
        position_id_per_seconds=25,
        seconds_per_chunk=2.0,
    )
    words = make.tokenizer.decode(prompt.token_ids).partition("<|vision_bos|>")[2]
    assert words.partition("<|vision_eos|>")[0] == text
    model = ReferenceModel(checkpoint_root / "qwen2_5_omni-0").model
    positions, delta = model.get_rope_index(
        inputs["input_ids"],
        image_grid_thw=inputs["image_grid_thw"],
        video_grid_thw=inputs["video_grid_thw"],
        attention_mask=torch.ones_like(inputs["input_ids"]),
        use_audio_in_video=True,
        audio_seqlens=inputs["feature_attention_mask"].sum(-1),
        second_per_grids=inputs["video_second_per_grid"],
    )
    assert prompt.positions is not None
    assert torch.equal(torch.from_numpy(prompt.positions).long(), positions[:, 0].long())
    assert prompt.position_delta == int(delta)


def identity(make: PromptMaker, text: str, video: VideoClip, **options: Any) -> Digest | None:
    return make(text, video, **options).items[0].identity


@pytest.mark.parametrize("name", ["qwen2_vl", "qwen2_5_vl", "qwen3_vl", "qwen2_5_omni"])
def test_all_of_a_video_and_its_own_options_count(
    makers: dict[str, PromptMaker], name: str
) -> None:
    make, text = makers[name], mark(name)
    video = film(1, sound=clip(1))
    other = dataclasses.replace
    times = (*video.timestamps[:-1], 1.75)
    videos = [
        video,
        film(2, sound=clip(1)),
        other(video, timestamps=times),
        other(video, fps=2.5),
        other(video, audio=None),
        film(1, sound=clip(2)),
    ]
    found = [identity(make, text, one) for one in videos]
    found.append(identity(make, text, video, video_max_pixels=28 * 28 * 24))
    assert None not in found and len(set(found)) == len(found)
    assert identity(make, text, film(1, sound=clip(1)), max_pixels=28 * 28 * 8) == found[0]
    if name == "qwen2_5_omni":
        heard = identity(make, text, video, **SOUND)
        assert heard != found[0] == identity(make, text, video, use_audio_in_video=False)
        # Of a video without sound it says nothing.
        assert identity(make, text, videos[4], **SOUND) == found[4]


@pytest.mark.parametrize("name", ["qwen2_vl", "qwen3_vl", "qwen2_5_omni"])
def test_too_many_rows_are_refused_with_both_numbers(
    makers: dict[str, PromptMaker], name: str
) -> None:
    make, text = makers[name], mark(name)
    settings = make.processor._video_settings  # type: ignore[attr-defined]
    area = 65_536 * settings.square**2
    with pytest.raises(MediaError, match=r"would take \d+ rows, at most 32768 are taken: ask for"):
        make(text, film(1, 2, 64, 64), video_min_pixels=area, video_max_pixels=area)
    options = {"video_min_pixels": "9"}
    with pytest.raises(RequestError, match="video_min_pixels must be an int from 1 to"):
        make(text, film(1), **options)


def test_a_rate_that_no_place_can_be_counted_by_is_refused(makers: dict[str, PromptMaker]) -> None:
    with pytest.raises(MediaError, match="4 of 4 frames at 1e-07 a second are more than 1000000 s"):
        makers["qwen2_5_vl"](MARK, film(1, rate=1e-7))


def test_the_option_of_sound_is_true_or_false(makers: dict[str, PromptMaker]) -> None:
    with pytest.raises(RequestError, match="use_audio_in_video must be true or false, not 1"):
        makers["qwen2_5_omni"](OMNI_MARK, film(1), use_audio_in_video=1)
