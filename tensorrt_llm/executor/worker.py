# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Loads the model and owns the engine's loop; the executor for an engine in this process."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from transformers import GenerationConfig, PretrainedConfig
from transformers.utils import GENERATION_CONFIG_NAME

from tensorrt_llm._torch.attention_backend import AttentionBackend, choose_backend
from tensorrt_llm._torch.models import DecoderModel, load_model
from tensorrt_llm._torch.peft import LoraAdapter, read_peft_folder
from tensorrt_llm._torch.pyexecutor.cuda_graphs import DecoderGraphs, graph_bytes
from tensorrt_llm._torch.pyexecutor.drafter import Drafter
from tensorrt_llm._torch.pyexecutor.drafts import PromptLookup
from tensorrt_llm._torch.pyexecutor.embedding_store import EmbeddingStore
from tensorrt_llm._torch.pyexecutor.guide import GuideFactory
from tensorrt_llm._torch.pyexecutor.item_encoder import ItemEncoder
from tensorrt_llm._torch.pyexecutor.iteration_stats import IterationStats
from tensorrt_llm._torch.pyexecutor.llm_request import LlmRequest
from tensorrt_llm._torch.pyexecutor.model_engine import ModelEngine
from tensorrt_llm._torch.pyexecutor.py_executor import PyExecutor
from tensorrt_llm._torch.pyexecutor.resource_manager import KVCacheManager
from tensorrt_llm._torch.pyexecutor.sampler import Sampler
from tensorrt_llm._torch.pyexecutor.scheduler import MicroBatchScheduler, capacity_policy
from tensorrt_llm.errors import ConfigurationError, EngineStoppedError, RequestError
from tensorrt_llm.executor.detokenizer import Tokenizer, tokenizer_json
from tensorrt_llm.executor.executor import GenerationExecutor, ModelInfo, Question, ResolvedRequest
from tensorrt_llm.executor.item_preparer import ItemPreparer
from tensorrt_llm.executor.request import AdapterIdentity, GenerationRequest
from tensorrt_llm.executor.result import GenerationResult, GenerationUpdate
from tensorrt_llm.inputs.custom_modules import load_custom_modules
from tensorrt_llm.inputs.model_config import load_config
from tensorrt_llm.llmapi.llm_args import LlmArgs, NGramDecodingConfig


@dataclass(frozen=True, eq=False)
class LoadedEngine:
    """A loop that has not started, over a loaded model.

    Attributes:
        loop: The loop.
        stats: Its iterations.
        info: Facts on the model.
        guides: Makes guides for it.
        model: The model.
        encoder: Its encoders; the loop's.
        adapters: Adapters that requests may name.
        max_lora_rank: Highest rank of such an adapter.
    """

    loop: PyExecutor
    stats: IterationStats
    info: ModelInfo
    guides: GuideFactory
    model: DecoderModel
    encoder: ItemEncoder
    adapters: dict[AdapterIdentity, LoraAdapter]
    max_lora_rank: int

    def submit(
        self, request_id: int, resolved: ResolvedRequest, push: Callable[[GenerationUpdate], object]
    ) -> None:
        """Queues a request.

        Args:
            request_id: Its number, not used before, nor those of its other answers behind it.
            resolved: The request.
            push: Takes its updates, in the loop's thread.

        Raises:
            RequestError: If its adapter is not loaded.
            EngineError: If its answer cannot be guided.
        """
        adapters = self._adapters_of(resolved.request)
        sampling, arrival = resolved.request.sampling_params, time.monotonic()
        seed = secrets.randbits(64) if sampling.seed is None else sampling.seed
        guide = None if resolved.grammar is None else self.guides.make(resolved.grammar)
        first, *others = (
            LlmRequest(
                request_id=request_id + index,
                request=resolved.request,
                max_new_tokens=resolved.max_new_tokens,
                stop_token_ids=resolved.stop_token_ids,
                push=push,
                arrival=arrival,
                index=index,
                seed=(seed + index) % 2**64,
                bad_words=resolved.bad_words,
                guide=guide.fork() if guide is not None and index else guide,
                whole_modalities=self.info.bidirectional_modalities,
                adapters=adapters,
            )
            for index in range(sampling.num_sequences)
        )
        if sampling.use_beam_search:
            for one in (first, *others):
                one.beams = (first, *others)
        else:
            first.others = tuple(others)
        self.loop.submit(first)

    def encode_now(self, request: GenerationRequest) -> list[torch.Tensor]:
        """The rows of a request's items, of which nothing else is run; in the loop's thread.

        Returns:
            Of each item ``[num_rows, row_width]``, on the CPU.

        Raises:
            EngineError: If an encoder fails.
        """
        adapters = self._adapters_of(request)
        unborn = LlmRequest(0, request, 1, frozenset(), push=lambda _: None, adapters=adapters)
        return self.encoder.encode_alone(unborn)

    def _adapters_of(self, request: GenerationRequest) -> tuple[LoraAdapter, ...]:
        mode = self.model.mode_adapters.get(request.prompt.adapter_mode)
        wanted = request.adapter
        asked = None if wanted is None else self.adapters.get(wanted)
        if wanted is not None and asked is None:
            raise RequestError(
                "the adapter is not loaded any more: it was unloaded, or its folder has changed "
                "since; load it again",
                part="model",
            )
        return tuple(adapter for adapter in (mode, asked) if adapter is not None)

    def load_adapter(self, path: str) -> AdapterIdentity:
        """Reads an adapter; in the caller's thread, but for what touches the model.

        Raises:
            ConfigurationError: If it cannot be read, or does not fit the model.
        """
        read = read_peft_folder(path)
        if read.rank > self.max_lora_rank:
            raise ConfigurationError(
                f"{path}: of rank {read.rank}; lora_config.max_lora_rank is {self.max_lora_rank}"
            )
        adapter = self.model.lora.fitted(read, path)
        identity = AdapterIdentity.of(adapter.digest)
        if identity not in self.adapters:
            # The layers are the loop's.
            self.loop.call(partial(self.model.lora.attach, adapter)).result()
            self.adapters[identity] = adapter
        return identity

    def unload_adapter(self, identity: AdapterIdentity) -> None:
        """Takes no more requests with it."""
        self.adapters.pop(identity, None)


def load_engine(
    args: LlmArgs,
    request_items: Callable[[LlmRequest, Collection[int]], None],
    on_turn: Callable[[], None] | None = None,
    *,
    tokenizer: Callable[[], str | None],
) -> LoadedEngine:
    """Loads the checkpoint and builds the loop around it.

    Args:
        args: The configuration.
        request_items: As ``PyExecutor``.
        on_turn: Likewise.
        tokenizer: As ``GuideFactory``.

    Raises:
        ConfigurationError: If the checkpoint or the options cannot work.
    """
    load_custom_modules(args.custom_module_dirs)
    config = load_config(args.model)
    device = _resolve_device(args.device)
    model = load_model(
        args.model,
        config,
        dtype=_resolve_dtype(args.dtype, config, device),
        device=device,
        max_seq_len=_resolve_max_seq_len(args.max_seq_len, config),
    )
    backend = choose_backend(
        args.attn_backend,
        num_heads=model.num_heads,
        num_kv_heads=model.num_kv_heads,
        dtype=model.dtype,
        device=device,
    )
    sizes = _graph_sizes(args, backend)
    kv_cache = KVCacheManager(args.kv_cache_config, model, graph_bytes(model, sizes))
    graphs = DecoderGraphs(model, kv_cache.pool, backend, sizes) if sizes else None
    media = args.multimodal_config
    store = EmbeddingStore(
        media.encoder_cache_max_bytes,
        # On the CPU the device's memory is the host's: a second level would be the first.
        0 if model.device.type == "cpu" else media.encoder_cache_host_max_bytes,
    )
    stats = IterationStats(args.max_batch_size, args.max_num_tokens, model.device)
    encoder = ItemEncoder(model, store)
    loop = PyExecutor(
        engine=ModelEngine(model, kv_cache.pool, backend, graphs),
        kv_cache=kv_cache,
        encoder=encoder,
        store=store,
        scheduler=MicroBatchScheduler(
            max_batch_size=args.max_batch_size,
            max_num_tokens=args.max_num_tokens,
            enable_chunked_prefill=args.enable_chunked_prefill,
        ),
        capacity=capacity_policy(
            args.scheduler_config.capacity_scheduler_policy, kv_cache.geometry.tokens_per_block
        ),
        sampler=Sampler(),
        drafter=Drafter(_lookup(args.speculative_config), args.max_num_tokens),
        stats=stats,
        request_items=request_items,
        on_turn=on_turn,
        # How many tokens a step with guesses brings is not known while it runs.
        overlap=not args.disable_overlap_scheduler and args.speculative_config is None,
    )
    stop_token_ids = _end_of_sequence_ids(args.model, config)
    info = _model_info(model, kv_cache, stop_token_ids)
    guides = GuideFactory(tokenizer, model.vocab_size, stop_token_ids)
    rank = args.lora_config.max_lora_rank
    return LoadedEngine(loop, stats, info, guides, model, encoder, {}, rank)


class GenerationExecutorWorker(GenerationExecutor):
    """The engine in a thread of this process.

    Args:
        args: The configuration.
        tokenizer: As the base class.

    Raises:
        ConfigurationError: If the checkpoint or the options cannot work.
    """

    def __init__(self, args: LlmArgs, tokenizer: Tokenizer | None) -> None:
        super().__init__(args, tokenizer)
        self._open = True
        self._loaded = load_engine(
            args,
            self._request_items,
            self._end_turn,
            tokenizer=lambda: tokenizer_json(tokenizer),
        )
        self._engine = self._loaded.loop
        self.model_info = self._loaded.info
        self._preparer = ItemPreparer(
            lambda request_id, index, inputs: self._engine.provide_items(
                request_id, {index: inputs}
            ),
            lambda request_id, error: self._engine.fail(request_id, "preparing its media", error),
            self._engine.has,
        )
        self._engine.start()

    @property
    def num_waiting(self) -> int:
        """Requests handed in and not admitted yet; exact between steps."""
        return self._engine.num_waiting

    def cancel(self, request_id: int) -> None:
        """As the base class."""
        self._engine.cancel(request_id)

    def health_problem(self) -> str | None:
        """As the base class."""
        if not self._engine.alive:
            return "the engine has stopped"
        seconds = self._engine.seconds_since_last_turn
        if seconds >= self._args.engine_config.stall_seconds:
            return f"the engine's loop has not turned for {seconds:.0f} s"
        return None

    def iteration_stats(self) -> list[dict[str, Any]]:
        """As the base class."""
        # Who has an answer finds it counted, though the turn that brought it may not have ended.
        self._end_turn()
        return super().iteration_stats()

    def _end_turn(self) -> None:
        self._keep_stats(self._loaded.stats.drain())

    def _load_adapter(self, path: str) -> AdapterIdentity:
        self._check_open()
        return self._loaded.load_adapter(path)

    def _unload_adapter(self, identity: AdapterIdentity) -> None:
        self._loaded.unload_adapter(identity)

    def shutdown(self) -> None:
        """As the base class."""
        with self._lock:
            self._open = False
        self._engine.stop()
        # The last to go: until it has stopped the loop may ask for items.
        self._preparer.close()

    def _ask(
        self, name: Question, request: GenerationRequest | None = None, **arguments: Any
    ) -> Any:
        if request is not None:
            arguments["request"] = request
        answer = partial(getattr(self._engine, f"{name}_now"), **arguments)
        return self._engine.call(answer).result()

    def _encode(self, request: GenerationRequest) -> list[torch.Tensor]:
        self._check_open()
        return self._engine.call(partial(self._loaded.encode_now, request)).result()

    def _check_open(self) -> None:
        if not self._open or not self._engine.alive:
            raise EngineStoppedError("the engine takes no more requests")

    def _accept(self, resolved: ResolvedRequest, result: GenerationResult) -> None:
        self._loaded.submit(result.request_id, resolved, result.push)

    def _request_items(self, request: LlmRequest, indices: Collection[int]) -> None:
        self._preparer.request(request.request_id, request.request.prompt.items, indices)


def _lookup(config: NGramDecodingConfig | None) -> PromptLookup | None:
    if config is None:
        return None
    return PromptLookup(config.max_draft_len, config.max_matching_ngram_size)


def _model_info(
    model: DecoderModel, kv_cache: KVCacheManager, stop_token_ids: frozenset[int]
) -> ModelInfo:
    return ModelInfo(
        model_type=model.hf_model.config.model_type,
        modalities=model.modalities,
        bidirectional_modalities=model.bidirectional_modalities,
        max_seq_len=model.max_seq_len,
        vocab_size=model.vocab_size,
        dtype=str(model.dtype).removeprefix("torch."),
        device=str(model.device),
        kv_cache_blocks=kv_cache.geometry.num_blocks,
        kv_cache_tokens=kv_cache.max_tokens,
        stop_token_ids=stop_token_ids,
    )


def _graph_sizes(args: LlmArgs, backend: AttentionBackend) -> tuple[int, ...]:
    """Batch sizes to capture; none where the backend's launches cannot be."""
    if args.cuda_graph_config is None or backend.tile_tokens is None:
        return ()
    return args.cuda_graph_config.sizes(args.max_batch_size)


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
    ids = config.get_text_config(decoder=True).eos_token_id
    written = Path(model_path, GENERATION_CONFIG_NAME)
    if written.exists():
        try:
            ids = GenerationConfig.from_pretrained(model_path, local_files_only=True).eos_token_id
        except (OSError, ValueError, TypeError) as error:
            # Going on without it would mean answers that do not end where the model ends them.
            raise ConfigurationError(f"{written}: not readable: {error}") from error
    if ids is None:
        return frozenset()
    return frozenset([ids] if isinstance(ids, int) else ids)
