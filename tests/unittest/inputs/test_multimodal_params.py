# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tensorrt_llm.inputs.multimodal import MultimodalInput, MultimodalParams, MultimodalRuntimeData


@given(st.lists(st.booleans(), min_size=1, max_size=40), st.data())
def test_rows_are_counted_as_the_mask_has_them(mask, data):
    end = data.draw(st.integers(0, len(mask)))
    begin = data.draw(st.integers(0, end))
    runtime = MultimodalRuntimeData(begin, end, torch.tensor(mask).cumsum(0))
    assert runtime.num_cached_mm_tokens == sum(mask[:begin])
    assert runtime.num_mm_tokens_in_chunk == sum(mask[begin:end])
    assert runtime.total_embeds_in_request == sum(mask)


CUMSUM = torch.tensor([0, 1, 2, 2], dtype=torch.int64)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((0, 2), TypeError, "embed_mask_cumsum"),
        ((0, 2, None), ValueError, "not None"),
        ((-1, 2, CUMSUM), ValueError, "non-negative, not -1"),
        ((3, 2, CUMSUM), AssertionError, "from 3 to 2 in a prompt of 4"),
        ((0, 5, CUMSUM), AssertionError, "from 0 to 5 in a prompt of 4"),
        ((0, 2, CUMSUM.int()), AssertionError, "torch.int32"),
        ((0, 2, CUMSUM[None]), AssertionError, "2 axes"),
        ((0, 2, CUMSUM.to("meta")), AssertionError, "on meta"),
    ],
)
def test_faults_of_runtime_data(arguments, error, message):
    with pytest.raises(error, match=message):
        MultimodalRuntimeData(*arguments)


@pytest.mark.parametrize(
    ("data", "content"),
    [
        ({}, False),
        ({"image": {}}, False),
        ({"image": None}, False),
        ({"image": {"pixel_values": torch.zeros(1)}}, True),
        ({"pixel_values": torch.zeros(1)}, True),
        ({"multimodal_embedding": torch.zeros(1)}, True),
        ({"mrope_config": {"mrope_position_deltas": torch.zeros(1)}}, False),
        ({"multimodal_embed_mask_cumsum": CUMSUM, "special_token_offsets": [1]}, False),
    ],
)
def test_metadata_is_no_content(data, content):
    assert MultimodalParams(multimodal_data=data).has_content() is content


def params() -> MultimodalParams:
    return MultimodalParams(
        multimodal_input=MultimodalInput([[0] * 8], [0], [2]),
        multimodal_data={
            "image": {"pixel_values": torch.zeros(2), "sizes": [torch.zeros(1)], "note": "x"},
            "audio": {"input_features": torch.zeros(3)},
            "multimodal_embed_mask_cumsum": CUMSUM,
            "multimodal_embedding_lengths": torch.tensor([2]),
            "mrope_config": {
                "mrope_position_deltas": torch.ones(1),
                "mrope_position_ids": torch.ones(4),
            },
        },
        multimodal_runtime=MultimodalRuntimeData(0, 2, CUMSUM),
    )


def devices(data: object, path: str = "") -> dict[str, str]:
    if isinstance(data, torch.Tensor):
        return {path: data.device.type}
    if isinstance(data, dict):
        parts = [devices(value, f"{path}.{key}".lstrip(".")) for key, value in data.items()]
    elif isinstance(data, list):
        parts = [devices(value, path) for value in data]
    else:
        parts = []
    return {key: device for part in parts for key, device in part.items()}


HOST_ONLY = {"multimodal_embed_mask_cumsum", "multimodal_embedding_lengths"}


@pytest.mark.parametrize("pin_memory", [False, True])
def test_everything_moves_but_what_the_scheduler_reads(pin_memory):
    moved = params()
    moved.to_device("multimodal_data", "meta", pin_memory=pin_memory)
    found = devices(moved.multimodal_data)
    assert {path for path, device in found.items() if device == "cpu"} == HOST_ONLY
    assert moved.multimodal_data["image"]["note"] == "x"


def test_only_named_paths_move():
    moved = params()
    keywords = ["image.pixel_values", "mrope_config", *HOST_ONLY]
    moved.to_device("multimodal_data", "meta", target_keywords=keywords)
    found = devices(moved.multimodal_data)
    assert {path for path, device in found.items() if device == "meta"} == {
        "image.pixel_values",
        "mrope_config.mrope_position_deltas",
        "mrope_config.mrope_position_ids",
    }


def test_other_elements_do_not_move():
    with pytest.raises(ValueError, match="'multimodal_data', not 'multimodal_input'"):
        params().to_device("multimodal_input", "meta")


def test_after_the_context_phase_only_position_deltas_stay():
    stripped = params()
    shared = stripped.multimodal_data
    stripped.strip_for_generation()
    assert devices(shared) == {"mrope_config.mrope_position_deltas": "cpu"}
    assert shared is stripped.multimodal_data
    assert stripped.multimodal_input is None
    assert stripped.multimodal_runtime is None
    assert not stripped.has_content()


def test_stripping_nothing_leaves_nothing():
    stripped = MultimodalParams()
    stripped.strip_for_generation()
    assert stripped.multimodal_data == {}
