# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""The next step is prepared while the current one computes.

Where every request of a step gets a token from it, the next step is known but for these tokens and
for those that end with them: one token each. So while the model runs in a thread of its own, the
loop's thread takes the places of those tokens in the KV cache and lays the next step out; the ids
are filled in when they are known.

What was prepared is a guess and never decides anything. The next step is scheduled as it always
is, and takes the layout only if it is a layout of the very same requests, at the same positions,
in the same blocks; else it is laid out anew. A place that was taken for a request that ended holds
nothing, goes back with its other blocks, and cannot be committed as long as it has no token.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

import numpy as np
import torch

from tensorrt_llm._torch.pyexecutor.llm_request import LlmRequest, RequestState
from tensorrt_llm._torch.pyexecutor.model_engine import ModelEngine
from tensorrt_llm._torch.pyexecutor.resource_manager import KVCacheManager
from tensorrt_llm._torch.pyexecutor.scheduler import ScheduledRequest
from tensorrt_llm._torch.pyexecutor.step_layout import StepLayout
from tensorrt_llm._torch.pyexecutor.step_worker import StepWorker
from tensorrt_llm.logger import get_logger

logger = get_logger(__name__)

Scheduled: TypeAlias = ScheduledRequest[LlmRequest]


@dataclass(frozen=True)
class PreparedStep:
    """A layout without token ids, and what it was made for."""

    layout: StepLayout
    block_tables: np.ndarray

    def fits(self, scheduled: Sequence[Scheduled], block_tables: np.ndarray) -> bool:
        """Whether it is the layout of these requests with these blocks."""
        chunks = self.layout.chunks
        return (
            len(chunks) == len(scheduled)
            and all(
                entry.request is chunk.request
                and entry.num_tokens == 1
                and entry.request.num_written == chunk.begin
                for entry, chunk in zip(scheduled, chunks, strict=True)
            )
            and np.array_equal(block_tables, self.block_tables)
        )


class StepAhead:
    """Runs the model in a thread of its own and prepares the next step. Owned by the loop.

    Args:
        engine: Runs the model.
        kv_cache: Blocks.
        beside: What else the loop does while the model runs. It must not touch what a running
            step reads, and gives no blocks back.

    Attributes:
        num_steps: Steps that ran.
        num_prepared: Layouts made ahead.
        num_used: Of these, the ones that ran.
    """

    def __init__(
        self, engine: ModelEngine, kv_cache: KVCacheManager, beside: Callable[[], None]
    ) -> None:
        self._engine = engine
        self._kv_cache = kv_cache
        self._beside = beside
        self._worker = StepWorker()
        self._grown: tuple[LlmRequest, ...] = ()
        self._prepared: PreparedStep | None = None
        self.num_steps = self.num_prepared = self.num_used = 0

    def run(self, scheduled: Sequence[Scheduled]) -> Future[torch.Tensor]:
        """Runs the model over a batch, and prepares the next one meanwhile.

        Returns:
            Logits as ``ModelEngine.forward`` gives them, or its error; nothing runs any more.
        """
        try:
            tables = self._kv_cache.block_tables([entry.request for entry in scheduled])
        except Exception as error:
            failed: Future[torch.Tensor] = Future()
            failed.set_exception(error)
            return failed
        layout = self._take_layout(scheduled, tables)
        self.num_steps += 1
        return self._worker.run(
            partial(self._engine.forward, scheduled, tables, layout),
            partial(self._meanwhile, scheduled),
        )

    def name_tokens(self) -> None:
        """Tells the KV cache the tokens whose places were taken; once the step's are known."""
        self._kv_cache.name(self.growing)

    def take_grown(self) -> frozenset[int]:
        """The ids of the requests whose newest token has its place; each is told once."""
        grown, self._grown = self.growing, ()
        return frozenset(request.request_id for request in grown)

    def close(self) -> None:
        """Ends the thread."""
        self._worker.close()

    @property
    def growing(self) -> tuple[LlmRequest, ...]:
        """Of the requests whose places were taken, those that go on."""
        return tuple(one for one in self._grown if one.state is RequestState.GENERATION)

    def _take_layout(self, scheduled: Sequence[Scheduled], tables: np.ndarray) -> StepLayout | None:
        prepared, self._prepared = self._prepared, None
        if prepared is None or not prepared.fits(scheduled, tables):
            return None
        self.num_used += 1
        ids = [entry.request.output_ids[-1] for entry in scheduled]
        return prepared.layout.with_tokens(np.asarray(ids, np.int64))

    def _meanwhile(self, scheduled: Sequence[Scheduled]) -> None:
        self._beside()
        try:
            self._prepare(_following(scheduled))
        except Exception:
            # Whose fault it is shows when the step comes, prepared or not.
            logger.exception("the next step could not be prepared")

    def _prepare(self, requests: Sequence[LlmRequest]) -> None:
        in_order = sorted(requests, key=lambda one: one.order)
        if not requests or not all(self._kv_cache.extend(one, 1) for one in in_order):
            return
        self._kv_cache.grow(requests)
        self._grown = tuple(requests)
        tables = self._kv_cache.block_tables(requests)
        layout = self._engine.lay_out_ahead(requests, tables)
        self._prepared = PreparedStep(layout, tables)
        self.num_prepared += 1


def _following(scheduled: Sequence[Scheduled]) -> list[LlmRequest]:
    """Who runs after this step, in the order of the batch; empty if that cannot be told."""
    entries = [entry.request for entry in scheduled]
    if any(
        entry.num_tokens != entry.request.num_to_write
        or entry.request.others
        or entry.request.beams
        for entry in scheduled
    ):
        return []
    # Those that come into the generation phase now come after those that are in it.
    joining = [request for request in entries if request.in_context]
    running = [request for request in entries if not request.in_context]
    return [request for request in (*running, *joining) if request.num_new_left > 1]
