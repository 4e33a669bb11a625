# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Logits to tokens: one pass over all requests of a step.

What a request gets depends on its own row, options and tokens, and on nothing else in the batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from tensorrt_llm._torch.pyexecutor.llm_request import LlmRequest
from tensorrt_llm._torch.pyexecutor.sampling import (
    DrawOptions,
    LogitChanges,
    PenaltyState,
    draw_tokens,
    score_tokens,
    uniform,
)
from tensorrt_llm.errors import RequestError
from tensorrt_llm.executor.result import TokenLogprobs


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
    """Chooses the next token of each request. Keeps nothing; what must be kept, requests keep."""

    @torch.inference_mode()
    def sample(
        self,
        logits: torch.Tensor,
        requests: Sequence[LlmRequest],
        ahead: Sequence[int] | None = None,
    ) -> list[Sampled | Exception]:
        """Chooses one token a row, or says why one could not be chosen.

        A guided request's guide has taken the token in afterwards.

        Args:
            logits: float32 ``[len(requests), vocab_size]``.
            requests: In the order of the rows. One with a draft stands in several.
            ahead: Tokens of its draft that each row comes after; 0 everywhere if None.
        """
        ahead = [0] * len(requests) if ahead is None else ahead
        try:
            chosen = _choose(logits, requests, ahead)
        except Exception as error:  # of one request's options, or of memory
            if len(requests) == 1:
                return [error]
            # Nothing has been kept, so whose fault it is shows when each is alone.
            return [
                alone
                for row, request in enumerate(requests)
                for alone in self.sample(logits[row : row + 1], [request], [ahead[row]])
            ]
        return [_follow(one, request) for one, request in zip(chosen, requests, strict=True)]


def _choose(
    logits: torch.Tensor, requests: Sequence[LlmRequest], ahead: Sequence[int]
) -> list[Sampled | RequestError]:
    shaped = _changes(logits, requests, ahead).apply(logits)
    tokens = shaped.argmax(dim=-1)
    drawn = [row for row, request in enumerate(requests) if not request.sampling.greedy]
    if drawn:
        rows = torch.tensor(drawn, device=logits.device)
        tokens[rows] = draw_tokens(
            shaped[rows],
            [DrawOptions.of(requests[row].sampling) for row in drawn],
            [
                uniform(requests[row].seed, len(requests[row].output_ids) + ahead[row])
                for row in drawn
            ],
        )
    # Even the likeliest token is forbidden where all are.
    allowed = (shaped.amax(-1) > -torch.inf).tolist()
    token_ids = tokens.tolist()
    logprobs = _logprobs(logits, token_ids, requests)
    return [
        Sampled(
            token_id=token_ids[row],
            logprobs=logprobs[row],
            logits=(
                logits[row : row + 1].cpu() if request.sampling.return_generation_logits else None
            ),
        )
        if allowed[row]
        else RequestError("no token is left that the sampling options allow")
        for row, request in enumerate(requests)
    ]


def _follow(chosen: Sampled | RequestError, request: LlmRequest) -> Sampled | Exception:
    if isinstance(chosen, Sampled) and request.guide is not None:
        try:
            request.guide.accept(chosen.token_id)
        except Exception as error:
            return error
    return chosen


def _changes(
    logits: torch.Tensor, requests: Sequence[LlmRequest], ahead: Sequence[int]
) -> LogitChanges:
    changes = LogitChanges(logits.shape[-1])
    for row, request in enumerate(requests):
        sampling = request.sampling
        if sampling.logit_bias:
            changes.bias(row, sampling.logit_bias.items())
        if sampling.penalizes:
            if request.penalties is None:
                request.penalties = PenaltyState(
                    request.prompt_ids, logits.shape[-1], logits.device
                )
            request.penalties.count(request.output_ids)
            changes.penalize(row, sampling, request.penalties)
        changes.forbid(row, sampling.bad_token_ids or ())
        if request.bad_words:
            changes.forbid(row, request.ends_of_bad_words())
        if len(request.output_ids) + ahead[row] < (sampling.min_tokens or 0):
            changes.forbid(row, request.stop_token_ids)
        if request.guide is not None:
            changes.allow_only(row, request.guide.allowed())
    return changes


def _logprobs(
    logits: torch.Tensor, token_ids: Sequence[int], requests: Sequence[LlmRequest]
) -> list[TokenLogprobs | None]:
    """Of the requests that ask for them, under the model's own distribution."""
    wanted = {
        row: count
        for row, request in enumerate(requests)
        if (count := request.sampling.scored_logprobs) is not None
    }
    result: list[TokenLogprobs | None] = [None] * len(requests)
    if wanted:
        rows = torch.tensor(list(wanted), device=logits.device)
        found = score_tokens(logits[rows], [token_ids[row] for row in wanted], [*wanted.values()])
        for row, entry in zip(wanted, found, strict=True):
            result[row] = entry
    return result
