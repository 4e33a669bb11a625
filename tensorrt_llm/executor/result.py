# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""What a caller gets back: an answer that grows while the engine works.

The engine's loop pushes one immutable ``GenerationUpdate`` a step; whoever waits for the answer,
in a thread or in an event loop, turns updates into text. Detokenisation therefore never runs in
the engine's loop.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Generator, Iterator
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import torch

from tensorrt_llm.executor.detokenizer import IncrementalDetokenizer, Tokenizer
from tensorrt_llm.executor.request import GenerationRequest

FinishReason: TypeAlias = Literal["stop", "length", "cancelled"]


@dataclass(frozen=True)
class TokenLogprobs:
    """Log-probabilities at one generated token.

    Attributes:
        token_id: The token taken.
        logprob: Its natural-log probability under the model.
        top: ``(token_id, logprob)`` of the likeliest tokens, likeliest first.
    """

    token_id: int
    logprob: float
    top: tuple[tuple[int, float], ...]


@dataclass(frozen=True, eq=False)
class GenerationUpdate:
    """What one step brought to one request.

    Attributes:
        token_ids: New tokens; empty for a failed or cancelled request.
        cached_tokens: Prompt tokens whose KV was found in the cache.
        logprobs: One a new token, if asked for.
        logits: float32 ``[len(token_ids), vocab_size]``, if asked for.
        finish_reason: Set on the last update of a request that did not fail.
        stop_reason: The stop token id the caller named, if that ended it.
        error: Set on the last update of a request that failed.
    """

    token_ids: tuple[int, ...] = ()
    cached_tokens: int = 0
    logprobs: tuple[TokenLogprobs, ...] | None = None
    logits: torch.Tensor | None = None
    finish_reason: FinishReason | None = None
    stop_reason: int | None = None
    error: Exception | None = None

    @property
    def last(self) -> bool:
        """Whether nothing follows."""
        return self.finish_reason is not None or self.error is not None


@dataclass
class CompletionOutput:
    """One answer. The ``_diff`` fields hold what the latest update added.

    Attributes:
        index: Number of the answer, 0.
        text: The answer so far.
        token_ids: Its tokens, the stop token included.
        finish_reason: ``"stop"``, ``"length"`` or ``"cancelled"``; None while unfinished.
        stop_reason: The stop text or stop token id of the caller that ended it.
        logprobs: One a token, if asked for.
        generation_logits: float32 ``[length, vocab_size]``, if asked for, once finished.
    """

    index: int = 0
    text: str = ""
    token_ids: list[int] = field(default_factory=list)
    finish_reason: FinishReason | None = None
    stop_reason: int | str | None = None
    logprobs: list[TokenLogprobs] | None = None
    generation_logits: torch.Tensor | None = field(default=None, repr=False)
    text_diff: str = ""
    token_ids_diff: list[int] = field(default_factory=list)
    logprobs_diff: list[TokenLogprobs] | None = None

    @property
    def length(self) -> int:
        """Number of tokens."""
        return len(self.token_ids)


@dataclass
class RequestTimes:
    """Monotonic seconds (``time.monotonic``) at which things happened.

    Attributes:
        arrival: Handed to the executor.
        first_token: First update with a token; None before.
        finished: Last update; None before.
    """

    arrival: float
    first_token: float | None = None
    finished: float | None = None

    @property
    def time_to_first_token(self) -> float | None:
        """Seconds from arrival to the first token."""
        return None if self.first_token is None else self.first_token - self.arrival


class GenerationResult:
    """The answer to one request; made by the executor, not by users.

    Await it, iterate it (``async for`` or ``for``) for each update, or call ``result()``. One
    consumer at a time. A failed request raises its error from whichever is used.

    Attributes:
        request_id: Number of the request.
        prompt: The prompt text, if there was one.
        prompt_token_ids: The prompt with placeholders expanded.
        outputs: One answer.
        cached_tokens: Prompt tokens found in the cache.
        finished: Whether the answer is complete.
        error: Why it failed, if it did.
        times: When things happened.
    """

    def __init__(
        self,
        request_id: int,
        request: GenerationRequest,
        tokenizer: Tokenizer | None,
        cancel: Callable[[int], None],
    ) -> None:
        sampling = request.sampling_params
        self.request_id = request_id
        self.request = request
        self.outputs = [CompletionOutput(logprobs=None if sampling.logprobs is None else [])]
        self.cached_tokens = 0
        self.finished = False
        self.error: Exception | None = None
        self.times = RequestTimes(arrival=time.monotonic())
        self._cancel = cancel
        self._logits: list[torch.Tensor] = []
        self._detokenizer: IncrementalDetokenizer | None = None
        if tokenizer is not None:
            self._detokenizer = IncrementalDetokenizer(
                tokenizer,
                stop=sampling.stop_list,
                include_stop=sampling.include_stop_str_in_output,
                skip_special_tokens=sampling.skip_special_tokens,
            )
        self._updates: deque[GenerationUpdate] = deque()
        self._arrived = threading.Condition()
        self._wakeup: tuple[asyncio.AbstractEventLoop, asyncio.Event] | None = None

    @property
    def prompt(self) -> str | None:
        """The prompt text, if there was one."""
        return self.request.prompt.text

    @property
    def prompt_token_ids(self) -> list[int]:
        """The prompt's tokens with every placeholder expanded."""
        return self.request.prompt.token_ids.tolist()

    def push(self, update: GenerationUpdate) -> None:
        """Called by the engine's loop, once a step and never after the last update."""
        now = time.monotonic()
        if update.token_ids and self.times.first_token is None:
            self.times.first_token = now
        if update.last:
            self.times.finished = now
        with self._arrived:
            self._updates.append(update)
            self._arrived.notify_all()
            wakeup = self._wakeup
        if wakeup is not None:
            loop, event = wakeup
            try:
                loop.call_soon_threadsafe(event.set)
            except RuntimeError:  # the waiting event loop was closed: nobody waits any more
                self.abort()

    def abort(self) -> None:
        """Gives the request up. The engine drops it within one step; the answer ends as it is."""
        if not self.finished:
            self._cancel(self.request_id)

    def result(self, timeout: float | None = None) -> GenerationResult:
        """Waits for the complete answer.

        Args:
            timeout: Most seconds to wait.

        Raises:
            TimeoutError: If the answer is not complete in time. The request goes on.
            TrtllmError: If the request failed.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        while not self.finished:
            self._take(self._wait(deadline))
        return self

    async def aresult(self) -> GenerationResult:
        """Like ``result``, without blocking the event loop."""
        async for _ in self:
            pass
        return self

    def __await__(self) -> Generator[None, None, GenerationResult]:
        return self.aresult().__await__()

    def __iter__(self) -> Iterator[GenerationResult]:
        while not self.finished:
            self._take(self._wait(None))
            yield self

    async def __aiter__(self) -> AsyncIterator[GenerationResult]:
        while not self.finished:
            self._take(await self._wait_async())
            yield self

    def _wait(self, deadline: float | None) -> list[GenerationUpdate]:
        with self._arrived:
            left = None if deadline is None else deadline - time.monotonic()
            if not self._arrived.wait_for(lambda: bool(self._updates), left):
                raise TimeoutError(f"request {self.request_id} is not finished yet")
            return self._drain()

    async def _wait_async(self) -> list[GenerationUpdate]:
        loop = asyncio.get_running_loop()
        while True:
            with self._arrived:
                if self._wakeup is None or self._wakeup[0] is not loop:
                    self._wakeup = (loop, asyncio.Event())
                event = self._wakeup[1]
                event.clear()
                if self._updates:
                    return self._drain()
            await event.wait()

    def _drain(self) -> list[GenerationUpdate]:
        updates = list(self._updates)
        self._updates.clear()
        return updates

    def _take(self, updates: list[GenerationUpdate]) -> None:
        """Brings the answer up to date with all that has arrived, as one update."""
        output = self.outputs[0]
        text_before, tokens_before = len(output.text), len(output.token_ids)
        for update in updates:
            if not self.finished:
                self._apply(update, output)
        output.text_diff = output.text[text_before:]
        output.token_ids_diff = output.token_ids[tokens_before:]
        output.logprobs_diff = output.logprobs and output.logprobs[tokens_before:]
        if self.error is not None:
            raise self.error

    def _apply(self, update: GenerationUpdate, output: CompletionOutput) -> None:
        self.cached_tokens = max(self.cached_tokens, update.cached_tokens)
        if update.logits is not None:
            self._logits.append(update.logits)
        if self._add_tokens(update, output):
            output.finish_reason = "stop"
            output.stop_reason = self._detokenizer.stopped_at if self._detokenizer else None
            if not update.last:
                self._cancel(self.request_id)
        else:
            output.finish_reason, output.stop_reason = update.finish_reason, update.stop_reason
            self.error = update.error
        self.finished = output.finish_reason is not None or self.error is not None
        if self._detokenizer is not None:
            if self.finished:
                self._detokenizer.finish()
            output.text = self._detokenizer.text
        if self.finished and self._logits:
            output.generation_logits = torch.cat(self._logits)[: output.length]

    def _add_tokens(self, update: GenerationUpdate, output: CompletionOutput) -> bool:
        """Takes an update's tokens up to a stop text; tells whether one was met."""
        for index, token_id in enumerate(update.token_ids):
            output.token_ids.append(token_id)
            if update.logprobs is not None and output.logprobs is not None:
                output.logprobs.append(update.logprobs[index])
            if self._detokenizer is not None and self._detokenizer.add(token_id):
                return True
        return False
