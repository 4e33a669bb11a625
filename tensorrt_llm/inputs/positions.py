# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Rotary positions of prompts whose media take places of their own (mrope).

Most models turn a token by its index. Where a model turns each part of a head by another axis
(time, height, width), a picture's tokens stand on a grid, and the text behind it goes on at the
far edge of that grid, not at its index. Such positions follow from the prompt alone, so they are
made once with it and sliced for chunks; a reused prefix needs them only for what is computed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, eq=False)
class ItemPositions:
    """Where the tokens of one item stand, counted from its first token's place.

    Attributes:
        relative: int32 ``[axes, n]``, one column for each of the item's tokens.
        advance: Place of the token behind the item.
    """

    relative: np.ndarray
    advance: int

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return int(self.relative.nbytes)


def grid_positions(height: int, width: int, times: Sequence[int] = (0,)) -> ItemPositions:
    """Pictures of ``height * width`` rows each, line by line, for the axes time, height, width.

    Args:
        height: Lines of a picture.
        width: Columns of a picture.
        times: Place of each picture on the time axis, ascending: one for a still picture.

    Returns:
        The rows of all pictures. What follows stands behind the longer side, however long the
        pictures last, as in the stock models.
    """
    lines, columns = np.divmod(np.arange(height * width, dtype=np.int32), width)
    count = len(times)
    shown = np.repeat(np.asarray(times, dtype=np.int32), height * width)
    relative = np.stack([shown, np.tile(lines, count), np.tile(columns, count)])
    return ItemPositions(relative, max(height, width))


def joined_positions(parts: Sequence[int | ItemPositions], axes: int = 3) -> ItemPositions:
    """Places of an item that is made of several parts, one behind the other.

    Args:
        parts: For each the number of its text tokens, or the places of its rows.
        axes: Axes of a position.
    """
    pieces, at = [], 0
    for part in parts:
        if isinstance(part, int):
            pieces.append(np.tile(np.arange(at, at + part, dtype=np.int32), (axes, 1)))
            at += part
        else:
            pieces.append(part.relative + at)
            at += part.advance
    return ItemPositions(np.concatenate(pieces, axis=1, dtype=np.int32), at)


def position_shift(items: Sequence[tuple[int, ItemPositions | None]]) -> int:
    """How far the text behind a prompt's items stands from its index.

    Args:
        items: As for ``prompt_positions``.
    """
    return sum(own.advance - own.relative.shape[1] for _, own in items if own is not None)


def prompt_positions(
    num_tokens: int, items: Sequence[tuple[int, ItemPositions | None]]
) -> np.ndarray | None:
    """Lays the items of a prompt out.

    Args:
        num_tokens: Tokens of the prompt.
        items: For each item in prompt order the index of its first token and its own positions;
            an item without stands where its indices say.

    Returns:
        int32 ``[axes, num_tokens]``; None if no item has positions of its own, so that every
        token stands at its index.
    """
    placed = [(start, own) for start, own in items if own is not None]
    if not placed:
        return None
    index = np.arange(num_tokens, dtype=np.int32)
    positions = np.tile(index, (len(placed[0][1].relative), 1))
    shift = 0
    for start, own in placed:
        end = start + own.relative.shape[1]
        positions[:, start:end] = own.relative + (start + shift)
        shift += own.advance - (end - start)
        positions[:, end:] = index[end:] + shift
    return positions
