# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""What happened to requests since the last record of an iteration."""

from __future__ import annotations

from dataclasses import dataclass, field

from tensorrt_llm._torch.pyexecutor.iteration_stats import IterationCounts
from tensorrt_llm._torch.pyexecutor.live_requests import LiveRequests
from tensorrt_llm._torch.pyexecutor.llm_request import LlmRequest
from tensorrt_llm._torch.pyexecutor.scheduler import ScheduledBatch


@dataclass
class TurnCounts:
    """Counted by the loop as things happen.

    Attributes:
        admitted: Requests that were given blocks.
        queue_ms: How long each of them waited that had none before.
        left: Admitted requests that ended.
        completed: Requests that ended.
        paused: Requests whose blocks were taken.
        with_draft: Requests that ran with a draft.
        drafted: Tokens of drafts.
        accepted: Of these, those that held.
    """

    admitted: int = 0
    queue_ms: list[float] = field(default_factory=list)
    left: int = 0
    completed: int = 0
    paused: int = 0
    with_draft: int = 0
    drafted: int = 0
    accepted: int = 0

    def add_drafts(self, with_draft: int, drafted: int, accepted: int) -> None:
        """Counts the drafts of a step."""
        self.with_draft += with_draft
        self.drafted += drafted
        self.accepted += accepted

    def of_iteration(
        self, batch: ScheduledBatch[LlmRequest], live: LiveRequests, latency_ms: float
    ) -> IterationCounts:
        """The counts of an iteration that ran a batch and has just ended."""
        return IterationCounts(
            latency_ms=latency_ms,
            new_active=self.admitted,
            active=live.num_admitted + self.left,
            completed=self.completed,
            queued=len(live.waiting),
            context_requests=len(batch.context),
            context_tokens=sum(entry.num_tokens for entry in batch.context),
            generation_requests=len(batch.generation),
            paused=self.paused,
            queue_ms=tuple(self.queue_ms),
            with_draft=self.with_draft,
            drafted=self.drafted,
            accepted=self.accepted,
        )
