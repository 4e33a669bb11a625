# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import hashlib
import random

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tensorrt_llm.inputs.data import Digest, PlaceholderRun, ProcessedItem
from tensorrt_llm.inputs.multimodal import (
    MultimodalInput,
    hexdigest_to_int32,
    int32_to_hexdigest,
    media_run_buffers,
)

ONES = [1] * 8
ZEROS = Digest(bytes(32))


def digest(text: str) -> Digest:
    return Digest(hashlib.sha256(text.encode()).digest())


def item(*runs: tuple[int, int], identity: Digest | None = ZEROS, uuid: str | None = None):
    placed = tuple(PlaceholderRun(*run) for run in runs)
    return ProcessedItem("image", identity, placed, encoder_inputs={}, uuid=uuid)


def test_digest_ints_are_signed_and_big_endian():
    text = "00000001" + "7fffffff" + "80000000" + "ffffffff" + "deadbeef" + "0000ff00" * 3
    values = hexdigest_to_int32(text)
    assert values == [1, 2**31 - 1, -(2**31), -1, 0xDEADBEEF - 2**32, 65280, 65280, 65280]
    assert int32_to_hexdigest(values) == text


@given(st.binary(min_size=32, max_size=32))
def test_digest_ints_and_text_are_inverse(raw):
    values = hexdigest_to_int32(raw.hex())
    assert b"".join(v.to_bytes(4, "big", signed=True) for v in values) == raw
    assert int32_to_hexdigest(values) == raw.hex()


@pytest.mark.parametrize("text", ["", "00" * 31, "00" * 33, "zz" * 32, " " * 64, "00 " * 21 + "0"])
def test_other_text_is_no_digest(text):
    with pytest.raises(ValueError):
        hexdigest_to_int32(text)


@pytest.mark.parametrize(
    "values", [[], [0] * 7, [0] * 9, [2**31] + [0] * 7, [-(2**31) - 1] + [0] * 7]
)
def test_other_ints_are_no_digest(values):
    with pytest.raises(ValueError):
        int32_to_hexdigest(values)


GOOD = {
    "multimodal_hashes": [ONES, [2] * 8],
    "multimodal_positions": [0, 10],
    "multimodal_lengths": [4, 2],
}
RUNS = {
    "multimodal_item_run_cu_offsets": [0, 2, 3],
    "multimodal_run_positions": [0, 5, 10],
    "multimodal_run_lengths": [1, 3, 2],
}


def test_a_sound_input_is_taken():
    made = MultimodalInput(**GOOD, **RUNS, multimodal_uuids=["a", None])
    assert made.run_metadata() == ([0, 2, 3], [0, 5, 10], [1, 3, 2])
    assert MultimodalInput(**GOOD).run_metadata() is None
    hashes, positions, lengths = made.to_tensor()
    assert hashes.tolist() == [ONES, [2] * 8]
    assert (positions.tolist(), lengths.tolist()) == ([0, 10], [4, 2])
    assert {hashes.dtype, positions.dtype, lengths.dtype} == {torch.int32}


def test_no_items_are_taken():
    hashes, positions, lengths = MultimodalInput([], [], []).to_tensor()
    assert (hashes.shape, positions.shape, lengths.shape) == ((0, 8), (0,), (0,))


def test_from_components_is_the_constructor():
    made = MultimodalInput.from_components(*GOOD.values(), ["a", None], *RUNS.values())
    assert made == MultimodalInput(**GOOD, **RUNS, multimodal_uuids=["a", None])


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"multimodal_hashes": (ONES, ONES)}, TypeError, "multimodal_hashes must be a list"),
        (
            {"multimodal_hashes": [ONES, (2,) * 8]},
            TypeError,
            r"multimodal_hashes\[1\] must be a list",
        ),
        ({"multimodal_hashes": [ONES, [1.0] * 8]}, TypeError, "must hold ints, not float"),
        ({"multimodal_hashes": [ONES, [True] * 8]}, TypeError, "must hold ints, not bool"),
        ({"multimodal_hashes": [ONES, [2] * 7]}, ValueError, "7 int32 values, expected 8"),
        ({"multimodal_hashes": [ONES, [2**31] * 8]}, ValueError, "2147483648 is not an int32"),
        (
            {"multimodal_positions": [0]},
            ValueError,
            "must all have the same length, not 2, 1 and 2",
        ),
        ({"multimodal_lengths": [4, 2, 1]}, ValueError, "must all have the same length"),
        ({"multimodal_positions": np.array([0, 10])}, TypeError, "must be a list, not ndarray"),
        ({"multimodal_lengths": [4, np.int64(2)]}, TypeError, "must hold ints, not int64"),
        (
            {"multimodal_positions": [0, -1]},
            ValueError,
            "multimodal_positions must be non-negative",
        ),
        ({"multimodal_lengths": [4, 0]}, ValueError, "multimodal_lengths must be positive"),
        ({"multimodal_positions": [0, 2**31 - 2]}, ValueError, "end position exceeds int32"),
        ({"multimodal_uuids": ("a", "b")}, TypeError, "multimodal_uuids must be a list"),
        ({"multimodal_uuids": ["a"]}, ValueError, r"multimodal_uuids length \(1\).*\(2\)"),
        (
            {"multimodal_uuids": ["a", 5]},
            TypeError,
            r"uuids\[1\] must be a string or None, not int",
        ),
        ({"multimodal_run_lengths": None}, ValueError, "must be provided together"),
        ({"multimodal_item_run_cu_offsets": None}, ValueError, "must be provided together"),
        (
            {"multimodal_run_positions": (0, 5, 10)},
            TypeError,
            "multimodal_run_positions must be a list",
        ),
        ({"multimodal_run_positions": [0, 5]}, ValueError, "same length, not 2 and 3"),
        (
            {"multimodal_item_run_cu_offsets": [0, 3]},
            ValueError,
            "2 entries for 2 items, expected 3",
        ),
        ({"multimodal_item_run_cu_offsets": [1, 2, 3]}, ValueError, "start at 0, not 1"),
        ({"multimodal_item_run_cu_offsets": [0, 4, 3]}, ValueError, "not decrease: 3 follows 4"),
        ({"multimodal_item_run_cu_offsets": [0, 2, 2]}, ValueError, "ends at 2, but there are 3"),
        ({"multimodal_run_lengths": [1, 2, 2]}, ValueError, "sum to 3, expected 4"),
        ({"multimodal_item_run_cu_offsets": [0, 0, 3]}, ValueError, "sum to 0, expected 4"),
        (
            {"multimodal_run_lengths": [1, 3, 0]},
            ValueError,
            "multimodal_run_lengths must be positive",
        ),
        (
            {"multimodal_run_positions": [0, -5, 10]},
            ValueError,
            "run_positions must be non-negative",
        ),
        ({"multimodal_run_positions": [1, 5, 10]}, ValueError, "starts at 1, the item at 0"),
        ({"multimodal_run_positions": [0, 0, 10]}, ValueError, "not in order: 0 follows 0"),
        (
            {"multimodal_run_positions": [0, 8, 10]},
            ValueError,
            "one ends at 11, another starts at 10",
        ),
    ],
)
def test_faults_are_named_with_both_numbers(change, error, message):
    with pytest.raises(error, match=message):
        MultimodalInput(**{**GOOD, **RUNS, **change})


def test_items_become_exact_runs():
    first, second = digest("first"), digest("second")
    items = [item((2, 3), (7, 1), identity=first, uuid="u"), item((9, 4), identity=second)]
    made = MultimodalInput.from_items(items, 13)
    assert made is not None
    assert [int32_to_hexdigest(h) for h in made.multimodal_hashes] == [first.hex(), second.hex()]
    assert (made.multimodal_positions, made.multimodal_lengths) == ([2, 9], [4, 4])
    assert made.multimodal_uuids == ["u", None]
    assert made.run_metadata() == ([0, 2, 3], [2, 7, 9], [3, 1, 4])


def test_one_unknown_identity_makes_all_unreliable():
    assert MultimodalInput.from_items([item((0, 2)), item((2, 2), identity=None)], 10) is None
    assert MultimodalInput.from_items([], 10) == MultimodalInput([], [], [], [], [0], [], [])


@pytest.mark.parametrize(
    ("items", "message"),
    [
        ([item((9, 4))], "a run ends at 13, the prompt at 12"),
        ([item((2, 3)), item((4, 2))], "one ends at 5, another starts at 4"),
        ([item()], "no placeholder run"),
        ([item((5, 2), (2, 2))], "not in order: 2 follows 5"),
        ([item((-1, 2))], "non-negative, not -1"),
    ],
)
def test_items_whose_runs_contradict_are_refused(items, message):
    with pytest.raises(ValueError, match=message):
        MultimodalInput.from_items(items, 12)


def test_run_buffers_say_what_the_items_say():
    """Against a token by token picture of the prompt, over random layouts."""
    rng = random.Random(11)
    for _ in range(50):
        owners = [rng.choice([None, 0, 1, 2]) for _ in range(rng.randrange(1, 30))]
        items = [item(*runs_of(owners, who), identity=identity_of(who)) for who in range(3)]
        buffers = media_run_buffers(items)
        painted: list[int | None] = [None] * len(owners)
        spans = zip(buffers.run_items, buffers.run_positions, buffers.run_lengths, strict=True)
        for who, position, length in spans:
            assert painted[position : position + length] == [None] * length
            painted[position : position + length] = [int(who)] * length
        assert painted == owners
        assert (np.diff(buffers.run_positions) > 0).all()
        assert buffers.item_rows.tolist() == [owners.count(who) for who in range(3)]
        assert buffers.identified.tolist() == [True, False, True]
        assert buffers.digests[0].tobytes() == identity_of(0)
        assert not buffers.digests[1].any()


def identity_of(who: int) -> Digest | None:
    return None if who == 1 else digest(str(who))


def runs_of(owners: list[int | None], who: int) -> list[tuple[int, int]]:
    runs: list[tuple[int, int]] = []
    for index, owner in enumerate(owners):
        if owner != who:
            continue
        if runs and sum(runs[-1]) == index:
            runs[-1] = (runs[-1][0], runs[-1][1] + 1)
        else:
            runs.append((index, 1))
    return runs


def test_run_buffers_have_the_types_that_cross():
    for items in ([], [item((0, 2))]):
        buffers = media_run_buffers(items)
        assert buffers.digests.dtype == np.uint8
        assert buffers.digests.shape == (len(items), 32)
        assert buffers.identified.dtype == np.bool_
        assert buffers.run_items.dtype == np.int32
        for array in (buffers.item_rows, buffers.run_positions, buffers.run_lengths):
            assert array.dtype == np.int64
        assert all(vars(buffers)[name].flags.c_contiguous for name in vars(buffers))


def test_an_identity_of_another_length_is_refused():
    with pytest.raises(ValueError, match="32 bytes, not 16"):
        media_run_buffers([item((0, 1), identity=Digest(bytes(16)))])
