# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""What a turn of the loop has to tell: tokens and ends, kept until the turn is recorded."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence

import torch

from tensorrt_llm._torch.pyexecutor.llm_request import LlmRequest
from tensorrt_llm._torch.pyexecutor.prompt_scores import prompt_logprobs
from tensorrt_llm._torch.pyexecutor.sampler import Sampled
from tensorrt_llm._torch.pyexecutor.sampling import Hypothesis
from tensorrt_llm.errors import TrtllmError
from tensorrt_llm.executor.result import FinishReason, GenerationUpdate, StageTimes


class Outbox:
    """Updates of requests, in order. Owned by the loop."""

    def __init__(self) -> None:
        self._updates: deque[tuple[LlmRequest, GenerationUpdate]] = deque()

    def __bool__(self) -> bool:
        return bool(self._updates)

    def tokens(
        self, request: LlmRequest, choices: Sequence[Sampled], reason: FinishReason | None
    ) -> None:
        """A request got tokens, the last of its answer among them if there is a reason."""
        stop, last = None, choices[-1].token_id
        if reason == "stop" and last in (request.sampling.stop_token_ids or ()):
            stop = last
        first = len(request.output_ids) == len(choices)
        scores = tuple(choice.logprobs for choice in choices if choice.logprobs is not None)
        logits = [choice.logits for choice in choices if choice.logits is not None]
        update = GenerationUpdate(
            token_ids=tuple(choice.token_id for choice in choices),
            cached_tokens=request.cached_tokens,
            index=request.index,
            logprobs=scores or None,
            prompt_logprobs=prompt_logprobs(request) if first else None,
            context_logits=request.prompt_logits if first else None,
            stages=StageTimes(request.admitted_at, request.encoded_at) if first else None,
            logits=torch.cat(logits) if logits else None,
            finish_reason=reason,
            stop_reason=stop,
        )
        self._updates.append((request, update))

    def whole(self, leader: LlmRequest, answers: Sequence[Hypothesis]) -> None:
        """A beam search is done: its answers, best first."""
        for index, answer in enumerate(answers):
            last = answer.tokens[-1].token_id
            update = GenerationUpdate(
                token_ids=tuple(answer.token_ids),
                cached_tokens=leader.cached_tokens,
                index=index,
                logprobs=answer.tokens,
                stages=StageTimes(leader.admitted_at, leader.encoded_at) if index == 0 else None,
                finish_reason="stop" if last in leader.stop_token_ids else "length",
                stop_reason=last if last in (leader.sampling.stop_token_ids or ()) else None,
            )
            self._updates.append((leader, update))

    def end(
        self,
        request: LlmRequest,
        *,
        finish_reason: FinishReason | None = None,
        error: TrtllmError | None = None,
    ) -> None:
        """A request ended otherwise; answers that have not begun end with it."""
        told: Sequence[LlmRequest] = (request, *request.others)
        if request.beams:
            told = request.beams[: request.sampling.n]
        for one in told:
            update = GenerationUpdate(
                cached_tokens=request.cached_tokens,
                index=one.index,
                finish_reason=finish_reason,
                error=error,
            )
            self._updates.append((one, update))

    def send(self, undelivered: Callable[[LlmRequest, Exception], None]) -> None:
        """Hands all updates to those who wait for them.

        Args:
            undelivered: Told of a request whose update could not be taken. What it adds is sent
                as well.
        """
        while self._updates:  # one by one: whatever goes wrong, the others are still there
            request, update = self._updates.popleft()
            try:
                request.push(update)
            except Exception as error:
                undelivered(request, error)


def finish_reason(request: LlmRequest) -> FinishReason | None:
    """Why a request's newest token is its last; None if it is not."""
    if request.output_ids[-1] in request.stop_token_ids:
        return "stop"
    if request.guide is not None and request.guide.complete:
        return "stop"
    if len(request.output_ids) >= request.max_new_tokens:
        return "length"
    return None
