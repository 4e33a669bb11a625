# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Places of tokens behind, inside and between items; slices of them; what is generated behind."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tensorrt_llm.inputs.data import ProcessedPrompt
from tensorrt_llm.inputs.positions import (
    ItemPositions,
    grid_positions,
    position_shift,
    prompt_positions,
)

GRIDS = st.tuples(st.integers(1, 6), st.integers(1, 6))


def walk(pieces: list[int | tuple[int, int]]) -> list[tuple[int, int, int]]:
    """The obvious way: one token after the other."""
    places, at = [], 0
    for piece in pieces:
        if isinstance(piece, int):
            places += [(at + step,) * 3 for step in range(piece)]
            at += piece
        else:
            high, wide = piece
            places += [
                (at, at + line, at + column) for line in range(high) for column in range(wide)
            ]
            at += max(piece)
    return places


@given(st.lists(st.one_of(st.integers(0, 5), GRIDS), max_size=8))
def test_a_prompt_is_laid_out_as_if_token_by_token(pieces: list[int | tuple[int, int]]) -> None:
    items, length = [], 0
    for piece in pieces:
        if isinstance(piece, tuple):
            items.append((length, grid_positions(*piece)))
        length += piece if isinstance(piece, int) else piece[0] * piece[1]
    expected = walk(pieces)
    positions = prompt_positions(length, items)
    if not items:
        assert positions is None
        return
    assert positions is not None and positions.dtype == np.int32
    assert positions.T.tolist() == [list(place) for place in expected]
    delta = position_shift(items)
    prompt = ProcessedPrompt(np.zeros(length, np.int32), positions=positions, position_delta=delta)
    highest = max(max(place) for place in expected)
    assert prompt.position_delta == highest + 1 - length
    whole = expected + [(highest + 1 + step,) * 3 for step in range(4)]
    for begin in range(length + 4):
        for end in (begin + 1, length + 4):
            sliced = prompt.position_ids(begin, end)
            assert sliced.T.tolist() == [list(place) for place in whole[begin:end]]


def test_items_without_places_of_their_own_stand_at_their_indices() -> None:
    assert prompt_positions(9, [(2, None), (5, None)]) is None
    positions = prompt_positions(9, [(1, None), (3, grid_positions(2, 2)), (8, None)])
    assert positions is not None
    assert positions[0].tolist() == [0, 1, 2, 3, 3, 3, 3, 5, 6]
    prompt = ProcessedPrompt(np.zeros(3, np.int32))
    assert prompt.position_delta == 0
    assert prompt.position_ids(2, 6).tolist() == [[2, 3, 4, 5]]


def test_an_item_says_itself_how_far_it_reaches() -> None:
    frames = ItemPositions(np.asarray([[0, 50], [0, 0], [0, 0]], np.int32), 1)
    positions = prompt_positions(5, [(1, frames)])
    assert positions is not None
    assert positions.tolist() == [[0, 1, 51, 2, 3], [0, 1, 1, 2, 3], [0, 1, 1, 2, 3]]
