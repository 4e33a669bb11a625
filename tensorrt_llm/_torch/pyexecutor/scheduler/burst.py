# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Equal beginnings are computed once: who would compute the same tokens waits for who does.

A waiting request waits only for an admitted one that is in its context phase, and only until that
one has written the tokens in common or left the phase in whatever way. The one waited for never
waits for anybody, so nobody waits for ever; when it goes, the first of those who waited is next.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from tensorrt_llm._torch.pyexecutor.scheduler.shared_prefix import PrefixIndex, PromptContent


class Sharing(Hashable, Protocol):
    """What the policy needs to know of a request."""

    @property
    def content(self) -> PromptContent | None:
        """Of its prompt; None if it shares nothing."""

    @property
    def num_known(self) -> int:
        """Tokens that it has to write before it can go on."""

    @property
    def num_written(self) -> int:
        """Tokens whose KV is in the pool."""

    @property
    def in_context(self) -> bool:
        """Whether it is admitted and has not written its prompt yet."""


RequestT = TypeVar("RequestT", bound=Sharing)


@dataclass(frozen=True)
class _Wait(Generic[RequestT]):
    leader: RequestT
    until: int  # tokens written

    @property
    def over(self) -> bool:
        return not self.leader.in_context or self.leader.num_written >= self.until


@dataclass(frozen=True)
class _Found(Generic[RequestT]):
    request: RequestT | None = None
    tokens: int = 0


class BurstGate(Generic[RequestT]):
    """Decides who waits for whom.

    Args:
        tokens_per_block: Tokens of a block.
        share_parts: Whether parts of blocks are shared too.
    """

    def __init__(self, tokens_per_block: int, *, share_parts: bool) -> None:
        self._tokens_per_block = tokens_per_block
        self._share_parts = share_parts
        self._running: PrefixIndex[RequestT] = PrefixIndex()
        self._waits: dict[RequestT, _Wait[RequestT]] = {}

    @property
    def num_waiting(self) -> int:
        """Requests that were told to wait when they were last asked for."""
        return len(self._waits)

    def enter(self, request: RequestT) -> None:
        """A request was admitted: others may wait for it, or share what it has written."""
        if request.content is not None:
            self._running.add(request, request.content)

    def leave(self, request: RequestT) -> None:
        """A request ended, at whatever stage, or was paused."""
        self._running.remove(request)
        self._waits.pop(request, None)

    def forget(self) -> None:
        """Nothing that runs now will be shared."""
        self._running = PrefixIndex()
        self._waits.clear()

    def must_wait(self, request: RequestT, probe: Callable[[], int]) -> bool:
        """Whether a request that is not admitted should wait.

        It pays if a block at least, or all but the last token of the prompt, will be found
        afterwards and is not there now.

        Args:
            request: It.
            probe: Tells how many of its tokens the cache has now.
        """
        content = request.content
        if content is None:
            return False
        wait = self._waits.pop(request, None)
        if wait is None or wait.over:
            ready, coming = self._search(request, content)
            if coming.request is None or coming.tokens <= ready.tokens:
                return False
            have = max(ready.tokens, probe())
            most = min(request.num_known - 1, content.shareable)
            if coming.tokens <= have or coming.tokens - have < min(
                self._tokens_per_block, most - have
            ):
                return False
            wait = _Wait(coming.request, coming.tokens)
        self._waits[request] = wait
        return True

    def tail_source(self, request: RequestT) -> RequestT | None:
        """Whose written tokens begin most like the request's prompt."""
        if request.content is None or not self._share_parts:
            return None
        ready, _ = self._search(request, request.content)
        return ready.request

    def _search(
        self, request: RequestT, content: PromptContent
    ) -> tuple[_Found[RequestT], _Found[RequestT]]:
        """Who has written the most of a prompt's beginning, and who will have."""
        most = min(request.num_known - 1, content.shareable)
        ready: _Found[RequestT] = _Found()
        coming: _Found[RequestT] = _Found()
        for other, common in self._running.nearest(content):
            tokens = min(common, most)
            if not self._share_parts:
                tokens -= tokens % self._tokens_per_block
            written = min(tokens, other.num_written)
            if written > ready.tokens:
                ready = _Found(other, written)
                if written == most:
                    break
            if other.in_context and tokens > coming.tokens:
                coming = _Found(other, tokens)
        return ready, coming
