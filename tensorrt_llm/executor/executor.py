# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""The one interface to the engine, wherever it runs: checks requests and hands out results.

``GenerationExecutor.create`` starts the engine in a process of its own (``proxy``), or in a thread
of this one (``worker``) where ``TLLM_WORKER_USE_SINGLE_PROCESS=1`` is set.
"""

from __future__ import annotations

import itertools
import threading
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

from tensorrt_llm.errors import LimitExceededError, QueueFullError, RequestError
from tensorrt_llm.executor.detokenizer import Tokenizer
from tensorrt_llm.executor.host_process import HostProcess
from tensorrt_llm.executor.request import GenerationRequest
from tensorrt_llm.executor.result import GenerationResult
from tensorrt_llm.llmapi.llm_args import LlmArgs, refuse_disaggregated, use_single_process


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
        stop_token_ids: End-of-sequence ids.
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
    stop_token_ids: frozenset[int]


@dataclass(frozen=True)
class ResolvedRequest:
    """A request that passed the checks, with what they settled.

    Attributes:
        request: The request.
        max_new_tokens: Most tokens to generate.
        stop_token_ids: Ids that end the answer.
    """

    request: GenerationRequest
    max_new_tokens: int
    stop_token_ids: frozenset[int]


class GenerationExecutor(ABC):
    """Takes requests and has them run. Safe to use from several threads.

    Attributes:
        model_info: Facts on the loaded model.

    Args:
        args: The configuration.
        tokenizer: Turns generated tokens into text; None gives token ids only.
    """

    model_info: ModelInfo

    def __init__(self, args: LlmArgs, tokenizer: Tokenizer | None) -> None:
        self._args = args
        self._tokenizer = tokenizer
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()

    @staticmethod
    def create(
        args: LlmArgs, tokenizer: Tokenizer | None, host: HostProcess | None = None
    ) -> GenerationExecutor:
        """Loads the checkpoint and starts the engine.

        Args:
            args: The configuration.
            tokenizer: As the constructor.
            host: Host that was started already, for an engine in a process of its own. It stays
                its giver's, and has to outlive the executor.

        Raises:
            ConfigurationError: If the checkpoint or the options cannot work.
            EngineError: If the engine's process cannot be started.
            NotImplementedError: If disaggregated mode is asked for.
        """
        refuse_disaggregated()
        # Imported here: a door whose engine is elsewhere never loads the engine's code.
        if use_single_process():
            from tensorrt_llm.executor.worker import GenerationExecutorWorker

            return GenerationExecutorWorker(args, tokenizer)
        from tensorrt_llm.executor.proxy import GenerationExecutorProxy

        return GenerationExecutorProxy(args, tokenizer, host)

    def submit(self, request: GenerationRequest) -> GenerationResult:
        """Checks a request against the limits and queues it.

        Raises:
            RequestError: If the prompt is empty or holds ids outside the vocabulary.
            LimitExceededError: If it can never run: longer than ``max_seq_len``, than a step may
                be, or than the whole KV pool.
            QueueFullError: If ``max_queue_size`` requests are waiting.
            EngineRestartingError: If the engine died and is being started again.
            EngineStoppedError: If the engine takes no more requests.
        """
        resolved = resolve(request, self.model_info, self._args)
        with self._lock:
            self._check_open()
            limit = self._args.max_queue_size
            if limit is not None and self.num_waiting >= limit:
                raise QueueFullError(f"{limit} requests are waiting (max_queue_size {limit})")
            result = GenerationResult(next(self._numbers), request, self._tokenizer, self.cancel)
            self._accept(resolved, result)
        self._hand_over(resolved, result)
        return result

    @abstractmethod
    def _check_open(self) -> None:
        """Raises if no request is taken now."""

    @property
    @abstractmethod
    def num_waiting(self) -> int:
        """Requests handed in and not admitted yet."""

    @abstractmethod
    def _accept(self, resolved: ResolvedRequest, result: GenerationResult) -> None:
        """Takes a request, whose updates go to ``result``. The lock is held, so quickly."""

    def _hand_over(self, resolved: ResolvedRequest, result: GenerationResult) -> None:  # noqa: B027
        """Does what is left to do for an accepted request and may take a while."""

    @abstractmethod
    def cancel(self, request_id: int) -> None:
        """Gives a request up; no effect if it has ended. Does not wait."""

    @abstractmethod
    def health_problem(self) -> str | None:
        """Why the engine cannot answer now, None if it can. Never waits for the engine."""

    def is_healthy(self) -> bool:
        """Whether the loop is alive and turns."""
        return self.health_problem() is None

    @abstractmethod
    def iteration_stats(self) -> list[dict[str, Any]]:
        """Statistics of the iterations since the last call; reading drains. Does not wait."""

    @abstractmethod
    def snapshot(self) -> dict[str, Any]:
        """Requests and caches between two steps, with the keys of ``iteration_stats``.

        Raises:
            EngineError: If the engine cannot answer.
        """

    @abstractmethod
    def reset_reuse_state(self) -> int:
        """Forgets cached blocks and encoder rows that no request uses; returns blocks dropped.

        Raises:
            EngineError: If the engine cannot answer.
        """

    @abstractmethod
    def shutdown(self) -> None:
        """Stops the engine; requests that have not finished fail. May be called again."""


def resolve(request: GenerationRequest, info: ModelInfo, args: LlmArgs) -> ResolvedRequest:
    """Checks a request against all limits and settles how long its answer may be.

    Raises:
        RequestError: As ``GenerationExecutor.submit``.
        LimitExceededError: Likewise.
    """
    sampling = request.sampling_params
    stop_ids = frozenset(sampling.stop_token_ids or ())
    return ResolvedRequest(
        request=request,
        max_new_tokens=_max_new_tokens(request, info, args),
        stop_token_ids=stop_ids if sampling.ignore_eos else stop_ids | info.stop_token_ids,
    )


def _max_new_tokens(request: GenerationRequest, info: ModelInfo, args: LlmArgs) -> int:
    prompt = request.prompt
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
    if length > args.max_num_tokens and not args.enable_chunked_prefill:
        raise LimitExceededError(
            "max_num_tokens without enable_chunked_prefill",
            length,
            args.max_num_tokens,
            "prompt tokens",
        )
    for item in prompt.items:
        longest = max(run.length for run in item.runs)
        if item.modality in info.bidirectional_modalities and longest > args.max_num_tokens:
            raise LimitExceededError(
                f"max_num_tokens (an item of kind {item.modality} runs in one step)",
                longest,
                args.max_num_tokens,
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
    return room if asked is None else wanted
