# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Beam search as a value: log-probabilities in, the hypotheses that go on and those that ended out.

The rules are those of ``generate(num_beams=..., do_sample=False)`` of transformers for one prompt.
Of the candidates of a step, the likeliest ``width`` that have not ended go on; one that has ended
counts only if it is among the likeliest ``width`` of all. Nothing here knows of requests or blocks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch

from tensorrt_llm.executor.result import TokenLogprobs


@dataclass(frozen=True)
class BeamOptions:
    """How to search.

    Attributes:
        width: Hypotheses that are kept, at least 1.
        max_new_tokens: Most tokens of one.
        stop_token_ids: Tokens that end one.
        length_penalty: The score of one that ended is its log-probability divided by its length to
            this power.
        early_stopping: Whether to stop once ``width`` have ended. False also stops when the best
            that goes on scores no better at its present length than the worst that ended;
            ``"never"`` when it could not at any length.
        num_top: How many of the likeliest tokens to tell of beside each token.
    """

    width: int
    max_new_tokens: int
    stop_token_ids: frozenset[int]
    length_penalty: float = 1.0
    early_stopping: bool | Literal["never"] = False
    num_top: int = 0


@dataclass(frozen=True)
class Hypothesis:
    """A beginning of an answer, or a whole one.

    Attributes:
        tokens: Its tokens with their log-probabilities.
        total: The sum of these, in float32.
    """

    tokens: tuple[TokenLogprobs, ...] = ()
    total: float = 0.0

    @property
    def token_ids(self) -> list[int]:
        """Its tokens."""
        return [token.token_id for token in self.tokens]


class BeamSearch:
    """One search.

    Attributes:
        running: Those that go on, likeliest first: at the start the empty one, then ``width``.
        finished: Those that ended, with their scores, best first; at most ``width``.
        done: Whether nothing that goes on can change ``finished``.
    """

    def __init__(self, options: BeamOptions) -> None:
        self._options = options
        self.running: list[Hypothesis] = [Hypothesis()]
        self.finished: list[tuple[float, Hypothesis]] = []
        self.done = False

    @torch.inference_mode()
    def step(self, log_probs: torch.Tensor) -> list[int]:
        """Takes one more token.

        Args:
            log_probs: float32 ``[len(running), vocab_size]``: of the token after each.

        Returns:
            For each that goes on now, the index of what it continues among those before. Empty
            when the length is reached.
        """
        options, before = self._options, self.running
        length = len(before[0].tokens) + 1
        at_limit = length >= options.max_new_tokens
        candidates = self._candidates(log_probs)
        self.running, parents = [], []
        for rank, (parent, token, total) in enumerate(candidates):
            longer = Hypothesis((*before[parent].tokens, token), total)
            if not (at_limit or token.token_id in options.stop_token_ids):
                if len(self.running) < options.width:
                    self.running.append(longer)
                    parents.append(parent)
            elif rank < options.width:
                self.finished.append((total / length**options.length_penalty, longer))
        # Stable: of equal ones the earlier stays.
        self.finished.sort(key=lambda one: -one[0])
        del self.finished[options.width :]
        self.done = at_limit or not self._can_improve(length)
        return parents

    def _candidates(self, log_probs: torch.Tensor) -> list[tuple[int, TokenLogprobs, float]]:
        """The likeliest continuations: as many as leave ``width`` whichever of them ended."""
        options = self._options
        totals = torch.tensor([one.total for one in self.running], device=log_probs.device)
        sums = (log_probs + totals[:, None]).flatten()
        keep = max(2, 1 + len(options.stop_token_ids)) * options.width
        best = sums.topk(min(keep, len(sums)))
        top = log_probs.topk(min(options.num_top, log_probs.shape[-1]))
        top_ids, top_values = top.indices.tolist(), top.values.tolist()
        own = log_probs.flatten()[best.indices].tolist()
        found = []
        for flat, logprob, total in zip(
            best.indices.tolist(), own, best.values.tolist(), strict=True
        ):
            parent, token_id = divmod(flat, log_probs.shape[-1])
            likeliest = tuple(zip(top_ids[parent], top_values[parent], strict=True))
            place = 1 + int((log_probs[parent] > logprob).sum())
            token = TokenLogprobs(token_id, logprob, likeliest, place)
            found.append((parent, token, total))
        return found

    def _can_improve(self, length: int) -> bool:
        options = self._options
        if len(self.finished) < options.width:
            return True
        if options.early_stopping is True:
            return False
        longest = options.early_stopping == "never" and options.length_penalty > 0
        reached = options.max_new_tokens if longest else length
        return self.running[0].total / reached**options.length_penalty > self.finished[-1][0]
