# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from dataclasses import fields

import pytest

from tensorrt_llm.errors import ConfigurationError
from tensorrt_llm.inputs import image_form
from tensorrt_llm.inputs.media_limits import PILLOW_PIXEL_LIMIT, MediaLimits

NAMES = [item.name for item in fields(MediaLimits)]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("value", [-1, float("nan"), float("inf"), "5", True, None])
def test_values_that_mean_nothing_are_refused_by_name(name, value) -> None:
    with pytest.raises(ConfigurationError, match=name):
        MediaLimits.from_mapping({name: value})


@pytest.mark.parametrize("name", NAMES)
def test_zero_means_nothing_but_for_redirects(name) -> None:
    if name == "max_redirects":
        assert MediaLimits(max_redirects=0).max_redirects == 0
        return
    with pytest.raises(ConfigurationError, match=f"{name} is positive"):
        MediaLimits(**{name: 0})


def test_counts_are_whole() -> None:
    with pytest.raises(ConfigurationError, match=r"max_pixels is a whole number, not 10\.5"):
        MediaLimits(max_pixels=10.5)
    assert MediaLimits(timeout_s=0.5).timeout_s == 0.5


def test_pillow_has_the_last_word_on_pixels() -> None:
    assert PILLOW_PIXEL_LIMIT == image_form.PILLOW_PIXEL_LIMIT
    with pytest.raises(ConfigurationError, match="at most 178956970, not 1000000000"):
        MediaLimits(max_pixels=10**9)


def test_names_are_known() -> None:
    assert MediaLimits.from_mapping({}) == MediaLimits()
    assert MediaLimits.from_mapping({"max_pixels": 5}) == MediaLimits(max_pixels=5)
    with pytest.raises(ConfigurationError, match=r"unknown limit 'max_smell'; known: max_bytes"):
        MediaLimits.from_mapping({"max_smell": 5})


def test_what_decides_about_content_is_told_by_modality() -> None:
    told = {m: set(MediaLimits().of_content(m)) for m in ("image", "audio", "video")}
    assert told["image"] == {"max_bytes", "max_pixels"}
    assert told["audio"] == {"max_bytes", "max_audio_seconds", "max_audio_samples"}
    assert told["video"] == {name for name in NAMES if name.startswith("max_")} - {
        "max_redirects",
        "max_decode_seconds",
        "max_decode_bytes",
    }
    assert MediaLimits(max_pixels=7).of_content("image")["max_pixels"] == 7
