# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Iteration-level scheduling: generation first, then context chunks, under a token budget.

Policy only: it sees how many tokens each request still has to write, and asks ``admit`` whether
a waiting one may start. It keeps nothing between steps.

Chunks are given in the order of admission, with one exception: half of the budget may go to
requests that complete their prompt with it, fewest tokens first. So a short request does not wait
for a long prefill to end, and a long one gets at least half of every step.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar


class Schedulable(Protocol):
    """What the policy needs to know of a request."""

    @property
    def num_to_write(self) -> int:
        """Tokens whose KV is not in the pool yet."""

    def largest_chunk(self, limit: int) -> int:
        """The most of them, up to the limit, that may run in one step; 0 if none can."""


class Admission(enum.Enum):
    """What became of a waiting request.

    Attributes:
        ADMITTED: It has its blocks, and ``num_to_write`` says what is left to do.
        NO_ROOM: There is no room now; nobody behind it may take what it waits for.
        LATER: Not now, for a reason that does not concern those behind it.
    """

    ADMITTED = enum.auto()
    NO_ROOM = enum.auto()
    LATER = enum.auto()


RequestT = TypeVar("RequestT", bound=Schedulable)


@dataclass(frozen=True)
class ScheduledRequest(Generic[RequestT]):
    """A request and how many of its tokens run in this step.

    Attributes:
        request: It.
        num_tokens: Tokens that run, the draft's included.
        draft: Guesses that run behind its last known token.
    """

    request: RequestT
    num_tokens: int
    draft: tuple[int, ...] = ()

    @property
    def num_scored(self) -> int:
        """Tokens after which something is chosen: the last known one and the draft's."""
        return 1 + len(self.draft)


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
    """Fills steps.

    Attributes:
        max_batch_size: Most requests that are admitted at a time.
        max_num_tokens: Most tokens in a step.
        enable_chunked_prefill: Whether a prompt may be split over steps. If not, a context
            request waits for a step that takes all the tokens it still has to write, if any can.
    """

    max_batch_size: int
    max_num_tokens: int
    enable_chunked_prefill: bool

    @property
    def max_running(self) -> int:
        """Most requests that may be admitted at a time, so that each gets its token in a step."""
        return min(self.max_batch_size, self.max_num_tokens)

    def schedule(
        self,
        generation: Sequence[RequestT],
        context: Sequence[RequestT],
        waiting: Iterable[RequestT],
        admit: Callable[[RequestT], Admission],
        num_held: int = 0,
    ) -> ScheduledBatch[RequestT]:
        """Chooses the next step.

        Args:
            generation: Admitted requests in the generation phase.
            context: Admitted requests in the context phase, in the order of admission.
            waiting: Requests not admitted yet, in order.
            admit: Lets a waiting request start if it can.
            num_held: Admitted requests that cannot run now and are none of these; they count.
        """
        # Admission below keeps the number of running requests within the token budget, so every
        # generation request gets its token in every step.
        chunks = _Chunks[RequestT](self.max_num_tokens - len(generation))
        running = len(generation) + len(context) + num_held
        most = self.max_running

        def admitted() -> Iterable[RequestT]:
            nonlocal running
            for request in waiting:
                if chunks.left <= 0 or running >= most:
                    return
                outcome = admit(request)
                if outcome is Admission.NO_ROOM:
                    return
                if outcome is Admission.ADMITTED:
                    running += 1
                    yield request

        if self.enable_chunked_prefill:
            self._split(context, admitted(), chunks)
        else:
            self._whole(context, admitted(), chunks)
        return ScheduledBatch(
            context=chunks.result(),
            generation=tuple(ScheduledRequest(request, 1) for request in generation),
        )

    def _whole(
        self, context: Sequence[RequestT], admitted: Iterable[RequestT], chunks: _Chunks[RequestT]
    ) -> None:
        """Prompts in order. One that does not fit ends the step, or others would keep it out.

        A request that was paused writes its answer again too, so it may need more than any step
        has. It is split, or it would wait for ever, and all behind it.
        """
        for requests in (context, admitted):
            for request in requests:
                if chunks.give_whole(request):
                    continue
                if chunks.empty and request.num_to_write > self.max_num_tokens:
                    chunks.give(request)
                chunks.left = 0
                return

    def _split(
        self, context: Sequence[RequestT], admitted: Iterable[RequestT], chunks: _Chunks[RequestT]
    ) -> None:
        """Half of the step to the first in order, what completes a prompt next, then in order."""
        in_order = list(context)
        if in_order:
            first = in_order[0]
            reserve = chunks.left - (chunks.left + 1) // 2
            chunks.left -= reserve
            started = chunks.give(first) > 0
            chunks.left += reserve
            if not started and chunks.give(first) == 0:
                # It has to run whole and needs the step for itself: nothing more may come before.
                chunks.left = 0
                return
        for request in sorted(in_order[1:], key=lambda one: one.num_to_write):
            if not chunks.give_whole(request):
                break
        for request in admitted:
            in_order.append(request)
            if len(in_order) == 1:
                chunks.give(request)
            else:
                chunks.give_whole(request)
        for request in in_order:
            if chunks.left > 0 and chunks.give(request) == 0 and not chunks.has(request):
                return


class _Chunks(Generic[RequestT]):
    """The tokens given so far, and how many are left to give."""

    def __init__(self, budget: int) -> None:
        self.left = budget
        self._given: dict[int, tuple[RequestT, int]] = {}

    @property
    def empty(self) -> bool:
        """Whether nobody has a chunk."""
        return not self._given

    def has(self, request: RequestT) -> bool:
        """Whether a request has a chunk."""
        return id(request) in self._given

    def give(self, request: RequestT) -> int:
        """Makes a request's chunk as large as it may be now; returns how much it grew."""
        _, had = self._given.get(id(request), (request, 0))
        size = min(request.num_to_write, request.largest_chunk(had + max(self.left, 0)))
        if size <= had:
            return 0
        self._given[id(request)] = (request, size)
        self.left -= size - had
        return size - had

    def give_whole(self, request: RequestT) -> bool:
        """Gives a request all that it has to write, if there is as much."""
        if request.num_to_write > self.left:
            return False
        return self.give(request) > 0

    def result(self) -> tuple[ScheduledRequest[RequestT], ...]:
        """The chunks, in the order in which they were begun."""
        return tuple(ScheduledRequest(*given) for given in self._given.values())
