# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""The one interface to the engine, wherever it runs: checks requests and hands out results.

``GenerationExecutor.create`` starts the engine in a process of its own (``proxy``), or in a thread
of this one (``worker``) where ``TLLM_WORKER_USE_SINGLE_PROCESS=1`` is set.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol, TypeAlias

import torch

from tensorrt_llm.errors import LimitExceededError, QueueFullError, RequestError
from tensorrt_llm.executor.detokenizer import Tokenizer
from tensorrt_llm.executor.grammar import grammar_of
from tensorrt_llm.executor.host_process import HostProcess
from tensorrt_llm.executor.request import AdapterIdentity, GenerationRequest
from tensorrt_llm.executor.result import GenerationResult, RequestEnd
from tensorrt_llm.executor.unshared import unshared_tokens
from tensorrt_llm.llmapi.llm_args import LlmArgs, refuse_disaggregated, use_single_process
from tensorrt_llm.sampling_params import SamplingParams

Question: TypeAlias = Literal[
    "snapshot", "contents", "reset_reuse_state", "flush", "take_events", "explain"
]
"""What the engine's loop can be asked between two steps."""

STATS_HISTORY = 1000
"""Most iterations kept for a reader of statistics."""

EVENTS_AT_ONCE = 1024
"""Most events on cached blocks that are named between two steps."""


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
        bad_words: Token sequences that must not come.
        grammar: What the answer has to be; None if it may be anything.
    """

    request: GenerationRequest
    max_new_tokens: int
    stop_token_ids: frozenset[int]
    bad_words: tuple[tuple[int, ...], ...] = ()
    grammar: str | None = None


@dataclass(frozen=True)
class MatchReport:
    """How much of a prompt is cached, and why no more; docs/kv-cache.md lists the reasons.

    Attributes:
        cached_tokens: Leading tokens that a request would find.
        reason: Why not more.
        block: Index of the block at which the match ends.
        position: Index of the first token that is not shared.
        evicted_ms: Where it was cached and given up: how long ago, in milliseconds.
    """

    cached_tokens: int
    reason: str
    block: int
    position: int
    evicted_ms: int | None = None


class StatsListener(Protocol):
    """Hears what happens, in the thread that serves all requests: must not wait or raise."""

    def iterated(self, record: dict[str, Any]) -> None:
        """An iteration, as in ``iteration_stats``."""

    def request_ended(self, end: RequestEnd) -> None:
        """A request left the engine."""


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
        self._adapters: dict[AdapterIdentity, str] = {}
        self._lock = threading.Lock()
        self._stats: deque[dict[str, Any]] = deque(maxlen=STATS_HISTORY)
        self._listener: StatsListener | None = None

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
            RequestError: If the prompt is empty or holds ids outside the vocabulary, or a sampling
                option does not fit to the model.
            LimitExceededError: If it can never run: longer than ``max_seq_len``, than a step may
                be, or than the whole KV pool.
            QueueFullError: If ``max_queue_size`` requests are waiting.
            EngineRestartingError: If the engine died and is being started again.
            EngineStoppedError: If the engine takes no more requests.
        """
        resolved = resolve(request, self.model_info, self._args, self._tokenizer)
        with self._lock:
            self._check_open()
            limit = self._args.max_queue_size
            if limit is not None and self.num_waiting >= limit:
                raise QueueFullError(f"{limit} requests are waiting (max_queue_size {limit})")
            result = GenerationResult(next(self._numbers), request, self._tokenizer, self.cancel)
            cache = self._args.kv_cache_config
            result.unshared_tokens = unshared_tokens(
                request,
                reuses=cache.enable_block_reuse,
                tokens_per_block=cache.tokens_per_block,
            )
            result.on_end = None if self._listener is None else self._listener.request_ended
            for _ in range(1, request.sampling_params.num_sequences):
                next(self._numbers)
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
        """Gives an answer up, by its number; no effect if it has ended. Does not wait."""

    @abstractmethod
    def health_problem(self) -> str | None:
        """Why the engine cannot answer now, None if it can. Never waits for the engine."""

    def is_healthy(self) -> bool:
        """Whether the loop is alive and turns."""
        return self.health_problem() is None

    def iteration_stats(self) -> list[dict[str, Any]]:
        """Statistics of the iterations since the last call; reading drains. Does not wait."""
        drained = []
        with contextlib.suppress(IndexError):  # another thread may read as well
            while True:
                drained.append(self._stats.popleft())
        return drained

    def listen(self, listener: StatsListener) -> None:
        """Has a listener told of all iterations and ends of requests from now on."""
        self._listener = listener

    @property
    def num_restarts(self) -> int:
        """How often the engine was started again."""
        return 0

    def _keep_stats(self, records: list[dict[str, Any]]) -> None:
        self._stats.extend(records)
        if self._listener is not None:
            for record in records:
                self._listener.iterated(record)

    def snapshot(self) -> dict[str, Any]:
        """Requests and caches between two steps, with the keys of ``iteration_stats``.

        Raises:
            EngineError: If the engine cannot answer.
        """
        return self._ask("snapshot")

    def contents(self, most_items: int) -> dict[str, Any]:
        """As ``snapshot``, with ``blockMap`` and ``items``: for people who look.

        Takes a millisecond for 100,000 blocks, between two steps.

        Args:
            most_items: The most encoded items, those found most often, to tell of.

        Returns:
            In ``blockMap`` the state of each block as runs of a count and a letter: f is free, c
            cached, h held and findable, p held and private; those on the host last.

        Raises:
            EngineError: If the engine cannot answer.
        """
        return self._ask("contents", most_items=most_items)

    def reset_reuse_state(self) -> int:
        """Forgets cached blocks and encoder rows that no request uses; returns blocks dropped.

        Raises:
            EngineError: If the engine cannot answer.
        """
        return self._ask("reset_reuse_state")

    def flush(self) -> dict[str, int]:
        """Forgets cached blocks and encoder rows, also those that requests use now.

        Requests go on with what they have, and nobody finds it after them.

        Returns:
            Dropped ``blocks`` and ``embeddings``.

        Raises:
            EngineError: If the engine cannot answer.
        """
        return self._ask("flush")

    def take_events(self) -> list[str]:
        """What happened to cached blocks since the last call, each event as JSON text.

        Raises:
            EngineError: If the engine cannot answer.
        """
        taken: list[str] = []
        # No more than were there at the start, so that a busy engine does not keep this going.
        while len(taken) < self._args.kv_cache_config.events_kept:
            some = self._ask("take_events", most=EVENTS_AT_ONCE)
            taken += some
            if len(some) < EVENTS_AT_ONCE:
                break
        return taken

    def explain(self, request: GenerationRequest, *, other_salts: bool = False) -> MatchReport:
        """How much of a request's prompt the KV cache has now, and why no more. Runs nothing.

        Args:
            request: It; its media need no encoder inputs.
            other_salts: Also tell where requests with another salt have more.

        Raises:
            EngineError: If the engine cannot answer.
        """
        bare = tuple(replace(item, encoder_inputs={}) for item in request.prompt.items)
        request = replace(request, prompt=replace(request.prompt, items=bare))
        return MatchReport(**self._ask("explain", request, other_salts=other_salts))

    def encode(self, request: GenerationRequest) -> list[torch.Tensor]:
        """The encoder rows of a request's items, in prompt order. Runs nothing else, and waits.

        Rows of items that were encoded before come from the store, and those that are new go there.

        Returns:
            Of each item ``[num_rows, row_width]``, a copy on the CPU.

        Raises:
            EngineError: If an encoder fails, or the engine cannot answer.
        """
        # All at hand: nobody asks the door for them while this waits.
        whole = tuple(
            replace(item, encoder_inputs=dict(item.encoder_inputs)) for item in request.prompt.items
        )
        return self._encode(replace(request, prompt=replace(request.prompt, items=whole)))

    @abstractmethod
    def _encode(self, request: GenerationRequest) -> list[torch.Tensor]: ...

    @abstractmethod
    def _ask(
        self, name: Question, request: GenerationRequest | None = None, **arguments: Any
    ) -> Any:
        """Has the loop answer between two steps, and waits for it.

        Args:
            name: The question.
            request: The request that it is about, if any.
            arguments: Plain values by name.
        """

    def load_adapter(self, path: str) -> AdapterIdentity:
        """Reads an adapter's folder (see ``_torch.peft``) and makes it ready for requests.

        An engine that is started again has it again, unless the folder has changed.

        Args:
            path: The folder.

        Returns:
            What requests name it by. Loading the same content again changes nothing.

        Raises:
            ConfigurationError: If it cannot be read, or does not fit the model.
            EngineError: If the engine cannot answer.
        """
        identity = self._load_adapter(os.path.abspath(path))
        self._adapters[identity] = os.path.abspath(path)
        return identity

    def unload_adapter(self, identity: AdapterIdentity) -> None:
        """Takes no more requests with that adapter; those that run go on to their end.

        Raises:
            EngineError: If the engine cannot answer.
        """
        self._adapters.pop(identity, None)
        self._unload_adapter(identity)

    @abstractmethod
    def _load_adapter(self, path: str) -> AdapterIdentity: ...

    @abstractmethod
    def _unload_adapter(self, identity: AdapterIdentity) -> None: ...

    @abstractmethod
    def shutdown(self) -> None:
        """Stops the engine; requests that have not finished fail. May be called again."""


def resolve(
    request: GenerationRequest, info: ModelInfo, args: LlmArgs, tokenizer: Tokenizer | None
) -> ResolvedRequest:
    """Checks a request against all limits and settles how long its answer may be.

    Raises:
        RequestError: As ``GenerationExecutor.submit``.
        LimitExceededError: Likewise.
    """
    sampling = request.sampling_params
    stop_ids = frozenset(sampling.stop_token_ids or ())
    for name, ids in (
        ("logit_bias", sampling.logit_bias or ()),
        ("bad_token_ids", sampling.bad_token_ids or ()),
    ):
        for token_id in ids:
            if not 0 <= token_id < info.vocab_size:
                raise RequestError(
                    f"token id {token_id} is outside the vocabulary of {info.vocab_size}", part=name
                )
    stop_ids = stop_ids if sampling.ignore_eos else stop_ids | info.stop_token_ids
    if sampling.use_beam_search:
        _check_beams(sampling.num_sequences, len(stop_ids), info, args)
    guided = sampling.guided_decoding
    if guided is not None and tokenizer is None:
        raise RequestError("needs a tokenizer, and there is none", part="guided_decoding")
    return ResolvedRequest(
        request=request,
        max_new_tokens=_max_new_tokens(request, info, args),
        stop_token_ids=stop_ids,
        bad_words=tuple(dict.fromkeys(_bad_words(sampling, tokenizer))),
        grammar=None if guided is None else grammar_of(guided),
    )


def _check_beams(width: int, num_stop_ids: int, info: ModelInfo, args: LlmArgs) -> None:
    for name in ("max_beam_width", "max_batch_size", "max_num_tokens"):
        most = getattr(args, name)
        if most is not None and width > most:
            raise LimitExceededError(name, width, most, "beams", part="best_of")
    # The first step takes so many candidates off one row, so that enough go on if some end there.
    most = info.vocab_size // max(2, 1 + num_stop_ids)
    if width > most:
        raise LimitExceededError("what the vocabulary allows", width, most, "beams", part="best_of")


def _tokens_of_a_beam(width: int, length: int, info: ModelInfo, args: LlmArgs) -> int:
    """The most new tokens for which the pool holds all beams behind the prompt that they share."""
    size = args.kv_cache_config.tokens_per_block
    blocks = (info.kv_cache_blocks - length // size) // width
    return max(0, blocks) * size - max(1, length % size) + 1


def _bad_words(sampling: SamplingParams, tokenizer: Tokenizer | None) -> Iterator[tuple[int, ...]]:
    """Each text as it is and with a space before it, as it stands inside a sentence."""
    if sampling.bad_list and tokenizer is None:
        raise RequestError("needs a tokenizer, and there is none", part="bad")
    for text in sampling.bad_list:
        assert tokenizer is not None
        for form in (text, f" {text.lstrip()}"):
            token_ids = tokenizer.encode(form, add_special_tokens=False)
            if token_ids:
                yield tuple(token_ids)


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
    sampling = request.sampling_params
    if sampling.use_beam_search:
        room = min(room, _tokens_of_a_beam(sampling.num_sequences, length, info, args))
    asked = sampling.max_tokens
    wanted = min(1 if asked is None else asked, info.max_seq_len - length)
    if wanted > room and sampling.use_beam_search:
        raise LimitExceededError(
            f"what the KV cache holds for each of {sampling.num_sequences} beams",
            wanted,
            max(0, room),
            "new tokens",
        )
    if wanted > room:
        raise LimitExceededError(
            "the KV cache (kv_cache_config.max_tokens)",
            length + wanted - 1,
            info.kv_cache_tokens,
            "tokens of prompt and answer",
        )
    return room if asked is None else wanted
