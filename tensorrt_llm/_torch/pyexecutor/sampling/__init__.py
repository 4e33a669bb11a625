# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Parts of sampling: what shapes logits, how a token is drawn from them, and beam search."""

from tensorrt_llm._torch.pyexecutor.sampling.beams import (
    BeamOptions,
    BeamSearch,
    Hypothesis,
)
from tensorrt_llm._torch.pyexecutor.sampling.draw import (
    DrawOptions,
    draw_tokens,
    token_probabilities,
    uniform,
)
from tensorrt_llm._torch.pyexecutor.sampling.score import score_tokens
from tensorrt_llm._torch.pyexecutor.sampling.shape import LogitChanges, PenaltyState

__all__ = [
    "BeamOptions",
    "BeamSearch",
    "DrawOptions",
    "Hypothesis",
    "LogitChanges",
    "PenaltyState",
    "draw_tokens",
    "score_tokens",
    "token_probabilities",
    "uniform",
]
