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


def grid_positions(height: int, width: int) -> ItemPositions:
    """A still picture of ``height * width`` rows, line by line, for the axes time, height, width.

    All rows stand at one time; what follows stands behind the longer side.
    """
    lines, columns = np.divmod(np.arange(height * width, dtype=np.int32), width)
    return ItemPositions(np.stack([np.zeros_like(lines), lines, columns]), max(height, width))


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
