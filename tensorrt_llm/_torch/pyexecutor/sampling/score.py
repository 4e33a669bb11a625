# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Log-probabilities to report."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from tensorrt_llm.executor.result import TokenLogprobs


def score_tokens(
    logits: torch.Tensor, token_ids: Sequence[int], counts: Sequence[int]
) -> list[TokenLogprobs]:
    """Log-probabilities of tokens beside those of the likeliest.

    Args:
        logits: float32 ``[rows, vocab_size]``.
        token_ids: One a row.
        counts: How many of the likeliest tokens to give, one a row.
    """
    scores = logits.log_softmax(dim=-1)
    tokens = torch.tensor(token_ids, device=logits.device)[:, None]
    taken = scores.gather(-1, tokens)
    own, ranks = taken[:, 0].tolist(), ((scores > taken).sum(dim=-1) + 1).tolist()
    best = scores.topk(min(max(counts), logits.shape[-1]))
    ids, values = best.indices.tolist(), best.values.tolist()
    return [
        TokenLogprobs(
            token_id=token_id,
            logprob=own[row],
            top=tuple(zip(ids[row][:count], values[row][:count], strict=True)),
            rank=ranks[row],
        )
        for row, (token_id, count) in enumerate(zip(token_ids, counts, strict=True))
    ]
