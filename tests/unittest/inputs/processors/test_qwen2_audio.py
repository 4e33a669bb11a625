# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Qwen2-Audio: ids and features of the stock processor, identities, lengths, settings."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from support.checkpoints import build_checkpoint
from support.media import clip, picture
from support.prompts import PromptMaker
from transformers import AutoProcessor

from tensorrt_llm.errors import (
    ConfigurationError,
    MediaError,
    RequestError,
    UnsupportedModalityError,
)
from tensorrt_llm.inputs.processors.qwen2_audio import num_rows

MARK = "<|audio_bos|><|AUDIO|><|audio_eos|>"
RATE, HOP, WINDOW = 16_000, 160, 480_000


@pytest.fixture(scope="module")
def checkpoint(checkpoint_root: Path) -> Path:
    return build_checkpoint("qwen2_audio", checkpoint_root)


@pytest.fixture(scope="module")
def make(checkpoint: Path) -> PromptMaker:
    return PromptMaker(checkpoint)


def test_ids_and_features_are_those_of_the_stock_processor(
    checkpoint: Path, make: PromptMaker
) -> None:
    stock: Any = AutoProcessor.from_pretrained(checkpoint)
    clips = [clip(1, 0.5), clip(2, 3.21), clip(3, 30.0), clip(4)[:321]]
    text = "".join(f"{MARK} is number {number}. " for number in range(len(clips)))
    ours = make(text, *clips)
    theirs = stock(text=text, audio=clips, sampling_rate=RATE, return_tensors="pt")
    assert ours.token_ids.tolist() == theirs["input_ids"][0].tolist()
    assert ours.positions is None
    for name in ("input_features", "feature_attention_mask"):
        made = torch.cat([item.encoder_inputs[name] for item in ours.items])
        assert torch.equal(made, theirs[name])
    assert [item.num_rows for item in ours.items] == [12, 80, 750, 1]


def test_rows_follow_the_stock_formula() -> None:
    for frames in range(1, 3001):
        convolved = (frames - 1) // 2 + 1
        assert num_rows(frames) == (convolved - 2) // 2 + 1


def test_a_clip_is_one_item_wherever_it_stands(make: PromptMaker) -> None:
    first, second = clip(1), clip(2)
    (alone,) = make(MARK, first).items
    one, two = make(f"Some words {MARK} and {MARK}", second, first.copy()).items
    assert two.identity == alone.identity != one.identity
    with pytest.raises(
        RequestError, match="unknown processor option 'fps'; this model takes: none"
    ):
        make(MARK, first, fps=1)


def test_other_settings_make_other_identities(
    checkpoint: Path, make: PromptMaker, tmp_path: Path
) -> None:
    folder = tmp_path / "copy"
    shutil.copytree(checkpoint, folder)
    sound = clip(1)
    assert PromptMaker(folder)(MARK, sound).items[0].identity == (
        make(MARK, sound).items[0].identity
    )
    change_settings(folder, padding_value=0.1)
    assert PromptMaker(folder)(MARK, sound).items[0].identity != (
        make(MARK, sound).items[0].identity
    )


def test_too_short_and_too_long_are_refused_with_both_numbers(make: PromptMaker) -> None:
    assert make(MARK, clip(0)[: 2 * HOP + 1]).items[0].num_rows == 1
    with pytest.raises(
        MediaError, match=r"too short: 320 samples at 16000 Hz, the model needs 321"
    ):
        make(MARK, clip(0)[: 2 * HOP])
    whole = np.resize(clip(0), WINDOW + 1)
    assert make(MARK, whole[:-1]).items[0].num_rows == 750
    with pytest.raises(MediaError, match=r"too long: 30\.000 seconds, the model hears at most 30"):
        make(MARK, whole)


def test_pictures_are_refused(make: PromptMaker) -> None:
    with pytest.raises(
        UnsupportedModalityError, match="does not take image; it takes: text, audio"
    ):
        make(MARK, picture(1))


def change_settings(folder: Path, **values: object) -> None:
    path = folder / "preprocessor_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | values))


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"feature_size": 80}, r"3000 frames of 80 mel bins, the encoder takes 3000 frames of 128"),
        ({"chunk_length": 10}, r"1000 frames of 128 mel bins, the encoder takes 3000"),
        ({"dither": 0.1}, r"dither 0\.1 adds noise"),
    ],
)
def test_settings_that_cannot_work_are_found_at_start(
    checkpoint: Path, tmp_path: Path, values: dict[str, Any], message: str
) -> None:
    folder = tmp_path / "broken"
    shutil.copytree(checkpoint, folder)
    change_settings(folder, **values)
    with pytest.raises(ConfigurationError, match=message):
        PromptMaker(folder)


def test_missing_settings_are_found_at_start(checkpoint: Path, tmp_path: Path) -> None:
    folder = tmp_path / "bare"
    shutil.copytree(checkpoint, folder)
    (folder / "preprocessor_config.json").unlink()
    with pytest.raises(ConfigurationError, match="cannot read audio settings"):
        PromptMaker(folder)
