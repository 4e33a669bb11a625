# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Who may hold KV blocks: how much is promised at admission, and who makes room when it runs out.

``GUARANTEED_NO_EVICT`` promises room to the last token, so what is admitted can finish.
``MAX_UTILIZATION`` promises what is needed now; when the pool has no more, the request that is last
in the order of admission is paused: its blocks go back, what was committed stays findable, and it
is admitted again in its old place and recomputes what was given up meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias, TypeVar

CapacityPolicyName: TypeAlias = Literal["GUARANTEED_NO_EVICT", "MAX_UTILIZATION"]


class Holder(Protocol):
    """What the policies need to know of a request."""

    @property
    def order(self) -> tuple[float, int]:
        """Place in the order of admission; smaller goes first."""

    @property
    def num_new_left(self) -> int:
        """Most tokens it may still generate."""


RequestT = TypeVar("RequestT", bound=Holder)


class CapacityPolicy(Protocol):
    """Decides on KV blocks; keeps nothing between steps."""

    def promise(self, request: Holder) -> int:
        """New tokens for which an admission asks room, at least 1."""

    def make_room(
        self,
        growing: Sequence[RequestT],
        holding: Sequence[RequestT],
        extend: Callable[[RequestT], bool],
        pause: Callable[[RequestT], None],
    ) -> None:
        """Sees that every growing request has room for its newest token, or is paused.

        Args:
            growing: Requests in the generation phase.
            holding: All admitted requests.
            extend: Makes the room; False if the pool has none now.
            pause: Takes all blocks from a request.
        """


@dataclass(frozen=True)
class GuaranteedNoEvict:
    """Admits only what can finish; nothing is ever paused."""

    def promise(self, request: Holder) -> int:
        """All that it may generate."""
        return request.num_new_left

    def make_room(
        self,
        growing: Sequence[RequestT],
        holding: Sequence[RequestT],
        extend: Callable[[RequestT], bool],
        pause: Callable[[RequestT], None],
    ) -> None:
        """Nothing to do: the room is there."""


@dataclass(frozen=True)
class MaxUtilization:
    """Admits what fits now and pauses the last in order when the pool runs out.

    The first in order is paused only if it is alone, and a request that does not fit into the
    pool alone is never admitted: so the first always advances, and all finish.

    Attributes:
        tokens_per_block: An admission asks room for so many new tokens, so that a request that
            comes back does some work before it can be paused again.
    """

    tokens_per_block: int

    def promise(self, request: Holder) -> int:
        """A block's worth."""
        return min(request.num_new_left, self.tokens_per_block)

    def make_room(
        self,
        growing: Sequence[RequestT],
        holding: Sequence[RequestT],
        extend: Callable[[RequestT], bool],
        pause: Callable[[RequestT], None],
    ) -> None:
        """Extends in order, pausing from the end of the order until it is possible."""
        victims: list[RequestT] | None = None
        paused: set[int] = set()
        for request in sorted(growing, key=lambda one: one.order):
            while id(request) not in paused and not extend(request):
                if victims is None:
                    victims = sorted(holding, key=lambda one: one.order)
                victim = victims.pop()
                paused.add(id(victim))
                pause(victim)


def capacity_policy(name: CapacityPolicyName, tokens_per_block: int) -> CapacityPolicy:
    """The policy of that name."""
    if name == "MAX_UTILIZATION":
        return MaxUtilization(tokens_per_block)
    return GuaranteedNoEvict()
