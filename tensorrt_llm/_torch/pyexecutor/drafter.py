# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Gives requests of a step drafts, out of what the step has left."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tensorrt_llm._torch.pyexecutor.drafts import PromptLookup, TokenHistory
from tensorrt_llm._torch.pyexecutor.llm_request import LlmRequest
from tensorrt_llm._torch.pyexecutor.scheduler import ScheduledBatch, ScheduledRequest


class Drafter:
    """Owned by the loop.

    Drafts take nothing from anybody: neither tokens of the step that a prompt could have had, nor
    blocks that are not promised to the request already.

    Args:
        lookup: Finds drafts; None gives none.
        max_num_tokens: Most tokens in a step.
    """

    def __init__(self, lookup: PromptLookup | None, max_num_tokens: int) -> None:
        self._lookup = lookup
        self._max_num_tokens = max_num_tokens
        self._drafted = self._accepted = 0

    def add(self, batch: ScheduledBatch[LlmRequest]) -> ScheduledBatch[LlmRequest]:
        """The batch with drafts for its generation requests."""
        lookup = self._lookup
        if lookup is None or not batch.generation:
            return batch
        left = self._max_num_tokens - batch.num_tokens
        generation: list[ScheduledRequest[LlmRequest]] = []
        for entry in batch.generation:
            draft = _draft(lookup, entry.request, left)
            left -= len(draft)
            if draft:
                entry = replace(entry, num_tokens=1 + len(draft), draft=draft)
            generation.append(entry)
        return replace(batch, generation=tuple(generation))

    def note(self, drafted: int, accepted: int) -> None:
        """Counts what became of a step's drafts."""
        self._drafted += drafted
        self._accepted += accepted

    def totals(self) -> Mapping[str, int]:
        """Since start, in the words of the iteration statistics."""
        return {"numDraftTokens": self._drafted, "numAcceptedTokens": self._accepted}


def _draft(lookup: PromptLookup, request: LlmRequest, left: int) -> tuple[int, ...]:
    # The token after an accepted draft comes without one, and the last of an answer needs no slot.
    room = request.num_promised - request.num_known
    most = min(left, room, request.num_new_left - 1)
    if most < 1 or not _independent(request):
        return ()
    if request.history is None:
        request.history = TokenHistory(request.prompt_ids, request.max_new_tokens)
    return lookup.propose(request.history.upto(request.output_ids), most)


def _independent(request: LlmRequest) -> bool:
    """Whether logits alone, and how many tokens there are, decide on the next token.

    With other options the tokens before it do too, and a draft's are not the answer's yet.
    """
    if request.beams:
        return False  # which token is the next is not decided alone
    return not (request.sampling.penalizes or request.bad_words or request.guide is not None)
