# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Which media a prompt dict holds."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from tensorrt_llm.errors import RequestError, UnsupportedModalityError
from tensorrt_llm.inputs.multimodal_data import EmbeddingData
from tensorrt_llm.llmapi.media import check_keys, read_io_options, read_media

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


@pytest.mark.parametrize("key", ["encoder_inputs", "query", "frobnicate"])
def test_unknown_keys_are_refused_by_name(key: str) -> None:
    check_keys({"prompt": "p", key: None})
    with pytest.raises(RequestError, match=f"^{key}: unknown key"):
        check_keys({"prompt": "p", key: [1]})


def test_a_prompt_is_given_once() -> None:
    with pytest.raises(RequestError, match="not both"):
        check_keys({"prompt": "p", "prompt_token_ids": [1]})


def test_embeddings_are_items_of_their_modality() -> None:
    inputs = {
        "multi_modal_embeddings": {"image": [torch.ones(2, 4), EmbeddingData(torch.zeros(1, 4))]},
        "multi_modal_uuids": {"image": ["a", None]},
    }
    first, second = read_media(inputs, BOTH)
    assert (first.modality, first.uuid, first.part) == (
        "image",
        "a",
        "multi_modal_embeddings.image[0]",
    )
    assert first.source.rows.shape == (2, 4)
    assert second.source.rows.shape == (1, 4)


@pytest.mark.parametrize(
    ("rows", "match"),
    [
        ("rows", "not str"),
        (np.zeros(3, np.float32), "not \\[3\\]"),
        (torch.full((1, 2), float("nan")), "NaN"),
    ],
)
def test_wrong_embeddings_are_refused_by_place(rows: object, match: str) -> None:
    with pytest.raises(RequestError, match=rf"multi_modal_embeddings\.image\[0\]: .*{match}"):
        listed({"multi_modal_embeddings": {"image": rows}})


def test_data_and_embeddings_exclude_each_other() -> None:
    with pytest.raises(RequestError, match="not both"):
        listed(
            {
                "multi_modal_data": {"image": "i"},
                "multi_modal_embeddings": {"audio": torch.ones(1, 2)},
            }
        )


def test_io_options_are_listed_by_modality() -> None:
    assert read_io_options(None) == read_io_options({}) == read_io_options({"image": None}) == {}
    given = {"image": {"rgba_background_color": [0, 0, 0]}, "audio": {}}
    assert read_io_options(given) == given


@pytest.mark.parametrize(
    ("given", "match"),
    [
        ([], "must be an object, not list"),
        ({"text": {}}, "'text' is no modality; known: image, audio, video"),
        ({"image": 3}, "must be an object"),
        ({"image": {"frames": 1}}, "unknown option 'frames'"),
        ({"audio": {"rate": 1}}, "unknown option 'rate'"),
    ],
)
def test_wrong_io_options_are_refused(given: object, match: str) -> None:
    with pytest.raises(RequestError, match=match):
        read_io_options(given)
