# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""The KV cache manager in an engine that is not ours: a plain transformers loop.

    python examples/custom_engine.py

Needs nothing of this package but the identity of media and the manager. The loop runs one prompt
at a time with the model's own attention and ``DynamicCache``; keys and values live in a pool of
blocks and are gathered from the cached blocks of a prompt before it is prefilled. A small random
text model stands in for a real one; an "image" is an array whose rows are looked up from a table.
"""

from __future__ import annotations

import hashlib
import inspect
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from transformers import DynamicCache, LlamaConfig, LlamaForCausalLM

from tensorrt_llm.bindings import KVCacheManager, MediaRuns, ReuseScope

TOKENS_PER_BLOCK = 8
# Before 5.24 the argument was called past_key_values.
PARAMETERS = inspect.signature(LlamaForCausalLM.forward).parameters
CACHE = "cache" if "cache" in PARAMETERS else "past_key_values"


@dataclass(frozen=True)
class Image:
    """Rows of one item, float32 ``[rows, hidden]``, and where in the prompt the first stands."""

    rows: np.ndarray
    position: int

    @property
    def identity(self) -> np.ndarray:
        """uint8 ``[32]``: every byte counts, and so do dtype and shape."""
        digest = hashlib.sha256(f"image|{self.rows.dtype}|{self.rows.shape}|".encode())
        digest.update(np.ascontiguousarray(self.rows).tobytes())
        return np.frombuffer(digest.digest(), np.uint8)


@dataclass(frozen=True)
class Answer:
    """Generated tokens, and how many of the prompt's came from the cache."""

    token_ids: list[int]
    cached_tokens: int


class Engine:
    """Greedy generation over a pool of blocks."""

    def __init__(self, model: LlamaForCausalLM, num_blocks: int, reuse: bool = True) -> None:
        config = model.config
        self.model = model
        self.manager = KVCacheManager(num_blocks, TOKENS_PER_BLOCK, reuse)
        heads, head_dim = (
            int(config.num_key_value_heads or config.num_attention_heads),
            config.hidden_size // config.num_attention_heads,
        )
        # [layer, key or value, block, offset, head, dim]
        shape = (config.num_hidden_layers, 2, num_blocks, TOKENS_PER_BLOCK, heads, head_dim)
        self.pool = torch.zeros(shape, dtype=model.dtype)
        self.next_id = 0

    @torch.inference_mode()
    def generate(
        self,
        token_ids: list[int],
        new_tokens: int,
        image: Image | None = None,
        salt: str | None = None,
    ) -> Answer:
        """Answers one prompt; raises RuntimeError if the pool has no room for it."""
        self.next_id += 1
        sequence, prompt = self.next_id, np.asarray(token_ids, np.int32)
        added = self.manager.add_sequence(
            sequence, prompt, describe(image), ReuseScope(salt), new_tokens
        )
        if added is None:
            raise RuntimeError(f"no room for {len(prompt)} + {new_tokens} tokens")
        try:
            cached = added.cached_tokens
            cache = self.load(sequence, cached)
            embeds = self.embed(token_ids, image)[:, cached:]
            output: list[int] = []
            while True:
                logits = self.model(inputs_embeds=embeds, **{CACHE: cache}).logits
                written = cache.get_seq_length()
                self.store(sequence, cache, written - embeds.shape[1], written)
                self.manager.commit(sequence, written)  # only now may others find it
                output.append(int(logits[0, -1].argmax()))
                self.manager.append_tokens(sequence, np.asarray(output[-1:], np.int32))
                if len(output) == new_tokens:
                    return Answer(output, cached)
                embeds = self.model.get_input_embeddings()(torch.tensor([output[-1:]]))
        finally:
            self.manager.free_sequence(sequence)

    def embed(self, token_ids: list[int], image: Image | None) -> torch.Tensor:
        embeds = self.model.get_input_embeddings()(torch.tensor([token_ids]))
        if image is not None:
            end = image.position + len(image.rows)
            embeds[0, image.position : end] = torch.from_numpy(image.rows).to(embeds.dtype)
        return embeds

    def slots(self, sequence: int, begin: int, end: int) -> tuple[torch.Tensor, torch.Tensor]:
        table = torch.from_numpy(self.manager.block_ids(sequence).astype(np.int64))
        positions = torch.arange(begin, end)
        return table[positions // TOKENS_PER_BLOCK], positions % TOKENS_PER_BLOCK

    def load(self, sequence: int, cached: int) -> DynamicCache:
        cache = DynamicCache(config=self.model.config)
        blocks, offsets = self.slots(sequence, 0, cached)
        for layer in range(len(self.pool) if cached else 0):
            keys, values = self.pool[layer][:, blocks, offsets].transpose(1, 2).unsqueeze(1)
            cache.update(keys, values, layer)
        return cache

    def store(self, sequence: int, cache: DynamicCache, begin: int, end: int) -> None:
        blocks, offsets = self.slots(sequence, begin, end)
        layers: list[Any] = cache.layers
        for layer, kept in enumerate(layers):
            new = torch.stack([kept.keys, kept.values])[:, 0, :, begin:end].transpose(1, 2)
            self.pool[layer][:, blocks, offsets] = new


def describe(image: Image | None) -> MediaRuns | None:
    """The manager's view of a prompt's media: one item in one run."""
    if image is None:
        return None
    rows = np.array([len(image.rows)], np.int64)
    return MediaRuns(
        image.identity[None],
        np.ones(1, np.bool_),
        np.zeros(1, np.int32),
        np.array([image.position], np.int64),
        rows,
        rows,
    )


def tiny_model() -> LlamaForCausalLM:
    """A small random model in place of a real one."""
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=97,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        initializer_range=0.5,
    )
    return LlamaForCausalLM(config).eval()


def main() -> None:
    """The same prompt with two images, each asked twice."""
    engine = Engine(tiny_model(), num_blocks=64)
    prompt = [3, *[96] * 20, *range(10, 24)]  # 96 stands for the image's rows
    looks = np.random.default_rng(1).normal(size=(2, 20, 32)).astype(np.float32)
    for name, rows in (("first", looks[0]), ("second", looks[1])):
        for attempt in ("asked", "asked again"):
            answer = engine.generate(prompt, 6, Image(rows, 1))
            print(f"{name} image, {attempt}: {answer.token_ids}, {answer.cached_tokens} cached")


if __name__ == "__main__":
    main()
