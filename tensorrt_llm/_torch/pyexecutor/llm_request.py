# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""A request while the engine works on it.

```
WAITING ──admit──▶ CONTEXT ──all known tokens written──▶ GENERATION ──stop──▶ FINISHED
   │                  │ ▲                                  │                   ▲
   │                  │ └──admit── PAUSED ◀── pause ───────┤                   │
   │                  └──────pause───▲ │                   │                   │
   └───────────────────────────────────┴─── cancel, error, deadline ───────────┘

CONTEXT ──rows must be made, inputs are not here──▶ WAITING_ITEMS ──all provided──▶ CONTEXT

WAITING ──its search is admitted──▶ HELD ──the prompt is written──▶ GENERATION ──ends──▶ WAITING
```

WAITING and PAUSED hold nothing; the other states hold blocks and, while rows are still needed,
encoder rows. WAITING_ITEMS is a CONTEXT that cannot run: the door was asked to prepare items, and
others go on meanwhile; all that leads out of CONTEXT leads out of it too. A paused request keeps
what it has generated, its seed and its media; admitted again it writes all of that anew,
as far as the cache does not have it, and goes on. One release path, in the executor, leads to
FINISHED. HELD is a hypothesis of a beam search whose prompt another request writes; it comes and
goes with that one.
"""

from __future__ import annotations

import enum
import secrets
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from tensorrt_llm._torch.peft import LoraAdapter
from tensorrt_llm._torch.pyexecutor.drafts import TokenHistory
from tensorrt_llm._torch.pyexecutor.embedding_store import StoredRows
from tensorrt_llm._torch.pyexecutor.guide import Guide
from tensorrt_llm._torch.pyexecutor.sampling import PenaltyState
from tensorrt_llm._torch.pyexecutor.scheduler import PromptContent, admission_order
from tensorrt_llm.executor.request import GenerationRequest
from tensorrt_llm.executor.result import GenerationUpdate, TokenLogprobs
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
    CONTEXT = enum.auto()
    WAITING_ITEMS = enum.auto()
    HELD = enum.auto()
    PAUSED = enum.auto()
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
        rows: Encoder rows ``[num_rows, row_width]`` once they were needed, until the last of
            them is written to the KV pool.
        stored: The store's entry that ``rows`` is; None if the request holds its own.
    """

    item: ProcessedItem
    first: int
    last: int
    inputs: Mapping[str, Any] | None
    rows: torch.Tensor | None = None
    stored: StoredRows | None = None
    _row_cumsum: torch.Tensor | None = None

    @classmethod
    def of(cls, item: ProcessedItem) -> RequestItem:
        """Wraps an item."""
        final = item.runs[-1]
        inputs = item.encoder_inputs if item.inputs_at_hand else None
        return cls(item, item.runs[0].position, final.position + final.length - 1, inputs)

    def touches(self, begin: int, end: int) -> bool:
        """Whether prompt tokens ``[begin, end)`` hold rows of it."""
        if end <= self.first or begin > self.last:
            return False
        return any(
            run.position < end and begin < run.position + run.length for run in self.item.runs
        )

    def params(
        self, begin: int, end: int, prompt_len: int, *, with_inputs: bool = False
    ) -> MultimodalParams:
        """The contract's view of this item for the chunk ``[begin, end)``.

        A chunk may go on behind the prompt, where a request that was paused writes its own tokens
        anew.
        """
        begin, end = min(begin, prompt_len), min(end, prompt_len)
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
        arrival: When it came, in seconds of ``time.monotonic``.
        state: See ``RequestState``.
        num_written: Tokens whose KV is in the pool, counting what the cache gave.
        cached_tokens: Prompt tokens whose KV the cache gave when it was first admitted.
        output_ids: Generated tokens.
        num_admitted: Tokens that were known when it was last admitted; to the KV cache manager
            they are its prompt.
        num_promised: Tokens for whose KV there is a promise.
        num_pauses: How often it was paused.
        admitted_at: When it was first admitted, as ``arrival``.
        encoded_at: When encoders began and ended to work for it; None if none did.
        items: Media items in prompt order.
        media_runs: Their runs and identities for the block key; None without media.
        content: What decides the KV of the prompt; None while unknown, or if nothing is shared.
        index: Which of the answers to its prompt it is.
        seed: Of its random numbers.
        bad_words: Token sequences that must not come.
        guide: What its answer has to be; None if it may be anything.
        penalties: Tokens it has had, if any options ask; made by the sampler.
        beams: All requests of its beam search, of which the first stands for all; empty without.
        others: The other answers to its prompt, until they go their own way: when it is written.
        history: All its tokens, once drafts were looked for.
        prompt_scores: Log-probabilities of prompt tokens by index, if anything is told of them.
        prompt_logits: float32 ``[prompt_len, vocab_size]`` on the CPU, if asked for.
        own_salt: A salt that nobody else has, for a request that must find nothing in the cache.
        whole_modalities: Kinds of items whose rows attend to all rows of their run, so that a
            chunk must not end inside one.
        missing_items: Items the door was asked to prepare and has not; in WAITING_ITEMS only.
        adapters: What changes the model for it: the family's own by the modalities present, then
            the caller's. It holds them, so that one that is unloaded lasts until it has ended.
    """

    request_id: int
    request: GenerationRequest
    max_new_tokens: int
    stop_token_ids: frozenset[int]
    push: Callable[[GenerationUpdate], object]
    arrival: float = field(default_factory=time.monotonic)
    state: RequestState = RequestState.WAITING
    num_written: int = 0
    cached_tokens: int = 0
    output_ids: list[int] = field(default_factory=list)
    num_admitted: int = 0
    num_promised: int = 0
    num_pauses: int = 0
    admitted_at: float = 0.0
    encoded_at: tuple[float, float] | None = None
    items: tuple[RequestItem, ...] = field(init=False)
    media_runs: MediaRunBuffers | None = field(init=False)
    content: PromptContent | None = None
    index: int = 0
    seed: int = 0
    bad_words: tuple[tuple[int, ...], ...] = ()
    guide: Guide | None = None
    penalties: PenaltyState | None = None
    beams: tuple[LlmRequest, ...] = field(default=(), repr=False)
    others: tuple[LlmRequest, ...] = ()
    history: TokenHistory | None = None
    prompt_scores: dict[int, TokenLogprobs] | None = field(init=False)
    prompt_logits: torch.Tensor | None = None
    own_salt: str | None = field(init=False)
    whole_modalities: frozenset[str] = frozenset()
    missing_items: set[int] = field(default_factory=set)
    adapters: tuple[LoraAdapter, ...] = ()
    prompt_len: int = field(init=False)
    order: tuple[float, int] = field(init=False)
    deadline: float | None = field(init=False)

    def __post_init__(self) -> None:
        request = self.request
        items = request.prompt.items
        self.items = tuple(RequestItem.of(item) for item in items)
        self.media_runs = media_run_buffers(items) if items else None
        self.prompt_len = len(request.prompt)
        self.order = admission_order(self.arrival, request.priority, self.request_id)
        self.deadline = None if request.timeout is None else self.arrival + request.timeout
        scored = self.index == 0 and request.sampling_params.scores_prompt
        self.prompt_scores = {} if scored else None
        self.own_salt = secrets.token_hex(16) if scored else None

    @property
    def sampling(self) -> SamplingParams:
        """How to choose tokens."""
        return self.request.sampling_params

    @property
    def prompt_ids(self) -> np.ndarray:
        """int32 ``[prompt_len]``."""
        return self.request.prompt.token_ids

    @property
    def num_known(self) -> int:
        """Tokens of prompt and answer so far."""
        return self.prompt_len + len(self.output_ids)

    @property
    def num_to_write(self) -> int:
        """Tokens that are known and whose KV is not in the pool yet."""
        return self.num_known - self.num_written

    @property
    def num_new_left(self) -> int:
        """Most tokens it may still generate."""
        return self.max_new_tokens - len(self.output_ids)

    @property
    def in_context(self) -> bool:
        """Whether it is admitted and has not written its prompt yet."""
        return self.state in (
            RequestState.CONTEXT,
            RequestState.WAITING_ITEMS,
            RequestState.HELD,
        )

    @property
    def width(self) -> int:
        """Places in a batch that it needs, with those who come with it."""
        return max(1, len(self.beams))

    @property
    def admitted(self) -> bool:
        """Whether it holds blocks."""
        return self.in_context or self.state is RequestState.GENERATION

    @property
    def encoder_adapters(self) -> tuple[LoraAdapter, ...]:
        """Of its adapters, those that change an encoder."""
        return tuple(adapter for adapter in self.adapters if adapter.touches_encoders)

    def largest_chunk(self, limit: int) -> int:
        """The most tokens, up to the limit, that may be written in one step; 0 if none can."""
        tokens = min(limit, self.num_to_write)
        for item in self.items if self.whole_modalities else ():
            if item.item.modality not in self.whole_modalities:
                continue
            end = self.num_written + tokens
            for run in item.item.runs:
                if run.position < end < run.position + run.length:
                    tokens = max(0, run.position - self.num_written)
        return tokens

    def token_ids(self, begin: int, end: int) -> np.ndarray:
        """int32 tokens ``[begin, end)`` of prompt and answer together."""
        if end <= self.prompt_len:
            return self.prompt_ids[begin:end]
        generated = np.asarray(
            self.output_ids[max(0, begin - self.prompt_len) : end - self.prompt_len], np.int32
        )
        return np.concatenate([self.prompt_ids[begin:], generated])

    def ends_of_bad_words(self) -> Iterator[int]:
        """Tokens that would complete a bad word now."""
        longest = max(len(word) for word in self.bad_words)
        known = self.num_known
        tail = tuple(self.token_ids(max(0, known - longest + 1), known).tolist())
        for word in self.bad_words:
            before = word[:-1]
            if len(before) <= len(tail) and tail[len(tail) - len(before) :] == before:
                yield word[-1]

    def position_ids(self, begin: int, end: int) -> np.ndarray:
        """Rotary positions ``[axes, end - begin]`` of tokens ``[begin, end)``."""
        return self.request.prompt.position_ids(begin, end)
