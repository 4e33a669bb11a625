# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Logits at a prompt's own tokens, and log-probabilities of these, as chunks are computed."""

from __future__ import annotations

import torch

from tensorrt_llm._torch.models.modeling_utils import DecoderModel
from tensorrt_llm._torch.pyexecutor.llm_request import LlmRequest
from tensorrt_llm._torch.pyexecutor.sampling import score_tokens
from tensorrt_llm.executor.result import TokenLogprobs

# Logits of a whole chunk would take gigabytes.
_ROWS_AT_ONCE = 256


def score_prompt(
    model: DecoderModel, request: LlmRequest, begin: int, hidden: torch.Tensor
) -> None:
    """Scores the prompt tokens that follow those of a chunk; the request keeps what it gets.

    Args:
        model: Whose opinion is asked.
        request: One that asks for it; its answer is not scored.
        begin: Index of the chunk's first token.
        hidden: ``[chunk_len, hidden_size]``.
    """
    assert request.prompt_scores is not None
    end = min(begin + hidden.shape[0], request.prompt_len)
    for first in range(begin, end, _ROWS_AT_ONCE):
        last = min(first + _ROWS_AT_ONCE, end)
        logits = model.logits(hidden[first - begin : last - begin])
        if request.sampling.return_context_logits:
            _keep(request, first, logits)
        if request.sampling.prompt_logprobs is None:
            continue
        # The prompt's last token is followed by one of the answer's.
        tokens = request.prompt_ids[first + 1 : last + 1].tolist()
        if not tokens:
            break
        counts = [request.sampling.prompt_logprobs] * len(tokens)
        scores = score_tokens(logits[: len(tokens)], tokens, counts)
        request.prompt_scores.update(zip(range(first + 1, last + 1), scores, strict=False))


def _keep(request: LlmRequest, first: int, logits: torch.Tensor) -> None:
    if request.prompt_logits is None:
        request.prompt_logits = torch.empty(request.prompt_len, logits.shape[1])
    request.prompt_logits[first : first + len(logits)] = logits


def prompt_logprobs(request: LlmRequest) -> tuple[TokenLogprobs, ...] | None:
    """Of all prompt tokens but the first, once the prompt is written; None if not asked for."""
    scores = request.prompt_scores
    if scores is None or request.sampling.prompt_logprobs is None:
        return None
    return tuple(scores[index] for index in range(1, request.prompt_len))
