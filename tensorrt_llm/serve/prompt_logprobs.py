# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""How likely a prompt's tokens were, in the shape in which vLLM's server tells it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache

from tensorrt_llm.executor.result import TokenLogprobs
from tensorrt_llm.serve.openai_protocol import PromptLogprob, PromptLogprobs


def prompt_entries(scores: Sequence[TokenLogprobs], spell: Callable[[int], str]) -> PromptLogprobs:
    """One entry a prompt token.

    Args:
        scores: Of all prompt tokens but the first.
        spell: Gives the text of a token.
    """
    # The same likely tokens stand at many places.
    spelled = lru_cache(maxsize=None)(spell)
    return [None, *(_entry(score, spelled) for score in scores)]


def _entry(score: TokenLogprobs, spell: Callable[[int], str]) -> dict[int, PromptLogprob]:
    """The prompt's own token first, then the likeliest, of which it may be one."""
    own = score.token_id
    likely = {
        token_id: PromptLogprob(logprob=logprob, rank=rank, decoded_token=spell(token_id))
        for rank, (token_id, logprob) in enumerate(score.top, 1)
        if token_id != own
    }
    taken = PromptLogprob(logprob=score.logprob, rank=score.rank, decoded_token=spell(own))
    return {own: taken, **likely}
