# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Logits to tokens.

Greedy requests are decided together in one call. A sampled request draws from its own random
stream on its own row, so its answer does not depend on what else is in the batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from tensorrt_llm._torch.pyexecutor.llm_request import LlmRequest
from tensorrt_llm.executor.result import TokenLogprobs
from tensorrt_llm.sampling_params import SamplingParams


@dataclass(frozen=True, eq=False)
class Sampled:
    """One request's next token.

    Attributes:
        token_id: The token.
        logprobs: Under the model's own distribution, if asked for.
        logits: float32 ``[1, vocab_size]`` on the CPU, if asked for.
    """

    token_id: int
    logprobs: TokenLogprobs | None
    logits: torch.Tensor | None


class Sampler:
    """Chooses the next token of each request. Keeps nothing but the device."""

    @torch.inference_mode()
    def sample(
        self, logits: torch.Tensor, requests: Sequence[LlmRequest]
    ) -> list[Sampled | Exception]:
        """Chooses one token a request, or says why one could not be chosen.

        Args:
            logits: float32 ``[len(requests), vocab_size]``.
            requests: In the order of the rows.
        """
        likeliest = logits.argmax(dim=-1).tolist()
        chosen: list[Sampled | Exception] = []
        for row, request in enumerate(requests):
            try:
                chosen.append(_choose(logits[row], likeliest[row], request))
            except Exception as error:  # of this request's options or memory, not of the others'
                chosen.append(error)
        return chosen


def _choose(row: torch.Tensor, likeliest: int, request: LlmRequest) -> Sampled:
    sampling = request.sampling
    token = likeliest if sampling.greedy else _draw(row, request)
    return Sampled(
        token_id=token,
        logprobs=_logprobs(row, token, sampling.logprobs),
        logits=row[None].cpu() if sampling.return_generation_logits else None,
    )


def _draw(row: torch.Tensor, request: LlmRequest) -> int:
    if request.generator is None:
        request.generator = torch.Generator(device=row.device)
        if request.sampling.seed is None:
            request.generator.seed()
        else:
            # torch takes seeds as signed 64-bit numbers.
            request.generator.manual_seed(request.sampling.seed - (1 << 63))
    probabilities = token_probabilities(row, request.sampling)
    return int(torch.multinomial(probabilities, 1, generator=request.generator))


def token_probabilities(row: torch.Tensor, sampling: SamplingParams) -> torch.Tensor:
    """The distribution a token is drawn from: temperature, then top-k, then top-p.

    Args:
        row: float32 logits ``[vocab_size]``.
        sampling: Options, not greedy.

    Returns:
        float32 probabilities ``[vocab_size]``. The smallest set of likeliest tokens whose sum
        reaches ``top_p`` is kept; at least one token always is.
    """
    scaled = row / (1.0 if sampling.temperature is None else sampling.temperature)
    if sampling.top_k:
        kth = scaled.topk(min(sampling.top_k, scaled.shape[-1])).values[-1]
        scaled = scaled.masked_fill(scaled < kth, -torch.inf)
    probabilities = scaled.softmax(dim=-1)
    if sampling.top_p is not None and sampling.top_p < 1:
        ordered, order = probabilities.sort(descending=True, stable=True)
        before = ordered.cumsum(dim=-1) - ordered
        ordered = ordered.masked_fill(before >= sampling.top_p, 0.0)
        probabilities = torch.zeros_like(probabilities).scatter_(0, order, ordered)
        probabilities /= probabilities.sum()
    return probabilities


def _logprobs(row: torch.Tensor, token: int, count: int | None) -> TokenLogprobs | None:
    if count is None:
        return None
    scores = row.log_softmax(dim=-1)
    best = scores.topk(count) if count else None
    top = () if best is None else zip(best.indices.tolist(), best.values.tolist(), strict=True)
    return TokenLogprobs(token_id=token, logprob=float(scores[token]), top=tuple(top))
