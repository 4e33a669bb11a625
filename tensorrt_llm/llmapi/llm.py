# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""The Python door: a model, ready to answer."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from types import TracebackType
from typing import Any, TypeVar, cast

import torch
from pydantic import ValidationError
from tqdm import tqdm  # type: ignore[import-untyped]

from tensorrt_llm.errors import ConfigurationError, RequestError
from tensorrt_llm.executor.executor import (
    GenerationExecutor,
    MatchReport,
    ModelInfo,
    StatsListener,
)
from tensorrt_llm.executor.host_process import HostProcess
from tensorrt_llm.executor.request import DEFAULT_PRIORITY, GenerationRequest, LoRARequest
from tensorrt_llm.executor.result import GenerationResult
from tensorrt_llm.executor.retention import KvCacheRetentionConfig
from tensorrt_llm.inputs.custom_modules import load_custom_modules
from tensorrt_llm.inputs.data import ProcessedPrompt, PromptInputs
from tensorrt_llm.inputs.media_access import MediaAccess
from tensorrt_llm.inputs.media_io import MediaLoader
from tensorrt_llm.inputs.media_memo import MediaMemo
from tensorrt_llm.inputs.model_config import load_config
from tensorrt_llm.inputs.multimodal_data import MediaHasher
from tensorrt_llm.inputs.registry import InputProcessor, create_input_processor
from tensorrt_llm.llmapi.adapters import AdapterRegistry
from tensorrt_llm.llmapi.call_arguments import is_single, refuse_arguments, spread
from tensorrt_llm.llmapi.checkpoint import (
    check_chat_template,
    check_checkpoint,
    load_tokenizer,
    read_chat_template,
)
from tensorrt_llm.llmapi.event_stream import EventStream
from tensorrt_llm.llmapi.llm_args import (
    SINGLE_PROCESS_VARIABLE,
    LlmArgs,
    refuse_disaggregated,
    use_single_process,
)
from tensorrt_llm.llmapi.preprocessor import Preprocessor
from tensorrt_llm.llmapi.reuse_policy import ReusePolicy
from tensorrt_llm.logger import get_logger
from tensorrt_llm.sampling_params import SamplingParams

RequestOutput = GenerationResult
"""The name that users know the answer by."""


_logger = get_logger(__name__)
_PACKAGE = __name__.partition(".")[0]
_POLL_SECONDS = 0.05
_Record = TypeVar("_Record")


@dataclass(frozen=True, eq=False)
class PreprocessedInputs:
    """A prompt that is ready to run, from `LLM.preprocess`.

    Attributes:
        prompt: Token ids and media items.
    """

    prompt: ProcessedPrompt

    @property
    def prompt_token_ids(self) -> list[int]:
        """The prompt's tokens with every placeholder expanded."""
        return self.prompt.token_ids.tolist()


class LLM(AbstractContextManager["LLM"]):
    """Loads a checkpoint and answers prompts.

    Media in prompts is trusted: any path or address that this process can reach is read.

    The engine runs in a process of its own, unless ``TLLM_WORKER_USE_SINGLE_PROCESS=1`` is set. If
    that process dies, the requests in it raise `EngineDiedError` and it is started again, within
    the bounds of ``engine_config``; until then `submit` raises `EngineRestartingError`.

    Attributes:
        args: The configuration.
        reuse_policy: Which kinds of prompt tokens are shared between requests.

    Args:
        model: Folder of the checkpoint, in Hugging Face format.
        tokenizer: A tokenizer or its folder; the checkpoint's by default.
        tokenizer_mode: Only ``"auto"``.
        skip_tokenizer_init: Only False.
        trust_remote_code: Accepted; code in a checkpoint is never executed.
        tensor_parallel_size: Only 1.
        dtype: ``"auto"``, ``"float32"``, ``"bfloat16"`` or ``"float16"``.
        revision: Only None.
        tokenizer_revision: Only None.
        engine_host: Host for the engine's process that was started already, to save time
            (`tensorrt_llm.executor.host_process`). It has to outlive this.
        kwargs: Further fields of `LlmArgs`, for example ``kv_cache_config``.

    Raises:
        pydantic.ValidationError: If an option is unknown or out of its range.
        ConfigurationError: If the folder is no checkpoint that can be served, or its family is
            registered by the program and the engine is to run in another process.
        EngineError: If the engine's process cannot be started.
        NotImplementedError: If the environment asks for disaggregated serving.
    """

    def __init__(
        self,
        model: str,
        tokenizer: Any = None,
        tokenizer_mode: str = "auto",
        skip_tokenizer_init: bool = False,
        trust_remote_code: bool = False,
        tensor_parallel_size: int = 1,
        dtype: str = "auto",
        revision: str | None = None,
        tokenizer_revision: str | None = None,
        *,
        engine_host: HostProcess | None = None,
        **kwargs: Any,
    ) -> None:
        refuse_disaggregated()
        try:
            self.args = LlmArgs(
                model=model,
                tokenizer=tokenizer,
                tokenizer_mode=tokenizer_mode,
                skip_tokenizer_init=skip_tokenizer_init,
                trust_remote_code=trust_remote_code,
                tensor_parallel_size=tensor_parallel_size,
                dtype=dtype,
                revision=revision,
                tokenizer_revision=tokenizer_revision,
                **kwargs,
            )
        except ValidationError as error:
            _logger.error("cannot start with these options: %s", error)
            raise
        self._closed = False
        self._event_stream: EventStream | None = None
        check_checkpoint(self.args.model)
        custom = load_custom_modules(self.args.custom_module_dirs)
        if trust_remote_code:
            _logger.info("trust_remote_code: no code of the checkpoint's folder is run")
        config = load_config(self.args.model)
        chat_template = read_chat_template(self.args.chat_template)
        self._tokenizer = load_tokenizer(self.args.tokenizer, self.args.model)
        check_chat_template(self._tokenizer, chat_template)
        # One hasher for all that identify media here: a keyed one gives digests of its own.
        self.hasher = MediaHasher(self.args.multimodal_config.hash_algorithm)
        processor = create_input_processor(self.args.model, self._tokenizer, self.hasher, config)
        _check_family(processor, custom)
        self.reuse_policy = ReusePolicy.of(self.args.kv_cache_config, processor)
        if self.reuse_policy.unsafe:
            _logger.warning("%s", self.reuse_policy.describe())
        # One memo as well: keys hold the limits of the door, so that they may share it.
        self.media_memo = MediaMemo(self.args.multimodal_config.media_memo_max_bytes)
        self._loader = MediaLoader(MediaAccess(trusted=True), self.hasher, memo=self.media_memo)
        self._executor = GenerationExecutor.create(self.args, self._tokenizer, engine_host)
        self.adapters = AdapterRegistry(self._executor, self.args.lora_config.max_loras)
        try:
            self._event_stream = self._start_event_stream()
        except ConfigurationError:
            self.shutdown()
            raise
        self.preprocessor = Preprocessor(
            processor,
            self._tokenizer,
            self.model_info.vocab_size,
            chat_template,
            self.media_memo,
        )

    @property
    def tokenizer(self) -> Any:
        """The tokenizer in use."""
        return self._tokenizer

    @property
    def model_info(self) -> ModelInfo:
        """Facts about the loaded model."""
        return self._executor.model_info

    def generate(
        self,
        inputs: PromptInputs | PreprocessedInputs | Sequence[PromptInputs | PreprocessedInputs],
        sampling_params: SamplingParams | Sequence[SamplingParams] | None = None,
        use_tqdm: bool = True,
        lora_request: LoRARequest | Sequence[LoRARequest | None] | None = None,
        prompt_adapter_request: Any = None,
        kv_cache_retention_config: KvCacheRetentionConfig | None = None,
        disaggregated_params: Any = None,
        scheduling_params: Any = None,
        conversation_params: Any = None,
        cache_salt: str | Sequence[str | None] | None = None,
        priority: float | Sequence[float] = DEFAULT_PRIORITY,
    ) -> RequestOutput | list[RequestOutput]:
        """Answers one prompt, or a list of prompts, and waits for all answers.

        Args:
            inputs: A prompt (text, token ids, or a dict with ``prompt`` or ``prompt_token_ids`` and
                media) or a list of prompts.
            sampling_params: One for all prompts, or one each; greedy by default.
            use_tqdm: Show a progress bar.
            lora_request: The adapter to answer all prompts with, or one (or None) each.
            prompt_adapter_request: Not available in this release.
            kv_cache_retention_config: How long the prompt's blocks are kept, beside others.
            disaggregated_params: Not available in this release.
            scheduling_params: Not available in this release.
            conversation_params: Not available in this release.
            cache_salt: One for all prompts, or one each: only prompts with the same salt share KV
                blocks.
            priority: 0 to 1, for all prompts or one each: who is admitted first of those who
                wait, and paused last.

        Returns:
            One answer for one prompt, a list for a list.

        Raises:
            RequestError: If a prompt is wrong. The other prompts are given up.
            EngineError: If the engine failed.
            NotImplementedError: If an argument is not available. The message names it.
            RuntimeError: After `shutdown`.
        """
        refuse_arguments(
            prompt_adapter_request=prompt_adapter_request,
            disaggregated_params=disaggregated_params,
            scheduling_params=scheduling_params,
            conversation_params=conversation_params,
        )
        single = is_single(inputs)
        prompts: list[Any] = [inputs] if single else list(cast("Sequence[Any]", inputs))
        requests = [
            self.request(*entry, retention=kv_cache_retention_config)
            for entry in zip(
                prompts,
                spread("sampling_params", sampling_params, len(prompts)),
                spread("cache_salt", cache_salt, len(prompts)),
                spread("priority", priority, len(prompts)),
                spread("lora_request", lora_request, len(prompts)),
                strict=True,
            )
        ]
        results = self._run_all(requests, use_tqdm)
        return results[0] if single else results

    def generate_async(
        self,
        inputs: PromptInputs | PreprocessedInputs,
        sampling_params: SamplingParams | None = None,
        lora_request: LoRARequest | None = None,
        prompt_adapter_request: Any = None,
        streaming: bool = False,
        kv_cache_retention_config: KvCacheRetentionConfig | None = None,
        disaggregated_params: Any = None,
        trace_headers: Any = None,
        scheduling_params: Any = None,
        conversation_params: Any = None,
        cache_salt: str | None = None,
        priority: float = DEFAULT_PRIORITY,
    ) -> RequestOutput:
        """Starts to answer one prompt.

        Args:
            inputs: A prompt, or what `preprocess` made of one.
            sampling_params: Greedy by default.
            lora_request: The adapter to answer with; None: the model's own weights.
            prompt_adapter_request: Not available in this release.
            streaming: Accepted for compatibility: every answer may be awaited or iterated. Refused
                with a beam search, whose answers are known at its end only.
            kv_cache_retention_config: How long the prompt's blocks are kept, beside others.
            disaggregated_params: Not available in this release.
            trace_headers: Not available in this release.
            scheduling_params: Not available in this release.
            conversation_params: Not available in this release.
            cache_salt: Only prompts with the same salt share KV blocks.
            priority: 0 to 1: who is admitted first of those who wait, and paused last.

        Returns:
            The answer: await it for the whole, or iterate it (``async for``) for each update.

        Raises:
            RequestError: If the prompt is wrong.
            QueueFullError: If too many requests wait already.
            NotImplementedError: If an argument is not available. The message names it.
            RuntimeError: After `shutdown`.
        """
        refuse_arguments(
            prompt_adapter_request=prompt_adapter_request,
            disaggregated_params=disaggregated_params,
            trace_headers=trace_headers,
            scheduling_params=scheduling_params,
            conversation_params=conversation_params,
        )
        if streaming and sampling_params is not None and sampling_params.use_beam_search:
            raise RequestError("not with use_beam_search", part="streaming")
        return self.submit(
            self.request(
                inputs,
                sampling_params,
                cache_salt,
                priority,
                lora_request,
                kv_cache_retention_config,
            )
        )

    def preprocess(
        self,
        inputs: PromptInputs,
        sampling_params: SamplingParams | None = None,
        disaggregated_params: Any = None,
    ) -> PreprocessedInputs:
        """Loads and identifies media, tokenises, and expands placeholders, without running.

        Args:
            inputs: A prompt.
            sampling_params: Only ``add_special_tokens`` counts here.
            disaggregated_params: Not available in this release.

        Raises:
            RequestError: If the prompt is wrong.
            RuntimeError: After `shutdown`.
        """
        refuse_arguments(disaggregated_params=disaggregated_params)
        return self._preprocess(inputs, sampling_params or SamplingParams(), None)

    def _preprocess(
        self, inputs: PromptInputs, sampling: SamplingParams, scope: str | None
    ) -> PreprocessedInputs:
        self._check_open()
        prompt = self.preprocessor.process_inputs(
            inputs, self._loader, add_special_tokens=sampling.add_special_tokens, scope=scope
        )
        return PreprocessedInputs(prompt)

    def submit(self, request: GenerationRequest) -> RequestOutput:
        """Hands a finished request to the engine: where all doors meet.

        Raises:
            LimitExceededError: If the prompt is too long.
            QueueFullError: If too many requests wait already.
            EngineRestartingError: If the engine died and is being started again.
            RuntimeError: After `shutdown`, or when the engine has stopped.
        """
        self._check_open()
        return self._executor.submit(request)

    def get_stats(self, timeout: float | None = 2) -> list[dict[str, Any]]:
        """Statistics of the iterations since the last call.

        Args:
            timeout: Seconds to wait for a first one; None or 0 does not wait.

        Raises:
            RuntimeError: After `shutdown`.
        """
        return self._polled(self._taken_stats, timeout)

    async def get_stats_async(self, timeout: float | None = 2) -> AsyncIterator[dict[str, Any]]:
        """Statistics as they come, until none has come for ``timeout`` seconds."""
        while taken := await asyncio.to_thread(self.get_stats, timeout):
            for record in taken:
                yield record

    def get_kv_cache_capacity(self) -> dict[str, int]:
        """Size of the KV pool: ``maxNumBlocks``, ``tokensPerBlock`` and ``maxNumTokens``.

        Raises:
            RuntimeError: After `shutdown`.
        """
        self._check_open()
        return {
            "maxNumBlocks": self.model_info.kv_cache_blocks,
            "tokensPerBlock": self.args.kv_cache_config.tokens_per_block,
            "maxNumTokens": self.model_info.kv_cache_tokens,
        }

    def snapshot(self) -> dict[str, Any]:
        """Requests and caches as they are between two steps, with the keys of `get_stats`."""
        self._check_open()
        return self._executor.snapshot()

    def contents(self, most_items: int = 20) -> dict[str, Any]:
        """As `snapshot`, with the state of each block and the items found most often.

        Args:
            most_items: The most encoded items to tell of.

        Returns:
            As `snapshot`, with ``items`` and ``blockMap``: runs of a count and a letter, f for
            free, c cached, h held and findable, p held and private; blocks on the host last.
        """
        self._check_open()
        return self._executor.contents(most_items)

    def flush(self) -> dict[str, int]:
        """Forgets all that was cached of earlier requests; those that run are not disturbed.

        Returns:
            What was dropped: ``blocks``, ``embeddings`` (encoded items), ``memo_entries`` (facts
            about media and prompts).
        """
        self._check_open()
        # The door's first: what it remembers may name what the engine is about to forget.
        remembered = self.media_memo.stats.entries
        self.media_memo.clear()
        return {**self._executor.flush(), "memo_entries": remembered}

    def explain(self, request: GenerationRequest, *, other_salts: bool = False) -> MatchReport:
        """How much of a request's prompt the KV cache has now, and why no more. Runs nothing.

        Args:
            request: It.
            other_salts: Also tell where requests with another salt have more.
        """
        self._check_open()
        return self._executor.explain(request, other_salts=other_salts)

    def encode(self, request: GenerationRequest) -> list[torch.Tensor]:
        """The encoder rows of a request's items, in prompt order: ``[num_rows, row_width]`` each.

        Copies on the CPU. Nothing else of the request is run; see `MultimodalEncoder`.
        """
        self._check_open()
        return self._executor.encode(request)

    def listen(self, listener: StatsListener) -> None:
        """Has a listener told of all iterations and ends of requests from now on."""
        self._executor.listen(listener)

    @property
    def num_engine_restarts(self) -> int:
        """How often the engine's process was started again."""
        return self._executor.num_restarts

    def take_kv_cache_events(self) -> list[str]:
        """What happened to cached blocks since the last call, each event as JSON text.

        Raises:
            RequestError: If no events are made.
        """
        self._check_open()
        if self._event_stream is not None:
            raise RequestError("the stream of kv_cache_config.kv_events_config reads the events")
        if not self.args.kv_cache_config.events_kept:
            raise RequestError("no events are kept: kv_cache_config.event_buffer_max_size is 0")
        return self._executor.take_events()

    def get_kv_cache_events(self, timeout: float | None = 2) -> list[dict[str, Any]]:
        """What happened to cached blocks since the last call (docs/kv-cache.md has the shapes).

        Args:
            timeout: Seconds to wait for a first event; None or 0 does not wait.

        Raises:
            RequestError: If ``kv_cache_config.event_buffer_max_size`` is 0.
        """
        return [json.loads(event) for event in self._polled(self.take_kv_cache_events, timeout)]

    async def get_kv_cache_events_async(
        self, timeout: float | None = 2
    ) -> AsyncIterator[dict[str, Any]]:
        """Events as they come, until none has come for ``timeout`` seconds."""
        while taken := await asyncio.to_thread(self.get_kv_cache_events, timeout):
            for event in taken:
                yield event

    def is_healthy(self) -> bool:
        """Whether the engine's loop turns."""
        return self.health_problem() is None

    def health_problem(self) -> str | None:
        """Why no answer can be had now, None if one can. Never waits for the engine."""
        return "this LLM is shut down" if self._closed else self._executor.health_problem()

    def shutdown(self) -> None:
        """Stops the engine; requests still running fail. A second call does nothing."""
        if not self._closed:
            self._closed = True
            if self._event_stream is not None:
                self._event_stream.close()
            self._executor.shutdown()

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.shutdown()

    def request(
        self,
        inputs: PromptInputs | PreprocessedInputs,
        sampling_params: SamplingParams | None,
        cache_salt: str | None,
        priority: float = DEFAULT_PRIORITY,
        lora_request: LoRARequest | None = None,
        retention: KvCacheRetentionConfig | None = None,
    ) -> GenerationRequest:
        """What `generate_async` submits for the same arguments.

        Raises:
            RequestError: If the prompt, or an argument, is wrong.
            RuntimeError: After `shutdown`.
        """
        if cache_salt is not None and not cache_salt.strip():
            raise RequestError("must not be blank", part="cache_salt")
        sampling = SamplingParams() if sampling_params is None else sampling_params
        if not isinstance(inputs, PreprocessedInputs):
            inputs = self._preprocess(inputs, sampling, cache_salt)
        return GenerationRequest(
            inputs.prompt,
            sampling,
            cache_salt,
            priority,
            retention=retention,
            adapter=self.adapters.resolve(lora_request),
        )

    def _run_all(
        self, requests: Sequence[GenerationRequest], use_tqdm: bool
    ) -> list[RequestOutput]:
        results: list[RequestOutput] = []
        try:
            for request in requests:
                results.append(self.submit(request))
            with tqdm(total=len(results), desc="requests", disable=not use_tqdm) as bar:
                for result in results:
                    result.result()
                    bar.update()
        except BaseException:
            # Nobody will read the others any more.
            for result in results:
                result.abort()
            raise
        return results

    def _taken_stats(self) -> list[dict[str, Any]]:
        self._check_open()
        return self._executor.iteration_stats()

    def _polled(self, take: Callable[[], list[_Record]], timeout: float | None) -> list[_Record]:
        """What is there now, or as soon as there is something."""
        end = time.monotonic() + (timeout or 0.0)
        while not (taken := take()):
            left = end - time.monotonic()
            if left <= 0:
                break
            time.sleep(min(left, _POLL_SECONDS))
        return taken

    def _start_event_stream(self) -> EventStream | None:
        cache = self.args.kv_cache_config
        if cache.kv_events_config is None or not cache.kv_events_config.active:
            return None
        take = self._executor.take_events
        return EventStream(cache.kv_events_config, cache.tokens_per_block, take)

    def _check_open(self) -> None:
        if self._closed:
            raise RuntimeError("this LLM is shut down")


def _check_family(processor: InputProcessor, custom: frozenset[str]) -> None:
    kind = type(processor)
    package = kind.__module__.partition(".")[0]
    if not use_single_process() and package not in (_PACKAGE, *custom):
        raise ConfigurationError(
            f"{kind.__module__}.{kind.__qualname__} was registered by this program, and the "
            "engine's process does not know it: name its package in custom_module_dirs, or run the "
            f"engine here with {SINGLE_PROCESS_VARIABLE}=1"
        )
