# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: E402 - its imports need what is installed above them
"""SGLang's Rust prefix tree at the work of `kv_cache_manager.py`; run by SGLang's own Python.

    echo | build/rivals/sglang/bin/python -m benchmarks.rival_sglang [--blocks N] [--seconds S]

Timed is what its cache does with the tree for a request: match, lock what was found, evict what the
request's new pages need, insert, unlock, and where events are read take them. Its pool of slots and
its request table are left out. Media has no place in its key: the rows of an image are tokens made
from the image's hash, which is not timed.
"""

from __future__ import annotations

import gc
import importlib.metadata
import time
from array import array
from typing import Any

import numpy as np
import torch
import torch._dynamo
from transformers import AutoProcessor, image_transforms, processing_utils  # noqa: F401

from benchmarks.absent_packages import AbsentPackages

# What its tree is imported beside and does not use. torch and transformers look for some of them
# too, so those parts of theirs that do are imported above.
AbsentPackages(
    "compressed_tensors cuda flashinfer gguf pynvml sgl_kernel torchcodec torchvision tvm_ffi"
).install()

from sglang.srt.mem_cache.base_prefix_cache import InsertParams, MatchPrefixParams
from sglang.srt.mem_cache.cache_init_params import CacheInitParams
from sglang.srt.mem_cache.radix_cache import RadixKey
from sglang.srt.mem_cache.rust_tree_core.adapter import RustUnifiedTreeCore
from sglang.srt.mem_cache.unified_cache.component_type import ComponentType

from benchmarks.rivals import Figure, answer
from benchmarks.shared_prefix import (
    IMAGE_POSITION,
    IMAGE_ROWS,
    OWN_TOKENS,
    PROMPT_LENGTH,
    SHARED_TOKENS,
    TOKENS_PER_BLOCK,
    VOCABULARY,
    Prompts,
)

FULL = ComponentType.FULL


class Workload:
    """A tree and requests for it."""

    def __init__(self, blocks: int, events: str) -> None:
        self.tree = RustUnifiedTreeCore(
            CacheInitParams(
                disable=False,
                req_to_token_pool=None,
                token_to_kv_pool_allocator=None,
                page_size=TOKENS_PER_BLOCK,
                tree_components=(FULL,),
                enable_kv_cache_events=events != "off",
            )
        )
        self.capacity = blocks * TOKENS_PER_BLOCK
        self.events = events
        self.prompts = Prompts()
        # Ids beyond the vocabulary stand for rows, one id an image.
        rows = VOCABULARY + self.prompts.digests[:, :4].copy().view(np.uint32).astype(np.int64)
        self.row_tokens = rows
        self.slots = torch.arange(PROMPT_LENGTH, dtype=torch.int64)
        self.full = False

    @property
    def cached(self) -> int:
        """Tokens in the tree."""
        return self.tree.evictable_size() + self.tree.protected_size()

    def fill(self) -> None:
        """Brings the tree to where every new page evicts one."""
        while self.cached + OWN_TOKENS <= self.capacity:
            self.turn()
        self.full = True
        gc.collect()
        gc.freeze()

    def turn(self) -> float:
        """Seconds for one request."""
        chosen, drawn = self.prompts.draw(1)
        ids = drawn[0].astype(np.int64)
        ids[IMAGE_POSITION : IMAGE_POSITION + IMAGE_ROWS] = self.row_tokens[chosen[0]]
        tokens, tree, clock = array("q", ids.tobytes()), self.tree, time.perf_counter
        evicted = 0
        start = clock()
        key = RadixKey(tokens)
        found = tree.match_prefix(MatchPrefixParams(key=key))
        lock = tree.inc_lock_ref(found.last_device_node)
        if self.full:
            evicted = self.evict(PROMPT_LENGTH - found.device_prefix_len)
        step = tree.begin_insert(InsertParams(key=key, value=self.slots))
        while step.result is None:
            step = tree.resume_insert()
        tree.end_insert()
        tree.dec_lock_ref(found.last_device_node, lock.to_dec_params())
        happened = tree.take_events() if self.events == "read" else []
        end = clock()
        happened = happened or tree.take_events()
        if self.full and (found.device_prefix_len, evicted) != (SHARED_TOKENS, OWN_TOKENS):
            raise RuntimeError(
                f"{found.device_prefix_len} cached and {evicted} evicted tokens, "
                f"expected {SHARED_TOKENS} and {OWN_TOKENS}"
            )
        if bool(happened) != (self.events != "off"):
            raise RuntimeError(f"{len(happened)} events though they are {self.events}")
        return end - start

    def evict(self, tokens: int) -> int:
        """Evicts leaves until so many tokens are free, as its cache does; gives their number."""
        tree, freed = self.tree, {FULL: 0}
        tree.evict_device_start(FULL, tokens)
        try:
            while freed[FULL] < tokens:
                step = tree.evict_device_next_node(FULL, freed)
                freed[FULL] += self.drain(step)
                if step.node_id is not None:
                    freed[FULL] += self.drain(tree.evict_device_leaf(step.node_id, False))
                elif not step.made_progress:
                    break
        finally:
            tree.evict_device_end(FULL)
        return freed[FULL]

    @staticmethod
    def drain(step: Any) -> int:
        """Takes what a step freed, as its pool would, and gives the number of tokens."""
        step.device_frees.clear()
        step.host_frees.clear()
        step.cache_actions.clear()
        return step.tracker.get(FULL, 0)


def prepare(blocks: int) -> list[Figure]:
    """With events first, where every page has a name as ours has."""
    figures = []
    for events in ("read", "on", "off"):
        workload = Workload(blocks, events)
        workload.fill()
        figures.append(Figure("Rust prefix tree, pages of 32", events, workload.turn))
    return figures


if __name__ == "__main__":
    answer(importlib.metadata.version("sglang"), prepare)
