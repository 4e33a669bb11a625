# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Voxtral: features of the stock processor, windows, identities, settings."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from support.checkpoints import build_checkpoint
from support.media import RATE, clip
from support.prompts import PromptMaker
from transformers import VoxtralProcessor, WhisperFeatureExtractor

from tensorrt_llm.errors import ConfigurationError, RequestError

MARK = "[BEGIN_AUDIO][AUDIO]"
WINDOW, ROWS = 4 * RATE, 50


@pytest.fixture(scope="module")
def checkpoint(checkpoint_root: Path) -> Path:
    return build_checkpoint("voxtral", checkpoint_root)


@pytest.fixture(scope="module")
def make(checkpoint: Path) -> PromptMaker:
    return PromptMaker(checkpoint)


def test_features_are_those_of_the_stock_processor(checkpoint: Path, make: PromptMaker) -> None:
    """The stock processor's own step for sound; the rest of it needs another tokenizer."""
    extractor = WhisperFeatureExtractor.from_pretrained(checkpoint)
    stock: Any = object.__new__(VoxtralProcessor)
    stock.feature_extractor = extractor
    clips = [clip(1, 0.5), clip(2, 4.0), clip(3, 4.1), clip(4, 9.0), clip(5)[:1]]
    ours = make(MARK * len(clips), *clips)
    for sound, item in zip(clips, ours.items, strict=True):
        expected = stock._retrieve_input_features(
            [sound],
            extractor.nb_max_frames,
            sampling_rate=RATE,
            padding=True,
            truncation=False,
            pad_to_multiple_of=extractor.n_samples,
            return_tensors="pt",
        )
        assert torch.equal(item.encoder_inputs["input_features"], expected)
        assert item.num_rows == len(expected) * ROWS == -(-len(sound) // WINDOW) * ROWS


def test_a_clip_is_one_item_wherever_it_stands_and_takes_no_options(make: PromptMaker) -> None:
    first, second = clip(1), clip(2)
    (alone,) = make(MARK, first).items
    one, two = make(f"Some words {MARK} and {MARK}", second, first.copy()).items
    assert two.identity == alone.identity != one.identity
    with pytest.raises(RequestError, match="'fps'; this model takes: none"):
        make(MARK, first, fps=1)


@pytest.mark.parametrize(
    ("file", "values", "message"),
    [
        ("preprocessor_config.json", {"chunk_length": 30}, "3000 frames of 128 .* takes 400"),
        ("preprocessor_config.json", {"dither": 0.1}, "dither 0.1 adds noise"),
        ("config.json", {"intermediate_size": 96}, "6400 values does not make whole rows of 96"),
    ],
)
def test_settings_that_cannot_work_are_found_at_start(
    checkpoint: Path, tmp_path: Path, file: str, values: dict[str, Any], message: str
) -> None:
    folder = tmp_path / "broken"
    shutil.copytree(checkpoint, folder)
    settings = json.loads((folder / file).read_text())
    (settings["audio_config"] if file == "config.json" else settings).update(values)
    (folder / file).write_text(json.dumps(settings))
    with pytest.raises(ConfigurationError, match=message):
        PromptMaker(folder)
