# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""The sequences of a step as tensors, for a backend that attends for all of them in one call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch


@dataclass(frozen=True)
class Tiles:
    """Pieces of sequences that one program takes each; int32 ``[count]`` on the device.

    Attributes:
        sequences: Index of the sequence.
        tokens: The piece's first token, counted from the sequence's first new one.
        count: How many.
    """

    sequences: torch.Tensor = field(repr=False)
    tokens: torch.Tensor = field(repr=False)
    count: int


@dataclass(frozen=True)
class SequenceBatch:
    """All sequences of a step; int32 tensors on the device.

    Attributes:
        query_starts: ``[n + 1]``: where each one's new tokens begin in the flattened batch.
        kv_lens: ``[n]``: tokens each has in the pool once this step's are written; 0 for one that
            only fills the batch up and sees nothing.
        block_tables: ``[n, most blocks]``; what lies behind a sequence's own blocks is not read.
        context: Tiles of the sequences with more than one new token.
        single: A tile for each sequence with one new token.
        single_rows: ``[single.count]``: where these tokens are in the flattened batch.
        spans: ``[num_tokens, 2]``: the both-way span that a token is in, else zeros; None if none.
    """

    query_starts: torch.Tensor = field(repr=False)
    kv_lens: torch.Tensor = field(repr=False)
    block_tables: torch.Tensor = field(repr=False)
    context: Tiles
    single: Tiles
    single_rows: torch.Tensor = field(repr=False)
    spans: torch.Tensor | None = field(repr=False)

    @classmethod
    def of(
        cls,
        query_lens: Sequence[int],
        kv_lens: Sequence[int],
        block_tables: np.ndarray,
        both_ways: Sequence[tuple[tuple[int, int], ...]],
        *,
        tile_tokens: int,
        device: torch.device,
    ) -> SequenceBatch:
        """Lays them out in one host buffer, which goes to the device in one transfer.

        Args:
            query_lens: New tokens of each sequence, at least one.
            kv_lens: Its tokens once these are written.
            block_tables: int32 ``[n, most blocks]``.
            both_ways: Its spans.
            tile_tokens: Tokens of a context tile.
            device: Where the tensors go.
        """
        lens = np.asarray(query_lens)
        starts = np.concatenate([[0], lens.cumsum()])
        several, one = np.flatnonzero(lens > 1), np.flatnonzero(lens == 1)
        counts = -(-lens[several] // tile_tokens)
        owners = several.repeat(counts)
        first = np.arange(len(owners)) - (counts.cumsum() - counts).repeat(counts)
        parts = [
            starts,
            np.asarray(kv_lens),
            owners,
            first * tile_tokens,
            one,
            np.zeros(len(one)),
            starts[one],
            block_tables.reshape(-1),
        ]
        if any(both_ways):
            parts.append(_spans(starts, lens, kv_lens, both_ways).reshape(-1))
        buffer = torch.from_numpy(np.concatenate(parts, dtype=np.int32, casting="unsafe"))
        pieces = buffer.to(device).split([len(part) for part in parts])
        return cls(
            query_starts=pieces[0],
            kv_lens=pieces[1],
            block_tables=pieces[7].view(block_tables.shape),
            context=Tiles(pieces[2], pieces[3], len(owners)),
            single=Tiles(pieces[4], pieces[5], len(one)),
            single_rows=pieces[6],
            spans=pieces[8].view(-1, 2) if any(both_ways) else None,
        )


def _spans(
    starts: np.ndarray,
    lens: np.ndarray,
    kv_lens: Sequence[int],
    both_ways: Sequence[tuple[tuple[int, int], ...]],
) -> np.ndarray:
    """For each new token the span that it is in."""
    spans = np.zeros((starts[-1], 2), np.int32)
    for start, length, kv_len, of_sequence in zip(
        starts[:-1], lens, kv_lens, both_ways, strict=True
    ):
        first = kv_len - length
        for begin, end in of_sequence:
            rows = slice(start + max(begin - first, 0), start + min(max(end - first, 0), length))
            spans[rows] = begin, end
    return spans
