# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest
from support.av_media import video_bytes
from support.media import clip, image_bytes, picture, wav_bytes

from tensorrt_llm.errors import LimitExceededError, RequestError
from tensorrt_llm.inputs.media_decode import MODALITIES, decode_media, resolve_options
from tensorrt_llm.inputs.media_limits import MediaLimits

DATA = {"image": image_bytes(picture(1)), "audio": wav_bytes(clip(1)), "video": video_bytes()}
WHITE = {"rgba_background_color": (255, 255, 255), "frame": 0}


@pytest.mark.parametrize("modality", MODALITIES)
def test_every_modality_decodes_and_has_a_limit_of_bytes(modality) -> None:
    data, options = DATA[modality], resolve_options(modality, None, None)
    assert decode_media(modality, data, options, MediaLimits(max_bytes=len(data))) is not None
    with pytest.raises(LimitExceededError, match="max_bytes"):
        decode_media(modality, data, options, MediaLimits(max_bytes=len(data) - 1))


@pytest.mark.parametrize(
    ("modality", "defaults", "given", "expected"),
    [
        ("image", None, None, WHITE),
        ("image", None, {"rgba_background_color": [255, 255, 255]}, WHITE),
        ("image", {"frame": 2}, {}, WHITE | {"frame": 2}),
        ("image", {"frame": 2}, {"frame": 0}, WHITE),
        ("audio", None, {}, {}),
        ("video", None, None, {"num_frames": 10, "fps": 30.0, "extract_audio": True}),
        ("video", None, {"fps": 30, "num_frames": 10}, {"num_frames": 10, "fps": 30.0}),
        ("video", None, {"fps": 2}, {"num_frames": None, "fps": 2.0}),
        ("video", {"num_frames": 4}, {"fps": 2}, {"num_frames": None, "fps": 2.0}),
        ("video", {"fps": 2}, {"num_frames": 4}, {"num_frames": 4, "fps": None}),
        ("video", {"fps": 2}, {"extract_audio": False}, {"num_frames": None, "fps": 2.0}),
        ("video", {"fps": 2, "num_frames": 3}, None, {"num_frames": 3, "fps": 2.0}),
    ],
)
def test_a_request_wins_over_the_server_name_by_name(modality, defaults, given, expected) -> None:
    resolved = resolve_options(modality, defaults, given)
    assert resolved | expected == resolved


@pytest.mark.parametrize(
    ("modality", "given", "message"),
    [
        ("image", {"smell": 1}, "smell"),
        ("audio", {"rate": 1}, "audio takes none"),
        ("video", {"fps": -1}, "fps is a positive number"),
        ("video", {"smell": 1}, "unknown video option 'smell'"),
        ("video", [1], "must be an object, not list"),
    ],
)
def test_mistakes_name_the_field(modality, given, message) -> None:
    with pytest.raises(RequestError, match=message) as raised:
        resolve_options(modality, None, given)
    assert raised.value.part == f"media_io_kwargs.{modality}"
