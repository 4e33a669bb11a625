# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""One step from a scheduled batch to new tokens: copies, model, commit, sampling.

What goes wrong is pinned on who caused it. A batch that fails is run again request by request, so
that only those fail that fail alone: a step writes KV to slots that nobody else reads and nothing
is counted as written before it succeeded, so running it again changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TypeAlias

import torch

from tensorrt_llm._torch.pyexecutor.drafts import count_accepted
from tensorrt_llm._torch.pyexecutor.llm_request import LlmRequest
from tensorrt_llm._torch.pyexecutor.model_engine import ModelEngine
from tensorrt_llm._torch.pyexecutor.resource_manager import KVCacheManager
from tensorrt_llm._torch.pyexecutor.sampler import Sampled, Sampler
from tensorrt_llm._torch.pyexecutor.scheduler import ScheduledRequest
from tensorrt_llm._torch.pyexecutor.step_ahead import StepAhead
from tensorrt_llm.errors import EngineError

Scheduled: TypeAlias = ScheduledRequest[LlmRequest]


@dataclass
class StepResult:
    """What a step brought.

    Attributes:
        sampled: Requests that got tokens, and these: one, and what held of a draft.
        failed: Requests that failed, what was being done, and why.
        beams: Hypotheses of beam searches, with their float32 logits ``[vocab_size]``.
        drafted: Tokens of drafts.
        accepted: Of these, those that held.
        num_with_draft: Requests that had one.
    """

    sampled: list[tuple[LlmRequest, Sequence[Sampled]]] = field(default_factory=list)
    failed: list[tuple[LlmRequest, str, Exception]] = field(default_factory=list)
    beams: list[tuple[LlmRequest, torch.Tensor]] = field(default_factory=list)
    drafted: int = 0
    accepted: int = 0
    num_with_draft: int = 0


@dataclass(frozen=True)
class _Due:
    """A request that gets a token, the first row of its logits, and the draft behind that."""

    request: LlmRequest
    row: int
    draft: tuple[int, ...] = ()

    @property
    def num_scored(self) -> int:
        return 1 + len(self.draft)


class StepRunner:
    """Runs steps. Keeps nothing between them.

    Args:
        engine: Runs the model.
        kv_cache: Blocks.
        sampler: Chooses tokens.
        fork: Lets the other answers of a request whose prompt is written begin; gives those that
            run from now on and have what it has.
        ahead: Prepares the next step while the model runs; None if nobody does.
    """

    def __init__(
        self,
        engine: ModelEngine,
        kv_cache: KVCacheManager,
        sampler: Sampler,
        fork: Callable[[LlmRequest], Sequence[LlmRequest]],
        ahead: StepAhead | None = None,
    ) -> None:
        self._ahead = ahead
        self._fork = fork
        self._engine = engine
        self._kv_cache = kv_cache
        self._sampler = sampler

    def run(self, scheduled: Sequence[Scheduled]) -> StepResult:
        """Runs a batch, context requests first. Never raises for a fault of a request's."""
        result = StepResult()
        try:
            self._kv_cache.run_copies()
        except Exception as error:
            result.failed += [(entry.request, "copying", error) for entry in scheduled]
            return result
        run: Callable[[], torch.Tensor] = partial(self._run_model, scheduled)
        if self._ahead is not None:
            run = self._ahead.run(scheduled).result
        for entries, logits in self._forward(scheduled, run, result):
            self._finish(entries, logits, result)
        return result

    def _forward(
        self,
        scheduled: Sequence[Scheduled],
        run: Callable[[], torch.Tensor],
        result: StepResult,
    ) -> list[tuple[Sequence[Scheduled], torch.Tensor]]:
        """Logits of all that succeeds, in as few runs of the model as that takes."""
        try:
            return [(scheduled, run())]
        except Exception as error:
            if len(scheduled) == 1:
                result.failed.append((scheduled[0].request, "step", error))
                return []
        return [
            one
            for entry in scheduled
            for one in self._forward([entry], partial(self._run_model, [entry]), result)
        ]

    def _run_model(self, scheduled: Sequence[Scheduled]) -> torch.Tensor:
        tables = self._kv_cache.block_tables([entry.request for entry in scheduled])
        return self._engine.forward(scheduled, tables)

    def _finish(
        self, scheduled: Sequence[Scheduled], logits: torch.Tensor, result: StepResult
    ) -> None:
        """Commits what was written and samples where a prompt is complete."""
        # A value that is no number reaches every later token of its sequence, so the last token
        # tells of all; such keys and values must never be found by another request.
        unsound = logits.amax(dim=-1).isnan().tolist()
        good: list[_Due] = []
        row = 0
        for entry in scheduled:
            if not unsound[row]:
                entry.request.num_written += entry.num_tokens - len(entry.draft)
                # What a draft leads to after such a value is as if it had not been guessed.
                behind = unsound[row : row + entry.num_scored]
                sound = behind.index(True) - 1 if True in behind else len(entry.draft)
                good.append(_Due(entry.request, row, entry.draft[:sound]))
            else:
                error = EngineError("the model gave logits that are NaN")
                result.failed.append((entry.request, "step", error))
            row += entry.num_scored
        try:
            self._kv_cache.commit([one.request for one in good])
        except Exception as error:
            result.failed += [(one.request, "commit", error) for one in good]
            return
        due: list[_Due] = []
        for one in good:
            if one.request.num_to_write > 0:
                continue
            if one.request.beams:
                result.beams.append((one.request, logits[one.row]))
            else:
                due.append(one)
                due += [_Due(other, one.row) for other in self._fork(one.request)]
        if due:
            self._sample(logits, due, result)
        self._take_drafts_back(scheduled, result)

    def _sample(self, logits: torch.Tensor, due: Sequence[_Due], result: StepResult) -> None:
        rows = [one.row + ahead for one in due for ahead in range(one.num_scored)]
        # To pick rows takes longer than to look at them, and mostly all are due.
        picked = logits if rows == list(range(len(logits))) else logits[rows]
        requests = [one.request for one in due for _ in range(one.num_scored)]
        ahead = [ahead for one in due for ahead in range(one.num_scored)]
        try:
            chosen: Sequence[Sampled | Exception] = self._sampler.sample(picked, requests, ahead)
        except Exception as error:
            chosen = [error] * len(requests)
        begin = 0
        for one in due:
            self._choose(one, chosen[begin : begin + one.num_scored], result)
            begin += one.num_scored

    def _choose(self, one: _Due, chosen: Sequence[Sampled | Exception], result: StepResult) -> None:
        """Takes what a request gets: a token, and as much of its draft as would have come."""
        first = chosen[0]
        if isinstance(first, Exception):
            result.failed.append((one.request, "sampling", first))
            return
        accepted = count_accepted(
            one.draft,
            [None if isinstance(choice, Exception) else choice.token_id for choice in chosen],
            one.request.stop_token_ids,
        )
        one.request.num_written += accepted
        result.accepted += accepted
        taken = [choice for choice in chosen[: accepted + 1] if isinstance(choice, Sampled)]
        result.sampled.append((one.request, taken))

    def _take_drafts_back(self, scheduled: Sequence[Scheduled], result: StepResult) -> None:
        """What did not hold leaves its sequence before anything else can look at it."""
        drafted = [entry for entry in scheduled if entry.draft]
        if not drafted:
            return
        result.drafted += sum(len(entry.draft) for entry in drafted)
        result.num_with_draft += len(drafted)
        failed = {id(request) for request, _, _ in result.failed}
        requests = [entry.request for entry in drafted if id(entry.request) not in failed]
        try:
            self._kv_cache.take_back(requests)
        except Exception as error:
            result.failed += [(request, "commit", error) for request in requests]
            lost = {id(request) for request in requests}
            result.sampled = [one for one in result.sampled if id(one[0]) not in lost]
