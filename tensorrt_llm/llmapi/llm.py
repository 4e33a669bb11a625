# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""The Python door: a model, ready to answer."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from types import TracebackType
from typing import Any, cast

from pydantic import ValidationError
from tqdm import tqdm  # type: ignore[import-untyped]

from tensorrt_llm.errors import ConfigurationError, RequestError
from tensorrt_llm.executor.executor import GenerationExecutor, ModelInfo
from tensorrt_llm.executor.host_process import HostProcess
from tensorrt_llm.executor.request import DEFAULT_PRIORITY, GenerationRequest
from tensorrt_llm.executor.result import GenerationResult
from tensorrt_llm.inputs.data import ProcessedPrompt, PromptInputs
from tensorrt_llm.inputs.media_access import MediaAccess
from tensorrt_llm.inputs.media_io import MediaLoader
from tensorrt_llm.inputs.media_memo import MediaMemo
from tensorrt_llm.inputs.model_config import load_config
from tensorrt_llm.inputs.multimodal_data import MediaHasher
from tensorrt_llm.inputs.registry import InputProcessor, create_input_processor
from tensorrt_llm.llmapi.checkpoint import check_checkpoint, load_tokenizer, read_chat_template
from tensorrt_llm.llmapi.llm_args import (
    SINGLE_PROCESS_VARIABLE,
    LlmArgs,
    refuse_disaggregated,
    use_single_process,
)
from tensorrt_llm.llmapi.preprocessor import Preprocessor
from tensorrt_llm.logger import get_logger
from tensorrt_llm.sampling_params import SamplingParams

RequestOutput = GenerationResult
"""The name that users know the answer by."""


_logger = get_logger(__name__)
_PACKAGE = __name__.partition(".")[0]


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
        check_checkpoint(self.args.model)
        config = load_config(self.args.model)
        chat_template = read_chat_template(self.args.chat_template)
        self._tokenizer = load_tokenizer(self.args.tokenizer, self.args.model)
        # One hasher for all that identify media here: a keyed one gives digests of its own.
        self.hasher = MediaHasher(self.args.multimodal_config.hash_algorithm)
        processor = create_input_processor(self.args.model, self._tokenizer, self.hasher, config)
        _check_family(processor)
        # One memo as well: keys hold the limits of the door, so that they may share it.
        self.media_memo = MediaMemo(self.args.multimodal_config.media_memo_max_bytes)
        self._loader = MediaLoader(MediaAccess(trusted=True), self.hasher, memo=self.media_memo)
        self._executor = GenerationExecutor.create(self.args, self._tokenizer, engine_host)
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
        lora_request: Any = None,
        prompt_adapter_request: Any = None,
        kv_cache_retention_config: Any = None,
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
            lora_request: Not available in this release.
            prompt_adapter_request: Not available in this release.
            kv_cache_retention_config: Not available in this release.
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
        _refuse(
            lora_request=lora_request,
            prompt_adapter_request=prompt_adapter_request,
            kv_cache_retention_config=kv_cache_retention_config,
            disaggregated_params=disaggregated_params,
            scheduling_params=scheduling_params,
            conversation_params=conversation_params,
        )
        single = _is_single(inputs)
        prompts: list[Any] = [inputs] if single else list(cast("Sequence[Any]", inputs))
        requests = [
            self._request(*entry)
            for entry in zip(
                prompts,
                _spread("sampling_params", sampling_params, len(prompts)),
                _spread("cache_salt", cache_salt, len(prompts)),
                _spread("priority", priority, len(prompts)),
                strict=True,
            )
        ]
        results = self._run_all(requests, use_tqdm)
        return results[0] if single else results

    def generate_async(
        self,
        inputs: PromptInputs | PreprocessedInputs,
        sampling_params: SamplingParams | None = None,
        lora_request: Any = None,
        prompt_adapter_request: Any = None,
        streaming: bool = False,
        kv_cache_retention_config: Any = None,
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
            lora_request: Not available in this release.
            prompt_adapter_request: Not available in this release.
            streaming: Accepted for compatibility: every answer may be awaited or iterated.
            kv_cache_retention_config: Not available in this release.
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
        _refuse(
            lora_request=lora_request,
            prompt_adapter_request=prompt_adapter_request,
            kv_cache_retention_config=kv_cache_retention_config,
            disaggregated_params=disaggregated_params,
            trace_headers=trace_headers,
            scheduling_params=scheduling_params,
            conversation_params=conversation_params,
        )
        return self.submit(self._request(inputs, sampling_params, cache_salt, priority))

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
        _refuse(disaggregated_params=disaggregated_params)
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

    def get_stats(self) -> list[dict[str, Any]]:
        """Statistics of the iterations since the last call."""
        self._check_open()
        return self._executor.iteration_stats()

    def snapshot(self) -> dict[str, Any]:
        """Requests and caches as they are between two steps, with the keys of `get_stats`."""
        self._check_open()
        return self._executor.snapshot()

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
            self._executor.shutdown()

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.shutdown()

    def _request(
        self,
        inputs: PromptInputs | PreprocessedInputs,
        sampling_params: SamplingParams | None,
        cache_salt: str | None,
        priority: float,
    ) -> GenerationRequest:
        if cache_salt is not None and not cache_salt.strip():
            raise RequestError("must not be blank", part="cache_salt")
        sampling = SamplingParams() if sampling_params is None else sampling_params
        if not isinstance(inputs, PreprocessedInputs):
            inputs = self._preprocess(inputs, sampling, cache_salt)
        return GenerationRequest(inputs.prompt, sampling, cache_salt, priority)

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

    def _check_open(self) -> None:
        if self._closed:
            raise RuntimeError("this LLM is shut down")


def _is_single(inputs: Any) -> bool:
    if isinstance(inputs, list):
        return bool(inputs) and all(type(token) is int for token in inputs)
    return not isinstance(inputs, tuple)


def _spread(name: str, value: Any, count: int) -> Sequence[Any]:
    """One value for each prompt: the same for all, or a list in step with the prompts."""
    if not isinstance(value, list | tuple):
        return [value] * count
    if len(value) != count:
        raise ValueError(f"{name} has {len(value)} entries for {count} prompts")
    return value


def _check_family(processor: InputProcessor) -> None:
    kind = type(processor)
    if not use_single_process() and not kind.__module__.startswith(f"{_PACKAGE}."):
        raise ConfigurationError(
            f"{kind.__module__}.{kind.__qualname__} was registered by this program, and the "
            f"engine's process does not know it; {SINGLE_PROCESS_VARIABLE}=1 runs the engine here"
        )


def _refuse(**arguments: Any) -> None:
    for name, value in arguments.items():
        if value is not None:
            raise NotImplementedError(f"{name} is not available in this release; leave it unset")
