# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Drawing tokens: temperature, top-k, top-p, min-p, and one random number a token.

The number is a function of the request's seed and of how many tokens the answer has, and of nothing
else: no stream has to be kept, and what else is in the batch, a pause or a fork changes nothing.
For the same reason each row is worked on with the operations that its own options need: rows that
need no ranking are never ranked because others are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from tensorrt_llm.sampling_params import SamplingParams

_MASK = (1 << 64) - 1
_GOLDEN = 0x9E3779B97F4A7C15
# float32 cannot hold less as a divisor; the likeliest token is certain long before.
_LOWEST_TEMPERATURE = 1e-30


def uniform(seed: int, position: int) -> float:
    """The random number in [0, 1) of a seed for the token at a position, with 53 random bits."""
    mixed = _mix(_mix(seed + _GOLDEN) + (position + 1) * _GOLDEN)
    return (mixed >> 11) * 2.0**-53


def _mix(value: int) -> int:
    """The finalizer of SplitMix64: a bijection on 64 bits in which each bit changes all."""
    value &= _MASK
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & _MASK
    return value ^ (value >> 31)


@dataclass(frozen=True)
class DrawOptions:
    """What a token is drawn by.

    Attributes:
        temperature: Above 0.
        top_k: 0 means all.
        top_p: 1 means all.
        min_p: 0 means all.
    """

    temperature: float
    top_k: int
    top_p: float
    min_p: float

    @classmethod
    def of(cls, sampling: SamplingParams) -> DrawOptions:
        """Those of a request that is not greedy."""
        return cls(
            temperature=1.0 if sampling.temperature is None else sampling.temperature,
            top_k=sampling.top_k or 0,
            top_p=1.0 if sampling.top_p is None else sampling.top_p,
            min_p=sampling.min_p or 0.0,
        )


def draw_tokens(
    logits: torch.Tensor, options: Sequence[DrawOptions], numbers: Sequence[float]
) -> torch.Tensor:
    """Draws a token a row.

    Args:
        logits: float32 ``[rows, vocab_size]``.
        options: One a row.
        numbers: One in [0, 1) a row.

    Returns:
        int64 ``[rows]``. Any number where a row has no token that may come.
    """
    tokens = torch.empty(logits.shape[0], dtype=torch.long, device=logits.device)
    for rows, probabilities, ids in _distributions(logits, options):
        chosen = _invert(probabilities, [numbers[row] for row in rows])
        index = torch.tensor(rows, device=logits.device)
        tokens[index] = chosen if ids is None else ids.gather(-1, chosen[:, None])[:, 0]
    return tokens


def token_probabilities(logits: torch.Tensor, options: Sequence[DrawOptions]) -> torch.Tensor:
    """The distributions that ``draw_tokens`` draws from.

    Args:
        logits: float32 ``[rows, vocab_size]``.
        options: One a row.

    Returns:
        float64 ``[rows, vocab_size]``.
    """
    result = torch.zeros_like(logits, dtype=torch.float64)
    for rows, probabilities, ids in _distributions(logits, options):
        index = torch.tensor(rows, device=logits.device)
        spread = probabilities.double()
        if ids is not None:
            spread = torch.zeros_like(result[index]).scatter_(-1, ids, spread)
        result[index] = spread / spread.sum(-1, keepdim=True)
    return result


def _distributions(
    logits: torch.Tensor, options: Sequence[DrawOptions]
) -> list[tuple[list[int], torch.Tensor, torch.Tensor | None]]:
    """Rows by the work they need.

    Returns:
        The rows, probabilities up to a factor ``[rows, n]``, and the token ids ``[rows, n]`` that
        these belong to, None if they are in the order of the vocabulary.
    """
    vocab_size = logits.shape[-1]
    groups: dict[tuple[bool, bool], list[int]] = {}
    for row, one in enumerate(options):
        key = (0 < one.top_k < vocab_size, one.top_p < 1)
        groups.setdefault(key, []).append(row)
    result: list[tuple[list[int], torch.Tensor, torch.Tensor | None]] = []
    for (limited, nucleus), rows in groups.items():
        chosen = [options[row] for row in rows]
        scaled = _scaled(logits, rows, chosen)
        if not limited and not nucleus:
            result.append((rows, _likely_enough(scaled.softmax(-1), chosen), None))
            continue
        if limited:
            values, ids = _likeliest(scaled, [one.top_k for one in chosen])
        else:
            values, ids = scaled.sort(descending=True, stable=True)
        # In float64, so that how many candidates other rows have is not seen in the sums.
        probabilities = values.double().softmax(-1)
        if nucleus:
            top_p = _column([one.top_p for one in chosen], probabilities)
            before = probabilities.cumsum(-1) - probabilities
            probabilities = probabilities.masked_fill(before >= top_p, 0.0)
        result.append((rows, _likely_enough(probabilities, chosen), ids))
    return result


def _scaled(
    logits: torch.Tensor, rows: Sequence[int], options: Sequence[DrawOptions]
) -> torch.Tensor:
    """Rows over their temperatures, shifted so that the largest is 0 and none overflows."""
    part = logits[torch.tensor(rows, device=logits.device)]
    temperatures = [max(one.temperature, _LOWEST_TEMPERATURE) for one in options]
    return (part - part.amax(-1, keepdim=True)) / _column(temperatures, part)


def _likeliest(scaled: torch.Tensor, limits: Sequence[int]) -> tuple[torch.Tensor, torch.Tensor]:
    """Each row's k likeliest tokens, and those as likely as the last of them; in order."""
    best = scaled.topk(max(limits)).values
    last = best.gather(-1, torch.tensor(limits, device=scaled.device)[:, None] - 1)
    kept = scaled.masked_fill(scaled < last, -torch.inf)
    # Of equals topk takes any, so all are taken, and brought into the order of their ids.
    ids = kept.topk(int((kept > -torch.inf).sum(-1).max().clamp(min=1))).indices.sort(-1).values
    values, order = kept.gather(-1, ids).sort(descending=True, stable=True)
    return values, ids.gather(-1, order)


def _likely_enough(probabilities: torch.Tensor, options: Sequence[DrawOptions]) -> torch.Tensor:
    if not any(one.min_p for one in options):
        return probabilities
    least = _column([one.min_p for one in options], probabilities)
    return probabilities.masked_fill(
        probabilities < least * probabilities.amax(-1, keepdim=True), 0.0
    )


def _invert(probabilities: torch.Tensor, numbers: Sequence[float]) -> torch.Tensor:
    """Where the running sum of each row passes its number's share of the whole."""
    sums = probabilities.double().cumsum(-1)
    whole = sums[:, -1:]
    found = torch.searchsorted(sums, _column(numbers, sums) * whole, right=True)
    # Rounding may reach the whole; the last token with a probability is meant then.
    last = (sums < whole).sum(-1, keepdim=True)
    return torch.minimum(found, last)[:, 0]


def _column(values: Sequence[float], like: torch.Tensor) -> torch.Tensor:
    return torch.tensor(values, dtype=like.dtype, device=like.device)[:, None]
