# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Owns the engine: loads the model, starts the loop, admits requests, hands out results."""

from __future__ import annotations

import itertools
import threading
from dataclasses import dataclass
from typing import Any

import torch
from transformers import GenerationConfig, PretrainedConfig

from tensorrt_llm._torch.attention_backend import SdpaAttention
from tensorrt_llm._torch.models import DecoderModel, load_model
from tensorrt_llm._torch.pyexecutor.embedding_store import EmbeddingStore
from tensorrt_llm._torch.pyexecutor.item_encoder import ItemEncoder
from tensorrt_llm._torch.pyexecutor.iteration_stats import IterationStats
from tensorrt_llm._torch.pyexecutor.llm_request import LlmRequest
from tensorrt_llm._torch.pyexecutor.model_engine import ModelEngine
from tensorrt_llm._torch.pyexecutor.py_executor import PyExecutor
from tensorrt_llm._torch.pyexecutor.resource_manager import KVCacheManager
from tensorrt_llm._torch.pyexecutor.sampler import Sampler
from tensorrt_llm._torch.pyexecutor.scheduler import MicroBatchScheduler, capacity_policy
from tensorrt_llm.errors import (
    ConfigurationError,
    EngineStoppedError,
    LimitExceededError,
    QueueFullError,
    RequestError,
)
from tensorrt_llm.executor.detokenizer import Tokenizer
from tensorrt_llm.executor.request import GenerationRequest
from tensorrt_llm.executor.result import GenerationResult
from tensorrt_llm.inputs.model_config import load_config
from tensorrt_llm.llmapi.llm_args import LlmArgs, refuse_disaggregated

# A turn of the loop that takes longer than this counts as stuck.
STALL_SECONDS = 120.0


@dataclass(frozen=True)
class ModelInfo:
    """Facts on the loaded model and its limits.

    Attributes:
        model_type: The configuration's ``model_type``.
        modalities: Media it takes, beside text.
        bidirectional_modalities: Of these, the kinds whose rows attend to all rows of their run.
        max_seq_len: Most tokens of prompt and answer together.
        vocab_size: Number of token ids.
        dtype: Of the weights.
        device: Where it runs.
        kv_cache_blocks: Blocks in the KV pool.
        kv_cache_tokens: Tokens the KV pool holds.
    """

    model_type: str
    modalities: tuple[str, ...]
    bidirectional_modalities: frozenset[str]
    max_seq_len: int
    vocab_size: int
    dtype: str
    device: str
    kv_cache_blocks: int
    kv_cache_tokens: int


class GenerationExecutor:
    """Takes requests and runs them. Safe to use from several threads.

    Args:
        model: The loaded model.
        args: The configuration.
        stop_token_ids: End-of-sequence ids of the model.
        tokenizer: Turns generated tokens into text; None gives token ids only.
    """

    def __init__(
        self,
        model: DecoderModel,
        args: LlmArgs,
        stop_token_ids: frozenset[int],
        tokenizer: Tokenizer | None,
    ) -> None:
        self._args = args
        self._eos = stop_token_ids
        self._tokenizer = tokenizer
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()
        self._open = True
        kv_cache = KVCacheManager(args.kv_cache_config, model)
        media = args.multimodal_config
        store = EmbeddingStore(
            media.encoder_cache_max_bytes,
            # On the CPU the device's memory is the host's: a second level would be the first.
            0 if model.device.type == "cpu" else media.encoder_cache_host_max_bytes,
        )
        self._stats = IterationStats(args.max_batch_size, args.max_num_tokens, model.device)
        self.model_info = ModelInfo(
            model_type=model.hf_model.config.model_type,
            modalities=model.modalities,
            bidirectional_modalities=model.bidirectional_modalities,
            max_seq_len=model.max_seq_len,
            vocab_size=model.vocab_size,
            dtype=str(model.dtype).removeprefix("torch."),
            device=str(model.device),
            kv_cache_blocks=kv_cache.geometry.num_blocks,
            kv_cache_tokens=kv_cache.max_tokens,
        )
        self._engine = PyExecutor(
            engine=ModelEngine(model, kv_cache.pool, SdpaAttention()),
            kv_cache=kv_cache,
            encoder=ItemEncoder(model, store),
            store=store,
            scheduler=MicroBatchScheduler(
                max_batch_size=args.max_batch_size,
                max_num_tokens=args.max_num_tokens,
                enable_chunked_prefill=args.enable_chunked_prefill,
            ),
            capacity=capacity_policy(
                args.scheduler_config.capacity_scheduler_policy,
                kv_cache.geometry.tokens_per_block,
            ),
            sampler=Sampler(),
            stats=self._stats,
        )
        self._engine.start()

    @classmethod
    def create(cls, args: LlmArgs, tokenizer: Tokenizer | None) -> GenerationExecutor:
        """Loads the checkpoint and starts the engine.

        Raises:
            ConfigurationError: If the checkpoint or the options cannot work.
            NotImplementedError: If disaggregated mode is asked for.
        """
        refuse_disaggregated()
        config = load_config(args.model)
        device = _resolve_device(args.device)
        model = load_model(
            args.model,
            config,
            dtype=_resolve_dtype(args.dtype, config, device),
            device=device,
            max_seq_len=_resolve_max_seq_len(args.max_seq_len, config),
        )
        return cls(model, args, _end_of_sequence_ids(args.model, config), tokenizer)

    def submit(self, request: GenerationRequest) -> GenerationResult:
        """Checks a request against the limits and queues it.

        Raises:
            RequestError: If the prompt is empty or holds ids outside the vocabulary.
            LimitExceededError: If it can never run: longer than ``max_seq_len``, than a step may
                be, or than the whole KV pool.
            QueueFullError: If ``max_queue_size`` requests are waiting.
            EngineStoppedError: If the engine takes no more requests.
        """
        max_new_tokens = self._check_limits(request)
        with self._lock:
            if not self._open or not self._engine.alive:
                raise EngineStoppedError("the engine takes no more requests")
            limit = self._args.max_queue_size
            if limit is not None and self._engine.num_waiting >= limit:
                raise QueueFullError(f"{limit} requests are waiting (max_queue_size {limit})")
            result = GenerationResult(
                next(self._numbers), request, self._tokenizer, self._engine.cancel
            )
            sampling = request.sampling_params
            stop_ids = frozenset(sampling.stop_token_ids or ())
            self._engine.submit(
                LlmRequest(
                    request_id=result.request_id,
                    request=request,
                    max_new_tokens=max_new_tokens,
                    stop_token_ids=stop_ids if sampling.ignore_eos else stop_ids | self._eos,
                    push=result.push,
                    whole_modalities=self.model_info.bidirectional_modalities,
                )
            )
        return result

    def is_healthy(self) -> bool:
        """Whether the loop is alive and turns."""
        return self._engine.alive and self._engine.seconds_since_last_turn < STALL_SECONDS

    def iteration_stats(self) -> list[dict[str, Any]]:
        """Statistics of the iterations since the last call; reading drains."""
        return self._stats.drain()

    def snapshot(self) -> dict[str, Any]:
        """Requests and caches between two steps, with the keys of ``iteration_stats``."""
        return self._engine.snapshot().result()

    def reset_reuse_state(self) -> int:
        """Forgets cached blocks and encoder rows that no request uses; returns blocks dropped."""
        return self._engine.reset_reuse_state().result()

    def shutdown(self) -> None:
        """Stops the engine; requests that have not finished fail. May be called again."""
        with self._lock:
            self._open = False
        self._engine.stop()

    def _check_limits(self, request: GenerationRequest) -> int:
        """Raises what ``submit`` documents; returns the most tokens to generate."""
        prompt, info = request.prompt, self.model_info
        length = len(prompt)
        if length == 0:
            raise RequestError("the prompt holds no tokens")
        lowest, highest = int(prompt.token_ids.min()), int(prompt.token_ids.max())
        if lowest < 0 or highest >= info.vocab_size:
            wrong = lowest if lowest < 0 else highest
            raise RequestError(f"token id {wrong} is outside the vocabulary of {info.vocab_size}")
        if length >= info.max_seq_len:
            # One token at least has to be generated.
            raise LimitExceededError("max_seq_len", length + 1, info.max_seq_len, "tokens")
        if length > self._args.max_num_tokens and not self._args.enable_chunked_prefill:
            raise LimitExceededError(
                "max_num_tokens without enable_chunked_prefill",
                length,
                self._args.max_num_tokens,
                "prompt tokens",
            )
        for item in prompt.items:
            longest = max(run.length for run in item.runs)
            whole = item.modality in info.bidirectional_modalities
            if whole and longest > self._args.max_num_tokens:
                raise LimitExceededError(
                    f"max_num_tokens (an item of kind {item.modality} runs in one step)",
                    longest,
                    self._args.max_num_tokens,
                    "rows",
                    part=item.part,
                )
        # The last generated token is never written to the pool.
        room = min(info.max_seq_len - length, info.kv_cache_tokens - length + 1)
        asked = request.sampling_params.max_tokens
        wanted = min(1 if asked is None else asked, info.max_seq_len - length)
        if wanted > room:
            raise LimitExceededError(
                "the KV cache (kv_cache_config.max_tokens)",
                length + wanted - 1,
                info.kv_cache_tokens,
                "tokens of prompt and answer",
            )
        max_new_tokens = room if asked is None else wanted
        return max_new_tokens


def _resolve_device(name: str) -> torch.device:
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    if name == "cuda" and not torch.cuda.is_available():
        raise ConfigurationError("device: cuda asked for, but torch sees no CUDA device")
    return torch.device(name, 0) if name == "cuda" else torch.device(name)


def _resolve_dtype(name: str, config: PretrainedConfig, device: torch.device) -> torch.dtype:
    if name != "auto":
        return getattr(torch, name)
    stored = config.dtype or config.get_text_config(decoder=True).dtype
    if stored is None:
        return torch.bfloat16 if device.type == "cuda" else torch.float32
    return getattr(torch, stored) if isinstance(stored, str) else stored


def _resolve_max_seq_len(asked: int | None, config: PretrainedConfig) -> int:
    limit = getattr(config.get_text_config(decoder=True), "max_position_embeddings", None)
    if limit is None and asked is None:
        raise ConfigurationError("max_seq_len: the checkpoint does not say; set it")
    if limit is None or asked is None:
        return asked or int(limit or 0)
    if asked > limit:
        raise ConfigurationError(f"max_seq_len: {asked} tokens, but the model takes {limit}")
    return asked


def _end_of_sequence_ids(model_path: str, config: PretrainedConfig) -> frozenset[int]:
    try:
        ids = GenerationConfig.from_pretrained(model_path, local_files_only=True).eos_token_id
    except OSError:
        ids = config.get_text_config(decoder=True).eos_token_id
    if ids is None:
        return frozenset()
    return frozenset([ids] if isinstance(ids, int) else ids)
