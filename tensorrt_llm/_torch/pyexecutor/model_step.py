# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""One step from a scheduled batch to new tokens: copies, model, commit, sampling.

What goes wrong is pinned on who caused it. A batch that fails is run again request by request, so
that only those fail that fail alone: a step writes KV to slots that nobody else reads and nothing
is counted as written before it succeeded, so running it again changes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import torch

from tensorrt_llm._torch.pyexecutor.llm_request import LlmRequest
from tensorrt_llm._torch.pyexecutor.model_engine import ModelEngine
from tensorrt_llm._torch.pyexecutor.resource_manager import KVCacheManager
from tensorrt_llm._torch.pyexecutor.sampler import Sampled, Sampler
from tensorrt_llm._torch.pyexecutor.scheduler import ScheduledRequest
from tensorrt_llm.errors import EngineError

Scheduled: TypeAlias = ScheduledRequest[LlmRequest]


@dataclass
class StepResult:
    """What a step brought.

    Attributes:
        sampled: Requests that got a token, and the token.
        failed: Requests that failed, what was being done, and why.
    """

    sampled: list[tuple[LlmRequest, Sampled]] = field(default_factory=list)
    failed: list[tuple[LlmRequest, str, Exception]] = field(default_factory=list)


class StepRunner:
    """Runs steps. Keeps nothing between them.

    Args:
        engine: Runs the model.
        kv_cache: Blocks.
        sampler: Chooses tokens.
    """

    def __init__(self, engine: ModelEngine, kv_cache: KVCacheManager, sampler: Sampler) -> None:
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
        for entries, logits in self._forward(scheduled, result):
            self._finish(entries, logits, result)
        return result

    def _forward(
        self, scheduled: Sequence[Scheduled], result: StepResult
    ) -> list[tuple[Sequence[Scheduled], torch.Tensor]]:
        """Logits of all that succeeds, in as few runs of the model as that takes."""
        try:
            return [(scheduled, self._run_model(scheduled))]
        except Exception as error:
            if len(scheduled) == 1:
                result.failed.append((scheduled[0].request, "step", error))
                return []
        return [one for entry in scheduled for one in self._forward([entry], result)]

    def _run_model(self, scheduled: Sequence[Scheduled]) -> torch.Tensor:
        tables = self._kv_cache.block_tables([entry.request for entry in scheduled])
        return self._engine.forward(scheduled, tables)

    def _finish(
        self, scheduled: Sequence[Scheduled], logits: torch.Tensor, result: StepResult
    ) -> None:
        """Commits what was written and samples where a prompt is complete."""
        # A value that is no number reaches every later token of its sequence, so the last token
        # tells of all; such keys and values must never be found by another request.
        sound = (~logits.isnan().any(dim=-1)).tolist()
        good = []
        for row, entry in enumerate(scheduled):
            if sound[row]:
                entry.request.num_written += entry.num_tokens
                good.append(row)
            else:
                error = EngineError("the model gave logits that are NaN")
                result.failed.append((entry.request, "step", error))
        requests = [scheduled[row].request for row in good]
        try:
            self._kv_cache.commit(requests)
        except Exception as error:
            result.failed += [(request, "commit", error) for request in requests]
            return
        due = [row for row in good if scheduled[row].request.num_to_write == 0]
        if due:
            self._sample(logits[due], [scheduled[row].request for row in due], result)

    def _sample(
        self, logits: torch.Tensor, requests: Sequence[LlmRequest], result: StepResult
    ) -> None:
        try:
            chosen: Sequence[Sampled | Exception] = self._sampler.sample(logits, requests)
        except Exception as error:
            chosen = [error] * len(requests)
        for request, choice in zip(requests, chosen, strict=True):
            if isinstance(choice, Exception):
                result.failed.append((request, "sampling", choice))
            else:
                result.sampled.append((request, choice))
