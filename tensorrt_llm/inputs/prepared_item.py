# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""What a family makes of one item, before it has a place in a prompt."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch

from tensorrt_llm.inputs.data import PlaceholderRun
from tensorrt_llm.inputs.positions import ItemPositions


@dataclass(frozen=True, eq=False)
class PreparedItem:
    """One item, preprocessed alone.

    Attributes:
        token_ids: int32 ``[n]``: what takes the place of the item's one placeholder.
        is_row: bool ``[n]``: which of these tokens hold embedding rows.
        encoder_inputs: Tensors for the family's encoder.
        encoder_kwargs: Further arguments of the encoder call.
        context: Everything but payload and caller id that decides the item's rows: resolved
            options, the processor's fingerprint, what stands beside it in the request.
        positions: Where its tokens stand, if not at their indices.
        grid: Lines and columns that its rows alone do not tell (see ``EmbeddingData``).
    """

    token_ids: np.ndarray
    is_row: np.ndarray
    encoder_inputs: Mapping[str, torch.Tensor] = field(repr=False)
    encoder_kwargs: Mapping[str, Any] = field(default_factory=dict)
    context: Mapping[str, Any] = field(default_factory=dict)
    positions: ItemPositions | None = None
    grid: tuple[int, int] | None = None

    @classmethod
    def of_rows(cls, placeholder: int, num_rows: int, **fields: Any) -> PreparedItem:
        """An item that is nothing but ``num_rows`` placeholder tokens, each a row."""
        token_ids = np.full(num_rows, placeholder, dtype=np.int32)
        return cls(token_ids, np.ones(num_rows, dtype=bool), **fields)

    def without_inputs(self) -> PreparedItem:
        """The same item without its encoder inputs, for keeping."""
        for array in (self.token_ids, self.is_row):
            array.setflags(write=False)
        return replace(self, encoder_inputs={})

    @property
    def nbytes(self) -> int:
        """About how many bytes the item takes, its encoder inputs not counted."""
        # The two dicts hold a few short values each.
        own = 0 if self.positions is None else self.positions.nbytes
        return self.token_ids.nbytes + self.is_row.nbytes + own + 1024

    def runs(self, position: int) -> tuple[PlaceholderRun, ...]:
        """The item's runs if its first token stands at ``position`` of the prompt."""
        return tuple(PlaceholderRun(position + start, length) for start, length in self._spans)

    @cached_property
    def _spans(self) -> tuple[tuple[int, int], ...]:
        """Start and length of each run of rows."""
        edges = np.flatnonzero(np.diff(self.is_row, prepend=False, append=False))
        return tuple((int(start), int(end - start)) for start, end in edges.reshape(-1, 2))
