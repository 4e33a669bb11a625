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
from collections.abc import AsyncIterator, Callable, Generator, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, TypeAlias

import msgspec
import torch

from tensorrt_llm.executor.detokenizer import IncrementalDetokenizer, Tokenizer
from tensorrt_llm.executor.request import GenerationRequest
from tensorrt_llm.executor.unshared import UnsharedReason
from tensorrt_llm.executor.wakeups import Wakeups
from tensorrt_llm.sampling_params import SamplingParams

FinishReason: TypeAlias = Literal["stop", "length", "cancelled"]


@dataclass(frozen=True)
class TokenLogprobs:
    """Log-probabilities at one token.

    Attributes:
        token_id: The token taken, or of the prompt.
        logprob: Its natural-log probability under the model.
        top: ``(token_id, logprob)`` of the likeliest tokens, likeliest first.
        rank: Its place among all tokens, likeliest first, from 1. Equally likely ones share it.
    """

    token_id: int
    logprob: float
    top: tuple[tuple[int, float], ...]
    rank: int


class StageTimes(NamedTuple):
    """When the engine did what, in seconds of ``time.monotonic``, which its process shares.

    Attributes:
        admitted: It was given its place in the KV pool.
        encoded: The first of its media items began to be encoded, the last was; None if none was.
    """

    admitted: float
    encoded: tuple[float, float] | None = None


class GenerationUpdate(msgspec.Struct, frozen=True, eq=False):
    """What one step brought to one answer of a request.

    One is made for every token: a struct costs about a fifth of a frozen dataclass.

    Attributes:
        token_ids: New tokens; empty for a failed or cancelled request.
        cached_tokens: Prompt tokens whose KV was found in the cache.
        logprobs: One a new token, if asked for.
        logits: float32 ``[len(token_ids), vocab_size]``, if asked for.
        finish_reason: Set on the last update of an answer that did not fail.
        stop_reason: The stop token id the caller named, if that ended it.
        error: Set on the last update of an answer that failed.
        index: Number of the answer.
        prompt_logprobs: One a prompt token but the first, with the first new token, if asked for.
        stages: What the engine did before the first token, with that token.
        context_logits: float32 ``[prompt_len, vocab_size]`` with the first new token, if asked for.
    """

    token_ids: tuple[int, ...] = ()
    cached_tokens: int = 0
    logprobs: tuple[TokenLogprobs, ...] | None = None
    logits: torch.Tensor | None = None
    finish_reason: FinishReason | None = None
    stop_reason: int | None = None
    error: Exception | None = None
    index: int = 0
    prompt_logprobs: tuple[TokenLogprobs, ...] | None = None
    stages: StageTimes | None = None
    context_logits: torch.Tensor | None = None

    @property
    def last(self) -> bool:
        """Whether nothing follows for this answer."""
        return self.finish_reason is not None or self.error is not None


@dataclass
class CompletionOutput:
    """One answer. The ``_diff`` fields hold what the latest update added.

    Attributes:
        index: Number of the answer.
        text: The answer so far.
        token_ids: Its tokens, the stop token included.
        finish_reason: ``"stop"``, ``"length"`` or ``"cancelled"``; None while unfinished.
        stop_reason: The stop text or stop token id of the caller that ended it.
        logprobs: One a token, if asked for.
        cumulative_logprob: Their sum; None if they were not asked for, nor needed.
        prompt_logprobs: One a prompt token but the first, if asked for.
        generation_logits: float32 ``[length, vocab_size]``, if asked for, once finished.
    """

    index: int = 0
    text: str = ""
    token_ids: list[int] = field(default_factory=list)
    finish_reason: FinishReason | None = None
    stop_reason: int | str | None = None
    logprobs: list[TokenLogprobs] | None = None
    cumulative_logprob: float | None = None
    prompt_logprobs: list[TokenLogprobs] | None = field(default=None, repr=False)
    generation_logits: torch.Tensor | None = field(default=None, repr=False)
    text_diff: str = ""
    token_ids_diff: list[int] = field(default_factory=list)
    logprobs_diff: list[TokenLogprobs] | None = None

    @property
    def length(self) -> int:
        """Number of tokens."""
        return len(self.token_ids)

    @property
    def request_perf_metrics(self) -> None:
        """None, as without ``return_perf_metrics``; see ``GenerationResult.metrics_dict``."""
        return None


@dataclass
class RequestTimes:
    """Monotonic seconds (``time.monotonic``) at which things happened.

    Attributes:
        arrival: Handed to the executor.
        first_token: First update with a token; None before.
        finished: Last update; None before.
        stages: What the engine did before the first token; None before that.
    """

    arrival: float
    first_token: float | None = None
    finished: float | None = None
    stages: StageTimes | None = None

    @property
    def time_to_first_token(self) -> float | None:
        """Seconds from arrival to the first token."""
        return None if self.first_token is None else self.first_token - self.arrival


@dataclass(frozen=True)
class RequestEnd:
    """How a request ended in the engine, for statistics.

    Attributes:
        request_id: Its number.
        request: It.
        cached_tokens: Prompt tokens found in the cache.
        num_generated: Tokens of the answer.
        times: When things happened.
        finish_reason: Unless it failed.
        error: If it failed.
    """

    request_id: int
    request: GenerationRequest
    cached_tokens: int
    num_generated: int
    times: RequestTimes
    finish_reason: FinishReason | None
    error: Exception | None


class _Answer:
    """One answer as it grows."""

    def __init__(self, index: int, sampling: SamplingParams, tokenizer: Tokenizer | None) -> None:
        self.output = CompletionOutput(index, logprobs=None if sampling.logprobs is None else [])
        if sampling.scored_logprobs is not None:
            self.output.cumulative_logprob = 0.0
        self._logits: list[torch.Tensor] = []
        self._detokenizer: IncrementalDetokenizer | None = None
        if tokenizer is not None:
            self._detokenizer = IncrementalDetokenizer(
                tokenizer,
                stop=sampling.stop_list,
                include_stop=sampling.include_stop_str_in_output,
                skip_special_tokens=sampling.skip_special_tokens,
                min_tokens=sampling.min_tokens or 0,
            )
        self._text_taken = self._tokens_taken = 0

    @property
    def finished(self) -> bool:
        """Whether nothing is added any more."""
        return self.output.finish_reason is not None

    def apply(self, update: GenerationUpdate) -> bool:
        """Adds an update; tells whether that met a stop text, which the engine does not know."""
        output = self.output
        if update.logits is not None:
            self._logits.append(update.logits)
        stopped = self._add_tokens(update)
        if stopped:
            output.finish_reason = "stop"
            output.stop_reason = self._detokenizer.stopped_at if self._detokenizer else None
        else:
            output.finish_reason, output.stop_reason = update.finish_reason, update.stop_reason
        if self._detokenizer is not None:
            if self.finished or update.last:
                self._detokenizer.finish()
            output.text = self._detokenizer.text
        if self.finished and self._logits:
            output.generation_logits = torch.cat(self._logits)[: output.length]
        return stopped

    def begin_diff(self) -> None:
        """What is added from now on is the latest."""
        self._text_taken, self._tokens_taken = len(self.output.text), self.output.length

    def end_diff(self) -> None:
        """Sets the ``_diff`` fields."""
        output = self.output
        output.text_diff = output.text[self._text_taken :]
        output.token_ids_diff = output.token_ids[self._tokens_taken :]
        output.logprobs_diff = output.logprobs and output.logprobs[self._tokens_taken :]

    def _add_tokens(self, update: GenerationUpdate) -> bool:
        """Takes an update's tokens up to a stop text; tells whether one was met."""
        output = self.output
        for index, token_id in enumerate(update.token_ids):
            output.token_ids.append(token_id)
            if update.logprobs is not None:
                if output.logprobs is not None:
                    output.logprobs.append(update.logprobs[index])
                if output.cumulative_logprob is not None:
                    output.cumulative_logprob += update.logprobs[index].logprob
            if self._detokenizer is not None and self._detokenizer.add(token_id):
                return True
        return False


class GenerationResult:
    """The answer to one request; made by the executor, not by users.

    Await it, iterate it (``async for`` or ``for``) for each update, or call ``result()``. One
    consumer at a time. A failed request raises its error from whichever is used.

    Attributes:
        request_id: Number of the request, and of its first answer; the others have those behind.
        prompt: The prompt text, if there was one.
        prompt_token_ids: The prompt with placeholders expanded.
        outputs: One for each answer. Where ``best_of`` asks for more than ``n``, all of them until
            the last is finished, then the best, best first.
        cached_tokens: Prompt tokens found in the cache.
        unshared_tokens: Prompt tokens that are never shared with another request, by the reason
            (`tensorrt_llm.executor.unshared`).
        context_logits: float32 ``[prompt_len, vocab_size]`` after each prompt token, if asked for.
        disaggregated_params: None: disaggregated serving is not in this release.
        finished: Whether all answers are complete.
        error: Why it failed, if it did.
        times: When things happened.
        on_end: Told of the end before anybody who waits for it; must not wait or raise.
    """

    def __init__(
        self,
        request_id: int,
        request: GenerationRequest,
        tokenizer: Tokenizer | None,
        cancel: Callable[[int], None],
    ) -> None:
        self.on_end: Callable[[RequestEnd], None] | None = None
        self._pushed_cached = self._pushed_tokens = 0
        sampling = request.sampling_params
        self.request_id = request_id
        self.request = request
        self._answers = [
            _Answer(index, sampling, tokenizer) for index in range(sampling.num_answers)
        ]
        self.outputs = [answer.output for answer in self._answers]
        self.cached_tokens = 0
        self.unshared_tokens: Mapping[UnsharedReason, int] = {}
        self.context_logits: torch.Tensor | None = None
        self.disaggregated_params = None
        self.finished = False
        self.error: Exception | None = None
        self.times = RequestTimes(arrival=time.monotonic())
        self._cancel = cancel
        self._num_open = len(self._answers)
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

    @property
    def metrics_dict(self) -> dict[str, float]:
        """Seconds from arrival to the first token (``ttft``) and to the last (``e2e``).

        ``tpot`` is the mean time between tokens of an answer of several. What has not happened yet
        is not there.
        """
        times, told = self.times, {}
        first = times.time_to_first_token
        if first is not None:
            told["ttft"] = first
        if times.finished is not None:
            told["e2e"] = times.finished - times.arrival
            longest = max(output.length for output in self.outputs)
            if first is not None and longest > 1:
                told["tpot"] = (told["e2e"] - first) / (longest - 1)
        return told

    @property
    def num_generated(self) -> int:
        """Tokens of all answers, also of those that are not given out."""
        return sum(answer.output.length for answer in self._answers)

    @property
    def answer_ids(self) -> range:
        """The number of each answer, by which the engine knows it."""
        return range(self.request_id, self.request_id + len(self._answers))

    def push(self, update: GenerationUpdate, wakeups: Wakeups | None = None) -> bool:
        """Called by the engine's loop, once a step and answer; tells whether nothing follows.

        An error is the end of all answers, whichever it met.

        Args:
            update: What is new.
            wakeups: Wakes who waits in an event loop, later; without it that is done at once.
        """
        now = time.monotonic()
        self.times.stages = self.times.stages or update.stages
        if update.token_ids and self.times.first_token is None:
            self.times.first_token = now
        self._pushed_cached = max(self._pushed_cached, update.cached_tokens)
        self._pushed_tokens += len(update.token_ids)
        if update.last:
            self._num_open = 0 if update.error is not None else self._num_open - 1
        last = self._num_open <= 0
        if last:
            self.times.finished = now
            self._tell_end(update)
        with self._arrived:
            self._updates.append(update)
            self._arrived.notify_all()
            wakeup = self._wakeup
        if wakeup is not None:
            if wakeups is not None:
                wakeups.add(*wakeup, self.abort)
            else:
                with Wakeups() as at_once:
                    at_once.add(*wakeup, self.abort)
        return last

    def _tell_end(self, update: GenerationUpdate) -> None:
        if self.on_end is not None:
            self.on_end(
                RequestEnd(
                    self.request_id,
                    self.request,
                    self._pushed_cached,
                    self._pushed_tokens,
                    self.times,
                    update.finish_reason,
                    update.error,
                )
            )

    def abort(self) -> None:
        """Gives the request up. The engine drops it within one step; answers end as they are."""
        if not self.finished:
            self._cancel_open()

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
        for answer in self._answers:
            answer.begin_diff()
        for update in updates:
            if not self.finished:
                self._apply(update)
        for answer in self._answers:
            answer.end_diff()
        if self.error is not None:
            raise self.error
        if self.finished and len(self.outputs) > self.request.sampling_params.n:
            self._keep_best()

    def _apply(self, update: GenerationUpdate) -> None:
        answer = self._answers[update.index]
        if answer.finished:
            return
        if update.prompt_logprobs is not None:
            for output in self.outputs:
                output.prompt_logprobs = list(update.prompt_logprobs)
        if update.context_logits is not None:
            self.context_logits = update.context_logits
        if update.index == 0:  # of the others, the first may have left all
            self.cached_tokens = max(self.cached_tokens, update.cached_tokens)
        stopped = answer.apply(update)
        if stopped and not update.last:
            self._cancel(self.answer_ids[update.index])
        elif not stopped and update.error is not None:
            self._cancel_open(but=update.index)
            self.error = update.error
        self.finished = self.error is not None or all(one.finished for one in self._answers)

    def _cancel_open(self, but: int | None = None) -> None:
        for number, answer in zip(self.answer_ids, self._answers, strict=True):
            if not answer.finished and answer.output.index != but:
                self._cancel(number)

    def _keep_best(self) -> None:
        ranked = sorted(self.outputs, key=lambda one: -(one.cumulative_logprob or 0.0))
        self.outputs = ranked[: self.request.sampling_params.n]
        for index, output in enumerate(self.outputs):
            output.index = index
