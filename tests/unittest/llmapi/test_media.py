# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Which media a prompt dict holds."""

from __future__ import annotations

import pytest

from tensorrt_llm.errors import RequestError, UnsupportedModalityError
from tensorrt_llm.llmapi.media import check_keys, read_media

BOTH = ("image", "audio")


def listed(inputs: dict) -> list[tuple]:
    return [(m.modality, m.source, m.uuid, m.part) for m in read_media(inputs, BOTH)]


def test_items_keep_their_order_and_say_where_they_stood() -> None:
    inputs = {
        "multi_modal_data": {"audio": ["a0", "a1"], "image": "i0"},
        "multi_modal_uuids": {"audio": [None, "x"]},
    }
    assert listed(inputs) == [
        ("audio", "a0", None, "multi_modal_data.audio[0]"),
        ("audio", "a1", "x", "multi_modal_data.audio[1]"),
        ("image", "i0", None, "multi_modal_data.image[0]"),
    ]


def test_a_tuple_is_one_item_and_a_bare_uuid_is_wrapped() -> None:
    clip = ([0.0], 16000)
    inputs = {"multi_modal_data": {"audio": clip}, "multi_modal_uuids": {"audio": "mine"}}
    assert listed(inputs) == [("audio", clip, "mine", "multi_modal_data.audio[0]")]


def test_no_media() -> None:
    for data in (None, {}, {"image": None}, {"image": []}):
        assert listed({"multi_modal_data": data}) == []
    assert listed({}) == []


def test_a_modality_that_the_model_lacks_is_refused_with_those_it_has() -> None:
    with pytest.raises(UnsupportedModalityError, match="text, image, audio") as caught:
        listed({"multi_modal_data": {"video": "v"}})
    assert caught.value.part == "multi_modal_data.video"


@pytest.mark.parametrize(
    ("uuids", "match"),
    [
        ({"image": ["a"]}, "UUID list length 1 doesn't match the 2 data items"),
        ({"image": "a"}, "UUID list length 1 doesn't match the 2 data items"),
        ({"image": ["a", 5]}, "None or text that is not blank, got 5"),
        ({"image": ["a", " "]}, "None or text that is not blank"),
        ({"audio": ["a"]}, "names audio, which has no data"),
    ],
)
def test_wrong_ids_are_refused(uuids: dict, match: str) -> None:
    with pytest.raises(RequestError, match=match):
        listed({"multi_modal_data": {"image": ["p", "q"]}, "multi_modal_uuids": uuids})


@pytest.mark.parametrize("key", ["encoder_inputs", "multi_modal_embeddings", "query", "frobnicate"])
def test_unknown_keys_are_refused_by_name(key: str) -> None:
    check_keys({"prompt": "p", key: None})
    with pytest.raises(RequestError, match=f"^{key}: unknown key"):
        check_keys({"prompt": "p", key: [1]})


def test_a_prompt_is_given_once() -> None:
    with pytest.raises(RequestError, match="not both"):
        check_keys({"prompt": "p", "prompt_token_ids": [1]})
