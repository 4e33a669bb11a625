# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""vLLM's KVCacheManager at the work of `kv_cache_manager.py`; run by vLLM's own Python.

    echo | build/rivals/vllm/bin/python -m benchmarks.rival_vllm [--blocks N] [--seconds S]

Timed is what its engine core does with a request: it makes a Request of what the front end sent,
which hashes the blocks, looks for cached blocks, allocates (and thereby caches) the others, frees.
"""

from __future__ import annotations

import gc
import time
from itertools import count

import torch
import vllm
from vllm.multimodal.inputs import MultiModalFeatureSpec, PlaceholderRange
from vllm.sampling_params import SamplingParams
from vllm.utils.hashing import get_hash_fn_by_name
from vllm.v1.core.kv_cache_manager import KVCacheManager
from vllm.v1.core.kv_cache_utils import get_request_block_hasher, init_none_hash
from vllm.v1.engine import EngineCoreRequest
from vllm.v1.kv_cache_interface import FullAttentionSpec, KVCacheConfig, KVCacheGroupSpec
from vllm.v1.request import Request

from benchmarks.rivals import Figure, answer
from benchmarks.shared_prefix import (
    IMAGE_POSITION,
    IMAGE_ROWS,
    OWN_BLOCKS,
    SHARED_TOKENS,
    TOKENS_PER_BLOCK,
    Prompts,
)


class Workload:
    """A manager and requests for it."""

    def __init__(self, blocks: int, hash_name: str, events: str) -> None:
        spec = FullAttentionSpec(
            block_size=TOKENS_PER_BLOCK, num_kv_heads=8, head_size=128, dtype=torch.bfloat16
        )
        # One block more, for the manager keeps one for itself.
        config = KVCacheConfig(blocks + 1, [], [KVCacheGroupSpec(["layer"], spec)])
        self.manager = KVCacheManager(
            config,
            max_model_len=8192,
            scheduler_block_size=TOKENS_PER_BLOCK,
            hash_block_size=TOKENS_PER_BLOCK,
            log_stats=True,
            enable_kv_cache_events=events != "off",
        )
        self.hasher = get_request_block_hasher(TOKENS_PER_BLOCK, get_hash_fn_by_name(hash_name))
        self.blocks = blocks
        self.events = events
        self.prompts = Prompts()
        self.numbers = count()
        self.parameters = SamplingParams(max_tokens=1, temperature=0.0)
        self.full = False

    @property
    def cached(self) -> int:
        """Blocks that a request could find."""
        return len(self.manager.block_pool.cached_block_hash_to_block)

    def fill(self) -> None:
        """Brings the pool to where every new block evicts one."""
        while self.cached < self.blocks:
            self.turn()
        self.full = True
        # As its engine does before it serves.
        gc.collect()
        gc.freeze()

    def request(self) -> EngineCoreRequest:
        """One request as the engine core gets it."""
        chosen, tokens = self.prompts.draw(1)
        digest = self.prompts.digests[chosen[0]].tobytes().hex()
        image = MultiModalFeatureSpec(
            data=None,
            modality="image",
            identifier=digest,
            mm_position=PlaceholderRange(offset=IMAGE_POSITION, length=IMAGE_ROWS),
            mm_hash=digest,
        )
        return EngineCoreRequest(
            request_id=str(next(self.numbers)),
            prompt_token_ids=tokens[0].tolist(),
            mm_features=[image],
            sampling_params=self.parameters,
            pooling_params=None,
            arrival_time=0.0,
            lora_request=None,
            cache_salt=None,
            data_parallel_rank=None,
        )

    def turn(self) -> float:
        """Seconds for one request."""
        return sum(self.parts())

    def parts(self) -> tuple[float, float]:
        """Seconds for the making of one request, and for what the manager does with it."""
        sent, manager, clock = self.request(), self.manager, time.perf_counter
        start = clock()
        request = Request.from_engine_core_request(sent, self.hasher)
        made = clock()
        found, cached, _ = manager.get_computed_blocks(request)
        given = manager.allocate_slots(request, request.num_tokens - cached, cached, found)
        manager.free(request)
        happened = manager.take_events() if self.events == "read" else []
        end = clock()
        happened = happened or manager.take_events()
        if given is None or (self.full and cached != SHARED_TOKENS):
            raise RuntimeError(f"{cached} cached tokens, expected {SHARED_TOKENS}")
        # Every request brings new blocks; that no more are cached shows that as many were evicted.
        if self.full and self.cached != self.blocks:
            raise RuntimeError(f"{self.cached} blocks cached, expected {self.blocks}")
        if self.full and self.events != "off":
            removed = sum(
                len(e.block_hashes) for e in happened if type(e).__name__ == "BlockRemoved"
            )
            if removed != OWN_BLOCKS:
                raise RuntimeError(f"events name {removed} evicted blocks, expected {OWN_BLOCKS}")
        return made - start, end - made


def prepare(blocks: int) -> list[Figure]:
    """The default hash first, the manager alone, the faster hash, the default with events."""
    # Once, for all workloads of the process begin their chains of hashes with it.
    init_none_hash(get_hash_fn_by_name("sha256"))
    filled = {}
    for hash_name, events in (("sha256", "off"), ("xxhash", "off"), ("sha256", "read")):
        filled[hash_name, events] = workload = Workload(blocks, hash_name, events)
        workload.fill()
    whole = [
        Figure(f"KVCacheManager and Request with its {hash_name} block hashes", events, work.turn)
        for (hash_name, events), work in filled.items()
    ]
    plain = filled["sha256", "off"]
    alone = Figure("KVCacheManager alone, the hashes given", "off", lambda: plain.parts()[1])
    return [whole[0], alone, *whole[1:]]


if __name__ == "__main__":
    answer(vllm.__version__, prepare)
