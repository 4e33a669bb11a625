# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""What a request's options make of the model's logits before a token is chosen.

Changes of all requests are gathered and made together: biases, then penalties, then what must not
come.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import torch

from tensorrt_llm.sampling_params import SamplingParams


class PenaltyState:
    """Which tokens a request has had, brought up to date by what is new.

    Args:
        prompt_ids: int ``[prompt_len]``.
        vocab_size: Number of token ids.
        device: Where the logits are.
    """

    def __init__(self, prompt_ids: np.ndarray, vocab_size: int, device: torch.device) -> None:
        self.counts = torch.zeros(vocab_size, dtype=torch.float32, device=device)
        """How often each token is in the answer."""
        self.in_prompt = torch.zeros(vocab_size, dtype=torch.bool, device=device)
        """Whether each token is in the prompt."""
        ids = torch.from_numpy(prompt_ids.astype(np.int64)).to(device)
        self.in_prompt[ids] = True
        self._num_counted = 0

    def count(self, output_ids: Sequence[int]) -> None:
        """Takes in what the answer has more than at the last call."""
        new = output_ids[self._num_counted :]
        if new:
            ids = torch.tensor(new, device=self.counts.device)
            self.counts.index_add_(0, ids, torch.ones_like(ids, dtype=torch.float32))
            self._num_counted = len(output_ids)


class LogitChanges:
    """Gathers the changes to a batch of logits, then makes them.

    Args:
        vocab_size: Number of token ids.
    """

    def __init__(self, vocab_size: int) -> None:
        self._vocab_size = vocab_size
        self._biased: tuple[list[int], list[int], list[float]] = ([], [], [])
        self._penalized: list[tuple[int, SamplingParams, PenaltyState]] = []
        self._forbidden: tuple[list[int], list[int]] = ([], [])
        self._masks: list[tuple[int, torch.Tensor]] = []

    def bias(self, row: int, biases: Iterable[tuple[int, float]]) -> None:
        """Adds to the logits of tokens, given by id."""
        rows, ids, values = self._biased
        for token_id, value in biases:
            rows.append(row)
            ids.append(token_id)
            values.append(value)

    def penalize(self, row: int, sampling: SamplingParams, state: PenaltyState) -> None:
        """Makes tokens less, or more, likely that came before."""
        self._penalized.append((row, sampling, state))

    def forbid(self, row: int, token_ids: Iterable[int]) -> None:
        """Says that these tokens must not come; ids outside the vocabulary never do."""
        rows, ids = self._forbidden
        for token_id in token_ids:
            if 0 <= token_id < self._vocab_size:
                rows.append(row)
                ids.append(token_id)

    def allow_only(self, row: int, mask: torch.Tensor) -> None:
        """Says which tokens may come.

        Args:
            row: The row.
            mask: int32 ``[ceil(vocab_size / 32)]`` on the CPU, a bit a token, lowest first.
        """
        self._masks.append((row, mask))

    def apply(self, logits: torch.Tensor) -> torch.Tensor:
        """The logits with all changes; the same tensor if there are none.

        Args:
            logits: float32 ``[rows, vocab_size]``, not changed.
        """
        if not (self._biased[0] or self._penalized or self._forbidden[0] or self._masks):
            return logits
        changed, device = logits.clone(), logits.device
        if self._biased[0]:
            rows, ids, values = (torch.tensor(part, device=device) for part in self._biased)
            changed.index_put_((rows, ids), values.to(changed.dtype), accumulate=True)
        if self._penalized:
            self._penalize(changed)
        if self._forbidden[0]:
            rows, ids = (torch.tensor(part, device=device) for part in self._forbidden)
            changed[rows, ids] = -torch.inf
        if self._masks:
            rows = torch.tensor([row for row, _ in self._masks], device=device)
            words = torch.stack([mask for _, mask in self._masks]).to(device)
            changed[rows] = changed[rows].masked_fill(~self._unpacked(words), -torch.inf)
        return changed

    def _penalize(self, logits: torch.Tensor) -> None:
        def column(values: Iterable[float | None], default: float) -> torch.Tensor:
            numbers = [default if value is None else value for value in values]
            return torch.tensor(numbers, dtype=logits.dtype, device=logits.device)[:, None]

        options = [sampling for _, sampling, _ in self._penalized]
        states = [state for _, _, state in self._penalized]
        rows = torch.tensor([row for row, _, _ in self._penalized], device=logits.device)
        counts = torch.stack([state.counts for state in states])
        came = counts > 0
        part = logits[rows]
        factor = column((one.repetition_penalty for one in options), 1.0)
        repeated = came | torch.stack([state.in_prompt for state in states])
        part = torch.where(repeated, torch.where(part > 0, part / factor, part * factor), part)
        part -= column((one.frequency_penalty for one in options), 0.0) * counts
        part -= column((one.presence_penalty for one in options), 0.0) * came
        logits[rows] = part

    def _unpacked(self, words: torch.Tensor) -> torch.Tensor:
        """Bits as bool ``[rows, vocab_size]``."""
        bits = torch.arange(32, dtype=torch.int32, device=words.device)
        flags = (words[:, :, None] >> bits) & 1
        return flags.flatten(1)[:, : self._vocab_size].bool()
