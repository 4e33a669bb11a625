# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""The requests that have not ended, each on the list of its state.

Only this room moves a request from list to list, so a request is on exactly one.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator

from tensorrt_llm._torch.pyexecutor.llm_request import LlmRequest, RequestState
from tensorrt_llm._torch.pyexecutor.scheduler import OrderedRequests


class LiveRequests:
    """Lists by state, and who has run out of time.

    Attributes:
        waiting: Not admitted: new ones, and paused ones at their old place.
        context: Admitted, writing what is known.
        generation: Admitted, a token a step.
        num_paused: Of those waiting, the paused ones.
    """

    def __init__(self) -> None:
        self.waiting: OrderedRequests[LlmRequest] = OrderedRequests()
        self.context: OrderedRequests[LlmRequest] = OrderedRequests()
        self.generation: list[LlmRequest] = []
        self.num_paused = 0
        self._by_id: dict[int, LlmRequest] = {}
        self._deadlines: list[tuple[float, int]] = []

    def __len__(self) -> int:
        return len(self._by_id)

    def __iter__(self) -> Iterator[LlmRequest]:
        return iter(tuple(self._by_id.values()))

    def get(self, request_id: int) -> LlmRequest | None:
        """The request of that number, if it has not ended."""
        return self._by_id.get(request_id)

    @property
    def ready(self) -> tuple[LlmRequest, ...]:
        """Of ``context``, those that do not wait for items."""
        return tuple(one for one in self.context if one.state is RequestState.CONTEXT)

    @property
    def num_waiting_for_items(self) -> int:
        """Of ``context``, those that wait for items."""
        return sum(one.state is RequestState.WAITING_ITEMS for one in self.context)

    @property
    def next_deadline(self) -> float | None:
        """When the next deadline may be over, in seconds of ``time.monotonic``."""
        return self._deadlines[0][0] if self._deadlines else None

    @property
    def num_admitted(self) -> int:
        """Requests that hold blocks."""
        return len(self.context) + len(self.generation)

    def add(self, request: LlmRequest) -> None:
        """A new request: it waits."""
        self._by_id[request.request_id] = request
        self.waiting.add(request)
        if request.deadline is not None:
            heapq.heappush(self._deadlines, (request.deadline, request.request_id))

    def add_forked(self, request: LlmRequest) -> None:
        """A new request that begins with its prompt written."""
        self.add(request)
        self.admit(request)

    def admit(self, request: LlmRequest) -> None:
        """A waiting request got its blocks."""
        self.waiting.remove(request)
        self.num_paused -= request.state is RequestState.PAUSED
        request.state = RequestState.CONTEXT
        self.context.add(request)

    def hold(self, request: LlmRequest) -> None:
        """A request that comes with another holds its blocks, and runs when that one has."""
        self._by_id[request.request_id] = request
        request.state = RequestState.HELD
        self.context.add(request)

    def wait_for_items(self, request: LlmRequest, missing: set[int]) -> None:
        """A request in its context phase cannot go on without these items."""
        request.state = RequestState.WAITING_ITEMS
        request.missing_items = missing

    def provide_item(self, request: LlmRequest, index: int) -> None:
        """One of them is there; with the last the request can go on."""
        request.missing_items.discard(index)
        if request.state is RequestState.WAITING_ITEMS and not request.missing_items:
            request.state = RequestState.CONTEXT

    def to_generation(self, request: LlmRequest) -> None:
        """All its known tokens are written."""
        if request.state in (RequestState.CONTEXT, RequestState.HELD):
            self.context.remove(request)
            self.generation.append(request)
            request.state = RequestState.GENERATION

    def pause(self, request: LlmRequest) -> None:
        """An admitted request gave its blocks back."""
        self._take_off(request)
        request.state = RequestState.PAUSED
        # Once admitted again it finds out anew what it lacks.
        request.missing_items.clear()
        self.num_paused += 1
        self.waiting.add(request)

    def remove(self, request: LlmRequest) -> None:
        """A request ended."""
        self._take_off(request)
        request.state = RequestState.FINISHED
        del self._by_id[request.request_id]

    def let_go(self, request: LlmRequest) -> None:
        """A request that came with another goes with it; it may come again."""
        self._take_off(request)
        request.state = RequestState.WAITING
        del self._by_id[request.request_id]

    def expired(self, now: float) -> Iterator[LlmRequest]:
        """Takes note of, and gives, each request whose deadline is over."""
        while self._deadlines and self._deadlines[0][0] <= now:
            request = self._by_id.get(heapq.heappop(self._deadlines)[1])
            if request is not None:
                yield request

    def _take_off(self, request: LlmRequest) -> None:
        if request.in_context:
            self.context.remove(request)
        elif request.state is RequestState.GENERATION:
            self.generation.remove(request)
        else:
            self.waiting.remove(request)
            self.num_paused -= request.state is RequestState.PAUSED
