# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""KV blocks of requests: the C++ manager's bookkeeping joined with the pool that holds the data."""

from __future__ import annotations

import secrets
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import psutil
import torch

from tensorrt_llm import bindings
from tensorrt_llm._torch.attention_backend import PagedKVPool
from tensorrt_llm._torch.models.modeling_utils import DecoderModel
from tensorrt_llm._torch.pyexecutor.llm_request import LlmRequest
from tensorrt_llm._torch.pyexecutor.scheduler import (
    BurstGate,
    PromptContent,
    ScheduledRequest,
)
from tensorrt_llm.errors import ConfigurationError
from tensorrt_llm.llmapi.llm_args import KvCacheConfig

# Without a bound the pool would take most of a CPU machine's memory, which other programs share.
CPU_POOL_MAX_BYTES = 4 << 30


@dataclass(frozen=True)
class PoolGeometry:
    """Sizes of the pool.

    Attributes:
        num_blocks: Blocks.
        tokens_per_block: Tokens a block holds.
        bytes_per_block: Keys and values of all layers.
        dtype: Of the stored keys and values.
    """

    num_blocks: int
    tokens_per_block: int
    bytes_per_block: int
    dtype: torch.dtype


def plan_pool(config: KvCacheConfig, model: DecoderModel, reserved: int = 0) -> PoolGeometry:
    """Decides how many blocks to allocate.

    The smaller of ``max_tokens`` and the memory fraction wins. On CUDA the fraction is taken of
    the free device memory after loading; on CPU of the available memory, at most
    ``CPU_POOL_MAX_BYTES``.

    Args:
        config: The user's settings.
        model: The model whose keys and values are stored.
        reserved: Bytes of that memory which something else will take.

    Raises:
        ConfigurationError: If not even one block fits.
    """
    dtype = model.dtype if config.dtype == "auto" else getattr(torch, config.dtype)
    bytes_per_block = (
        2
        * model.num_layers
        * config.tokens_per_block
        * model.num_kv_heads
        * model.head_dim
        * dtype.itemsize
    )
    limits = []
    if config.max_tokens is not None:
        limits.append(-(-config.max_tokens // config.tokens_per_block))
    if config.free_gpu_memory_fraction is not None:
        available = max(_available_bytes(model.device) - reserved, 0)
        usable = int(config.free_gpu_memory_fraction * available)
        if model.device.type == "cpu":
            usable = min(usable, CPU_POOL_MAX_BYTES)
        limits.append(usable // bytes_per_block)
    if not limits:
        raise ConfigurationError(
            "kv_cache_config: one of max_tokens and free_gpu_memory_fraction must be set"
        )
    if min(limits) < 1:
        raise ConfigurationError(
            f"kv_cache_config: no memory for a block of {bytes_per_block} bytes; raise "
            "free_gpu_memory_fraction or max_tokens"
        )
    return PoolGeometry(min(limits), config.tokens_per_block, bytes_per_block, dtype)


def _available_bytes(device: torch.device) -> int:
    if device.type == "cuda":
        free, _ = torch.cuda.mem_get_info(device)
        return int(free)
    return int(psutil.virtual_memory().available)


class KVCacheManager:
    """Blocks for requests, and where each token's keys and values go.

    Owned by the engine's loop.

    Args:
        config: The user's settings.
        model: The model whose keys and values are stored.
        reserved: Bytes of the device's free memory that something else will take.
    """

    def __init__(self, config: KvCacheConfig, model: DecoderModel, reserved: int = 0) -> None:
        self.geometry = plan_pool(config, model, reserved)
        self._reuses = config.enable_block_reuse
        self._shares_parts = config.enable_partial_reuse and config.copy_on_partial_reuse
        host_blocks = (config.host_cache_size or 0) // self.geometry.bytes_per_block
        self.impl = bindings.KVCacheManager(
            num_blocks=self.geometry.num_blocks,
            tokens_per_block=self.geometry.tokens_per_block,
            enable_block_reuse=config.enable_block_reuse,
            enable_partial_reuse=config.enable_partial_reuse,
            copy_on_partial_reuse=config.copy_on_partial_reuse,
            host_blocks=host_blocks,
            secondary_offload_min_priority=config.secondary_offload_min_priority,
            event_buffer_max_size=config.events_kept,
        )
        self._copies: deque[list[int]] = deque()
        self._ticket = 0
        self.pool = self._allocate(model, self.geometry.num_blocks, model.device)
        self._host_pool = self._allocate(model, host_blocks, torch.device("cpu"))

    def _allocate(self, model: DecoderModel, num_blocks: int, device: torch.device) -> PagedKVPool:
        return PagedKVPool.allocate(
            num_layers=model.num_layers,
            num_blocks=num_blocks,
            tokens_per_block=self.geometry.tokens_per_block,
            num_kv_heads=model.num_kv_heads,
            head_dim=model.head_dim,
            dtype=self.geometry.dtype,
            device=device,
            pin_memory=device.type == "cpu" and model.device.type == "cuda",
        )

    @property
    def max_tokens(self) -> int:
        """Tokens the whole pool holds."""
        return self.geometry.num_blocks * self.geometry.tokens_per_block

    def burst_gate(self) -> BurstGate[LlmRequest]:
        """Who waits for whom, by what this manager shares."""
        return BurstGate(self.geometry.tokens_per_block, share_parts=self._shares_parts)

    def content(self, request: LlmRequest) -> PromptContent | None:
        """What decides the KV of the request's prompt; None if nothing is shared."""
        if not self._reuses or request.prompt_scores is not None:
            return None
        return PromptContent.of(
            request.request.prompt,
            request.request.cache_salt,
            self.geometry.tokens_per_block,
            request.request.adapter,
        )

    def probe(self, request: LlmRequest) -> int:
        """How many of the request's known tokens the cache has now."""
        return self.impl.probe(
            request.token_ids(0, request.num_known), _media_runs(request), _scope(request)
        )

    def explain(self, request: LlmRequest, other_salts: bool) -> dict[str, Any]:
        """How much of the prompt the cache has now, and why no more."""
        self.tell_time()
        found = self.impl.explain(
            request.prompt_ids, _media_runs(request), _scope(request), other_salts
        )
        return {
            "cached_tokens": found.cached_tokens,
            "reason": found.reason,
            "block": found.block,
            "position": found.position,
            "evicted_ms": found.evicted_ms,
        }

    def admit(self, request: LlmRequest, num_new: int, source: LlmRequest | None = None) -> bool:
        """Takes the cached prefix and room for the rest, and promises room for new tokens.

        Args:
            request: It.
            num_new: New tokens that may come after those that are known, at least 1.
            source: Who may have written, in a block of its own, what comes after that prefix.

        Returns:
            False if the pool cannot promise that room now; nothing has changed then.
        """
        known = request.num_known
        self.tell_time()
        allocation = self.impl.add_sequence(
            request.request_id,
            request.token_ids(0, known),
            _media_runs(request),
            _scope(request),
            num_new,
            None if request.request.retention is None else request.request.retention.for_manager(),
        )
        if allocation is None:
            return False
        request.num_admitted = known
        request.num_promised = known + num_new - 1
        request.num_written = allocation.cached_tokens
        if source is not None and source.num_written > request.num_written:
            try:
                shared = self.impl.share_tail(source.request_id, request.request_id)
            except Exception:
                self.release(request)
                raise
            request.num_written = shared
        if request.num_pauses == 0:
            request.cached_tokens = request.num_written
        return True

    def fork(self, source: LlmRequest, request: LlmRequest) -> bool:
        """Lets a request go on from where another is, which has its prompt and its limits.

        Returns:
            False if the pool cannot promise that now; nothing has changed then.
        """
        if self.impl.fork(source.request_id, request.request_id) is None:
            return False
        request.num_admitted = source.num_admitted
        request.num_promised = source.num_promised
        request.num_written = source.num_written
        request.cached_tokens = source.cached_tokens
        return True

    def has_room_for_beams(self, leader: LlmRequest) -> bool:
        """Whether the prompt, and what each beam of a search may write behind it, fits now."""
        size = self.geometry.tokens_per_block
        behind = _behind_prompt(leader, size)
        needed = leader.prompt_len // size + len(leader.beams) * -(-behind // size)
        stats = self.impl.stats()
        return needed <= stats.free_num_blocks - stats.reserved_num_blocks

    def hold_for_fork(self, source: LlmRequest, request: LlmRequest) -> bool:
        """Takes what a request needs to fork off another when that has written its prompt.

        It is a sequence that is never written; it ends, by ``release``, just before the fork.

        Returns:
            False if the pool cannot promise that now; nothing has changed then.
        """
        behind = _behind_prompt(source, self.geometry.tokens_per_block)
        tokens = np.zeros(behind - source.max_new_tokens + 1, np.int32)
        # Nobody has that salt, so it finds nothing.
        scope = bindings.ReuseScope(cache_salt=secrets.token_hex(16))
        allocation = self.impl.add_sequence(
            request.request_id, tokens, None, scope, source.max_new_tokens, None
        )
        return allocation is not None

    def extend(self, request: LlmRequest, more: int = 0) -> bool:
        """Sees that there is room for all known tokens and some more; False if there is none.

        Room comes in blocks, so one is asked for whole.
        """
        needed = request.num_known + more
        if needed <= request.num_promised:
            return True
        size = self.geometry.tokens_per_block
        most = request.prompt_len + request.max_new_tokens - 1
        wanted = min(-(-needed // size) * size, most)
        if not self.impl.extend_sequence(request.request_id, wanted - request.num_admitted + 1):
            return False
        request.num_promised = wanted
        return True

    def run_copies(self) -> None:
        """Runs what admissions since the last call ask for; due before the next step.

        A copy and whatever touches its blocks later are issued in one stream, so a plan counts as
        done once it is issued. What could not be issued, for want of memory for example, comes
        first the next time: the manager counts on every copy it asked for.
        """
        plan = self.impl.take_copy_plan()
        if plan.ticket:
            self._copies.extend(plan.entries.tolist())
            self._ticket = plan.ticket
        while self._copies:
            kind, source, destination, num_tokens, pool = self._copies[0]
            assert pool == 0, f"a copy in pool {pool}, and there are no window pools"
            from_pool = self._host_pool if kind == bindings.CopyKind.ONBOARD else self.pool
            to_pool = self._host_pool if kind == bindings.CopyKind.OFFLOAD else self.pool
            from_pool.copy_block(source, to_pool, destination, num_tokens)
            self._copies.popleft()
        if self._ticket:
            self.impl.copies_done(self._ticket)
            self._ticket = 0

    def append(self, scheduled: Sequence[ScheduledRequest[LlmRequest]]) -> None:
        """Makes the newest generated token of each request, and its draft, part of its sequence."""
        if not scheduled:
            return
        requests = [entry.request for entry in scheduled]
        self.impl.append_batch(_ids(requests), _newest(requests))
        for entry in scheduled:
            if entry.draft:
                self.impl.append_tokens(entry.request.request_id, np.asarray(entry.draft, np.int32))

    def take_back(self, requests: Sequence[LlmRequest]) -> None:
        """Takes what drafts have left behind the ``num_written`` tokens that hold."""
        for request in requests:
            self.impl.rewind(request.request_id, request.num_written)
        self.commit(requests)

    def grow(self, requests: Sequence[LlmRequest]) -> None:
        """Takes the place of the token that each request gets next, before it is known."""
        if requests:
            self.impl.grow_batch(_ids(requests))

    def name(self, requests: Sequence[LlmRequest]) -> None:
        """Tells the newest token of each request, whose place was taken before."""
        if requests:
            self.impl.name_batch(_ids(requests), _newest(requests))

    def commit(self, requests: Sequence[LlmRequest]) -> None:
        """Tells that each request's first ``num_written`` tokens are in the pool."""
        self.impl.commit_batch(
            _ids(requests),
            np.asarray([request.num_written for request in requests], np.int64),
        )

    def release(self, request: LlmRequest) -> None:
        """Gives back every block; what was committed stays findable, if it ever was."""
        self.impl.free_sequence(request.request_id, keep=request.prompt_scores is None)

    def block_tables(self, requests: Sequence[LlmRequest]) -> np.ndarray:
        """int32 ``[len(requests), most blocks]``, padded with -1."""
        return self.impl.block_tables(_ids(requests))

    def stats(self) -> bindings.KvCacheStats:
        """The manager's counters."""
        return self.impl.stats()

    def block_map(self) -> str:
        """The state of each block, as runs of a count and a letter."""
        return self.impl.block_map()

    def end_step(self) -> None:
        """Ends what a step has to tell, and lets priorities run out; once a step."""
        self.impl.flush_events()
        self.tell_time()

    def tell_time(self) -> None:
        """Tells the manager how late it is, since no step did while there was nothing to do."""
        self.impl.refresh(int(1e3 * time.monotonic()))

    def take_events(self, most: int) -> list[str]:
        """The oldest events, each a line of JSON; taking them removes them."""
        self.impl.flush_events()
        return self.impl.take_events(most)

    def reset_reuse_state(self) -> int:
        """Forgets all cached prefixes; running requests keep their blocks."""
        return self.impl.reset_reuse_state()


def _behind_prompt(request: LlmRequest, tokens_per_block: int) -> int:
    """Tokens from the last whole block of the prompt on, at most, that are written."""
    return max(1, request.prompt_len % tokens_per_block) + request.max_new_tokens - 1


def _ids(requests: Sequence[LlmRequest]) -> np.ndarray:
    return np.asarray([request.request_id for request in requests], np.int64)


def _newest(requests: Sequence[LlmRequest]) -> np.ndarray:
    return np.asarray([request.output_ids[-1] for request in requests], np.int32)


def _scope(request: LlmRequest) -> bindings.ReuseScope:
    # Cached keys and values do not say how likely the model found a token, so a request that asks
    # for that has a scope of its own, in which there is nothing to find.
    adapter = request.request.adapter
    return bindings.ReuseScope(
        cache_salt=request.own_salt or request.request.cache_salt,
        adapter_id=None if adapter is None else adapter.adapter_id,
        adapter_version=0 if adapter is None else adapter.version,
        adapter_mode=request.request.prompt.adapter_mode,
    )


def _media_runs(request: LlmRequest) -> bindings.MediaRuns | None:
    runs = request.media_runs
    if runs is None:
        return None
    return bindings.MediaRuns(
        digests=runs.digests,
        identified=runs.identified,
        run_items=runs.run_items,
        run_positions=runs.run_positions,
        run_lengths=runs.run_lengths,
        item_rows=runs.item_rows,
        uuids=[item.item.uuid for item in request.items],
    )
