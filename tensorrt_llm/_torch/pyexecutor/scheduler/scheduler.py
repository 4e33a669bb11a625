# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Iteration-level scheduling: generation first, then context chunks, under a token budget.

Policy only: it sees how many tokens each request still has to write, and asks ``admit`` whether
the KV pool can take a waiting one. It keeps nothing between steps.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar


class Schedulable(Protocol):
    """What the policy needs to know of a request."""

    @property
    def num_to_write(self) -> int:
        """Tokens whose KV is not in the pool yet."""

    @property
    def missing_items(self) -> Collection[int]:
        """Media items whose encoder inputs are on their way; it runs when there are none."""


RequestT = TypeVar("RequestT", bound=Schedulable)


@dataclass(frozen=True)
class ScheduledRequest(Generic[RequestT]):
    """A request and how many of its tokens run in this step."""

    request: RequestT
    num_tokens: int


@dataclass(frozen=True)
class ScheduledBatch(Generic[RequestT]):
    """One step.

    Attributes:
        context: Requests with a chunk of their prompt.
        generation: Requests with their latest token.
    """

    context: tuple[ScheduledRequest[RequestT], ...]
    generation: tuple[ScheduledRequest[RequestT], ...]

    @property
    def all(self) -> tuple[ScheduledRequest[RequestT], ...]:
        """Context requests, then generation requests: the order of the flattened batch."""
        return self.context + self.generation

    @property
    def num_tokens(self) -> int:
        """Tokens in the step."""
        return sum(scheduled.num_tokens for scheduled in self.all)


@dataclass(frozen=True)
class MicroBatchScheduler(Generic[RequestT]):
    """First come, first served.

    Attributes:
        max_batch_size: Most requests that are admitted at a time.
        max_num_tokens: Most tokens in a step.
        enable_chunked_prefill: Whether a prompt may be split over steps. If not, a context
            request waits for a step that takes all the tokens it still has to write.
    """

    max_batch_size: int
    max_num_tokens: int
    enable_chunked_prefill: bool

    def schedule(
        self,
        generation: Sequence[RequestT],
        context: Sequence[RequestT],
        waiting: deque[RequestT],
        admit: Callable[[RequestT], bool],
    ) -> ScheduledBatch[RequestT]:
        """Chooses the next step.

        Args:
            generation: Admitted requests in the generation phase.
            context: Admitted requests in the context phase, oldest first.
            waiting: Requests not admitted yet, oldest first. Admitted ones are taken off.
            admit: Gives a request its blocks and sets how many tokens it still has to write.
                False if there is no room now; nothing behind it is tried then, so that a large
                request is not overtaken for ever.
        """
        # Admission below keeps the number of running requests within the token budget, so every
        # generation request gets its token in every step.
        budget = self.max_num_tokens - len(generation)
        chosen: list[ScheduledRequest[RequestT]] = []
        for request in context:
            budget = self._give(request, budget, chosen)
        running = len(generation) + len(context)
        most = min(self.max_batch_size, self.max_num_tokens)
        while waiting and budget > 0 and running < most:
            if not admit(waiting[0]):
                break
            budget = self._give(waiting.popleft(), budget, chosen)
            running += 1
        return ScheduledBatch(
            context=tuple(chosen),
            generation=tuple(ScheduledRequest(request, 1) for request in generation),
        )

    def _give(
        self, request: RequestT, budget: int, chosen: list[ScheduledRequest[RequestT]]
    ) -> int:
        """Schedules what fits of a context request; returns the budget left.

        A request that has to run whole and does not fit ends the step: what comes after it must
        not keep it waiting.
        """
        if request.missing_items:
            return budget
        tokens = request.num_to_write
        if tokens > budget:
            if not self.enable_chunked_prefill or budget <= 0:
                return 0
            tokens = budget
        chosen.append(ScheduledRequest(request, tokens))
        return budget - tokens
