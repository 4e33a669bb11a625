# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Phi-4-multimodal: identities with their twins, options, settings, short clips."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from support.media import clip, picture
from transformers import AutoTokenizer, Phi4MultimodalFeatureExtractor

from tensorrt_llm.errors import ConfigurationError, MediaError, RequestError
from tensorrt_llm.inputs.data import Digest, MediaItem, ProcessedPrompt
from tensorrt_llm.inputs.multimodal_data import AudioData, MediaHasher
from tensorrt_llm.inputs.registry import InputProcessor, create_input_processor

HASHER = MediaHasher()


def create(folder: Path) -> InputProcessor:
    tokenizer = AutoTokenizer.from_pretrained(folder)
    return create_input_processor(str(folder), tokenizer, HASHER)


@pytest.fixture(scope="module")
def processor(phi4mm_checkpoint: Path) -> InputProcessor:
    return create(phi4mm_checkpoint)


def item(data: Any) -> MediaItem:
    modality = "audio" if isinstance(data, AudioData) else "image"
    return MediaItem(modality, data, HASHER.payload_digest(modality, data), part="here")


def process(processor: InputProcessor, *media: Any, **options: Any) -> ProcessedPrompt:
    items = [item(data) for data in media]
    text = "".join(f"<|{one.modality}|>" for one in items)
    return processor.process(processor.locate_placeholders(text, items), items, options)


def identities(processor: InputProcessor, *media: Any, **options: Any) -> list[Digest | None]:
    return [one.identity for one in process(processor, *media, **options).items]


SOUND = AudioData(clip(1, 0.5), 16_000)
PICTURE = picture(1, 300, 200)


def test_sound_alone_and_sound_beside_a_picture_are_two_items(processor: InputProcessor) -> None:
    alone, again = (process(processor, SOUND) for _ in range(2))
    beside = process(processor, PICTURE, SOUND)
    other_picture = process(processor, SOUND, picture(2))
    assert alone.items[0].identity == again.items[0].identity
    assert alone.items[0].identity != beside.items[1].identity
    assert beside.items[1].identity == other_picture.items[0].identity
    assert alone.items[0].encoder_kwargs == {"audio_projection_mode": "speech"}
    assert beside.items[1].encoder_kwargs == {"audio_projection_mode": "vision"}
    modes = [prompt.adapter_mode for prompt in (alone, beside, process(processor))]
    assert modes == ["speech", "vision", ""]
    assert process(processor, PICTURE).adapter_mode == "vision"


def test_a_picture_is_one_item_whatever_stands_beside_it(processor: InputProcessor) -> None:
    alone = identities(processor, PICTURE)
    assert identities(processor, PICTURE, SOUND)[0] == alone[0]
    assert identities(processor, PICTURE, PICTURE) == alone * 2
    assert identities(processor, picture(2, 300, 200)) != alone


def test_an_option_counts_for_its_own_modality_and_by_value(processor: InputProcessor) -> None:
    default = identities(processor, PICTURE, SOUND)
    assert identities(processor, PICTURE, SOUND, dynamic_hd=9) == default
    assert identities(processor, PICTURE, SOUND, dynamic_hd=None) == default
    fewer = identities(processor, PICTURE, SOUND, dynamic_hd=1)
    assert fewer[0] != default[0]
    assert fewer[1] == default[1]
    assert process(processor, PICTURE, dynamic_hd=1).items[0].num_rows == 36
    assert process(processor, PICTURE).items[0].num_rows == 125


@pytest.mark.parametrize("value", [0, 65, -1, 2.0, "4", True, [3]])
def test_an_option_out_of_range_is_refused(processor: InputProcessor, value: object) -> None:
    with pytest.raises(RequestError, match="mm_processor_kwargs: dynamic_hd must be an int from 1"):
        process(processor, PICTURE, dynamic_hd=value)


def test_an_unknown_option_is_refused_by_name(processor: InputProcessor) -> None:
    with pytest.raises(RequestError, match="'max_crops'; this model takes: dynamic_hd"):
        process(processor, PICTURE, max_crops=3)


@pytest.mark.parametrize("media", [SOUND, PICTURE])
def test_other_settings_make_other_identities(
    phi4mm_checkpoint: Path, tmp_path: Path, media: Any
) -> None:
    folder = tmp_path / "copy"
    shutil.copytree(phi4mm_checkpoint, folder)
    unchanged = identities(create(folder), media)
    path = folder / "preprocessor_config.json"
    settings = json.loads(path.read_text())
    path.write_text(json.dumps(settings | {"preemphasis": 0.9, "image_std": [0.4, 0.5, 0.5]}))
    assert unchanged == identities(create(phi4mm_checkpoint), media)
    assert unchanged != identities(create(folder), media)


def test_clips_are_extracted_alone_as_the_stock_class_does(
    processor: InputProcessor, phi4mm_checkpoint: Path
) -> None:
    extractor = Phi4MultimodalFeatureExtractor.from_pretrained(phi4mm_checkpoint)
    clips = [clip(seed, seconds) for seed, seconds in enumerate((0.5, 2.0, 0.03))]
    prompt = process(processor, *(AudioData(samples, 16_000) for samples in clips))
    for samples, one in zip(clips, prompt.items, strict=True):
        expected = extractor(samples, sampling_rate=16_000, return_tensors="pt")
        assert torch.equal(
            one.encoder_inputs["audio_input_features"], expected.audio_input_features
        )
        assert one.num_rows == int(expected.audio_embed_sizes[0])


def test_stereo_at_another_rate_takes_as_long(processor: InputProcessor) -> None:
    stereo = np.stack([clip(1, 1.0, 44_100)] * 2, axis=1)
    rows = process(processor, AudioData(stereo, 44_100)).items[0].num_rows
    assert rows == process(processor, AudioData(clip(1, 1.0), 16_000)).items[0].num_rows == 13


def test_a_clip_shorter_than_a_frame_is_refused(processor: InputProcessor) -> None:
    assert process(processor, AudioData(clip(0)[:400], 16_000)).items[0].num_rows == 1
    with pytest.raises(MediaError, match=r"here: the audio is too short: 399 samples.*needs 400"):
        process(processor, AudioData(clip(0)[:399], 16_000))


def test_settings_are_also_read_from_the_nested_layout(
    phi4mm_checkpoint: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "nested"
    shutil.copytree(phi4mm_checkpoint, folder)
    path = folder / "preprocessor_config.json"
    flat = json.loads(path.read_text())
    path.unlink()
    nested = {"image_processor": flat, "audio_processor": flat}
    (folder / "processor_config.json").write_text(json.dumps(nested))
    for media in (PICTURE, SOUND):
        assert identities(create(folder), media) == identities(create(phi4mm_checkpoint), media)


def test_missing_or_contradicting_settings_are_found_at_start(
    phi4mm_checkpoint: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "broken"
    shutil.copytree(phi4mm_checkpoint, folder)
    path = folder / "preprocessor_config.json"
    settings = json.loads(path.read_text())
    path.write_text(json.dumps(settings | {"size": {"height": 448, "width": 448}}))
    with pytest.raises(ConfigurationError, match=r"crops of 448 pixels.*encoder takes 112"):
        create(folder)
    path.write_text("{")
    with pytest.raises(
        ConfigurationError, match=r"preprocessor_config\.json: not readable as JSON"
    ):
        create(folder)
    path.unlink()
    with pytest.raises(ConfigurationError, match="no image settings"):
        create(folder)
