# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""A request while the engine works on it.

```
WAITING ──admit──▶ CONTEXT ──last prompt token written──▶ GENERATION ──stop──▶ FINISHED
   │             ask │  ▲ all provided                         │                  ▲
   │                 ▼  │                                      │                  │
   │             WAITING_ITEMS                                 │                  │
   └────────────────────┴──────────── cancel, error ───────────┴──────────────────┘
```

WAITING holds nothing. The other states hold blocks and, while rows are still needed, encoder rows.
WAITING_ITEMS is for rows that have to be encoded from inputs that are not here: the door was asked
to prepare those items. One release path, in the executor, leads to FINISHED.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from tensorrt_llm._torch.pyexecutor.embedding_store import EmbeddingKey
from tensorrt_llm.executor.request import GenerationRequest
from tensorrt_llm.executor.result import GenerationUpdate
from tensorrt_llm.inputs.data import ProcessedItem
from tensorrt_llm.inputs.multimodal import (
    MediaRunBuffers,
    MultimodalParams,
    MultimodalRuntimeData,
    media_run_buffers,
)
from tensorrt_llm.sampling_params import SamplingParams


class RequestState(enum.Enum):
    """Where a request stands; see the module's picture."""

    WAITING = enum.auto()
    WAITING_ITEMS = enum.auto()
    CONTEXT = enum.auto()
    GENERATION = enum.auto()
    FINISHED = enum.auto()


@dataclass(eq=False)
class RequestItem:
    """One media item of a running request.

    Attributes:
        item: What the input processor made.
        first: Prompt index of its first row.
        last: Prompt index of its last row.
        inputs: What its encoder takes; None until the door has provided it.
        rows: Encoder rows ``[num_rows, hidden_size]`` once they were needed, until the last of
            them is written to the KV pool.
        pinned: Key of the store's entry that ``rows`` is; None if the request holds its own.
    """

    item: ProcessedItem
    first: int
    last: int
    inputs: Mapping[str, Any] | None
    rows: torch.Tensor | None = None
    pinned: EmbeddingKey | None = None
    _row_cumsum: torch.Tensor | None = None

    @classmethod
    def of(cls, item: ProcessedItem) -> RequestItem:
        """Wraps an item."""
        final = item.runs[-1]
        inputs = item.encoder_inputs if item.inputs_at_hand else None
        return cls(item, item.runs[0].position, final.position + final.length - 1, inputs)

    def touches(self, begin: int, end: int) -> bool:
        """Whether prompt tokens ``[begin, end)`` hold rows of it."""
        return any(
            run.position < end and begin < run.position + run.length for run in self.item.runs
        )

    def params(
        self, begin: int, end: int, prompt_len: int, *, with_inputs: bool = False
    ) -> MultimodalParams:
        """The contract's view of this item for the chunk ``[begin, end)``."""
        if self._row_cumsum is None:
            is_row = torch.zeros(prompt_len, dtype=torch.int64)
            for run in self.item.runs:
                is_row[run.position : run.position + run.length] = 1
            self._row_cumsum = is_row.cumsum(0)
        return MultimodalParams(
            multimodal_data=dict(self.inputs or {}) if with_inputs else {},
            multimodal_runtime=MultimodalRuntimeData(
                past_seen_token_num=begin, chunk_end_pos=end, embed_mask_cumsum=self._row_cumsum
            ),
        )


@dataclass(eq=False)
class LlmRequest:
    """A request and its progress. Owned by the engine's loop.

    Attributes:
        request_id: Number of the request, also of its sequence in the KV cache manager.
        request: What the caller handed in.
        max_new_tokens: Most tokens to generate, resolved.
        stop_token_ids: Ids that end the answer.
        push: Where updates go.
        state: See ``RequestState``.
        num_written: Tokens whose KV is in the pool, counting what the cache gave.
        cached_tokens: Prompt tokens whose KV the cache gave.
        output_ids: Generated tokens.
        items: Media items in prompt order.
        media_runs: Their runs and identities for the block key; None without media.
        generator: Random stream of a sampled request.
        missing_items: Items the door was asked to prepare and has not; it runs when there are none.
    """

    request_id: int
    request: GenerationRequest
    max_new_tokens: int
    stop_token_ids: frozenset[int]
    push: Callable[[GenerationUpdate], None]
    state: RequestState = RequestState.WAITING
    num_written: int = 0
    cached_tokens: int = 0
    output_ids: list[int] = field(default_factory=list)
    items: tuple[RequestItem, ...] = field(init=False)
    media_runs: MediaRunBuffers | None = field(init=False)
    generator: torch.Generator | None = None
    missing_items: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        items = self.request.prompt.items
        self.items = tuple(RequestItem.of(item) for item in items)
        self.media_runs = media_run_buffers(items) if items else None

    @property
    def sampling(self) -> SamplingParams:
        """How to choose tokens."""
        return self.request.sampling_params

    @property
    def prompt_ids(self) -> np.ndarray:
        """int32 ``[prompt_len]``."""
        return self.request.prompt.token_ids

    @property
    def prompt_len(self) -> int:
        """Tokens of the prompt."""
        return len(self.request.prompt)

    @property
    def num_to_write(self) -> int:
        """Tokens that are known and whose KV is not in the pool yet."""
        return self.prompt_len + len(self.output_ids) - self.num_written

    def token_ids(self, begin: int, end: int) -> np.ndarray:
        """int32 tokens ``[begin, end)`` of prompt and answer together."""
        if end <= self.prompt_len:
            return self.prompt_ids[begin:end]
        generated = np.asarray(
            self.output_ids[max(0, begin - self.prompt_len) : end - self.prompt_len], np.int32
        )
        return np.concatenate([self.prompt_ids[begin:], generated])
