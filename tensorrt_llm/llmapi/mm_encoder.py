# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""The encoders of a model alone: media in, embedding rows out.

The rows may be given to any `LLM` of the same checkpoint in place of the media:

    rows = encoder.generate({"prompt": text, "multi_modal_data": {"image": picture}})
    llm.generate({"prompt": text, "multi_modal_embeddings": rows.multi_modal_embeddings})

Items that come as rows are identified by the rows. So they share KV blocks with the same rows, and
never with the picture that they were made of, for who sends rows may have made them any way.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Generator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, cast

import torch
from tqdm import tqdm  # type: ignore[import-untyped]

from tensorrt_llm.errors import ConfigurationError, RequestError
from tensorrt_llm.inputs.data import ProcessedItem, ProcessedPrompt, PromptInputs
from tensorrt_llm.inputs.multimodal_data import EmbeddingData
from tensorrt_llm.llmapi.llm import LLM, PreprocessedInputs, is_single
from tensorrt_llm.sampling_params import SamplingParams

# The decoder is not run, so that its cache takes no room.
_POOL_BLOCKS = 2
# The media of so many prompts are loaded at a time; the encoders take turns.
_THREADS = 4


@dataclass(frozen=True, eq=False)
class EncoderOutput:
    """The rows of a prompt's media.

    Attributes:
        request_id: Number of the call.
        prompt: The prompt text, if there was one.
        prompt_token_ids: The prompt with placeholders expanded.
        multi_modal_embeddings: By modality the rows of each item ``[num_rows, row_width]``, in the
            model's dtype, on the CPU, in the order in which the items were given; with their grid
            (``EmbeddingData``) where they stand on one. An `LLM` takes it under this name.
        multimodal_hashes: Likewise 64 hex digits that identify the item; None if nothing does.
        finished: True, as there is nothing to stream.
    """

    request_id: int
    prompt: str | None
    prompt_token_ids: list[int] = field(repr=False)
    multi_modal_embeddings: dict[str, list[torch.Tensor | EmbeddingData]] = field(repr=False)
    multimodal_hashes: dict[str, list[str | None]]
    finished: bool = True


class PendingEncoderOutput:
    """Rows that are being made: await them, or wait with ``result``."""

    def __init__(self, future: Future[EncoderOutput]) -> None:
        self._future = future

    def result(self, timeout: float | None = None) -> EncoderOutput:
        """Waits for the rows.

        Args:
            timeout: Most seconds to wait.

        Raises:
            TimeoutError: If they are not there in time.
            TrtllmError: If they cannot be made.
        """
        return self._future.result(timeout)

    def __await__(self) -> Generator[None, None, EncoderOutput]:
        # Imported late: the module is large, and a plain program has no use for it.
        import asyncio

        return asyncio.wrap_future(self._future).__await__()


class MultimodalEncoder(AbstractContextManager["MultimodalEncoder"]):
    """Loads a checkpoint and encodes media.

    The engine runs in a process of its own, as that of `LLM`. The whole checkpoint is loaded; the
    decoder gets a KV pool of two blocks and never runs. Rows are kept for repeats within
    ``multimodal_config.encoder_cache_max_bytes``.

    Args:
        model: Folder of the checkpoint, in Hugging Face format.
        trust_remote_code: Accepted; code in a checkpoint is never executed.
        tensor_parallel_size: Only 1.
        dtype: ``"auto"``, ``"float32"``, ``"bfloat16"`` or ``"float16"``.
        kwargs: As for `LLM`.

    Raises:
        pydantic.ValidationError: If an option is unknown or out of its range.
        ConfigurationError: If the folder is no checkpoint that can be served, or the model has no
            encoders.
        EngineError: If the engine's process cannot be started.
    """

    def __init__(
        self,
        model: str,
        trust_remote_code: bool = False,
        tensor_parallel_size: int = 1,
        dtype: str = "auto",
        **kwargs: Any,
    ) -> None:
        kwargs.setdefault(
            "kv_cache_config", {"tokens_per_block": 32, "max_tokens": 32 * _POOL_BLOCKS}
        )
        self._numbers = itertools.count(1)
        self._llm = LLM(
            model,
            trust_remote_code=trust_remote_code,
            tensor_parallel_size=tensor_parallel_size,
            dtype=dtype,
            **kwargs,
        )
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="trtllm-encode")
        if not self._llm.preprocessor.modalities:
            self.shutdown()
            raise ConfigurationError(f"{model}: this model has no encoders: it takes text only")

    def generate(
        self,
        inputs: PromptInputs | PreprocessedInputs | Sequence[PromptInputs | PreprocessedInputs],
        use_tqdm: bool = True,
        cache_salt: str | None = None,
    ) -> EncoderOutput | list[EncoderOutput]:
        """Encodes the media of one prompt, or of a list of prompts, and waits for all.

        Args:
            inputs: As for `LLM.generate`; each has media.
            use_tqdm: Show a progress bar.
            cache_salt: Only prompts with the same salt share kept rows.

        Returns:
            One output for one prompt, a list for a list.

        Raises:
            RequestError: If a prompt is wrong, or has no media.
            EngineError: If an encoder failed.
            RuntimeError: After `shutdown`.
        """
        single = is_single(inputs)
        prompts: list[Any] = [inputs] if single else list(cast("Sequence[Any]", inputs))
        pending = [self.generate_async(prompt, cache_salt=cache_salt) for prompt in prompts]
        with tqdm(total=len(pending), desc="prompts", disable=not use_tqdm) as bar:
            outputs = []
            for one in pending:
                outputs.append(one.result())
                bar.update()
        return outputs[0] if single else outputs

    def generate_async(
        self,
        inputs: PromptInputs | PreprocessedInputs,
        sampling_params: SamplingParams | None = None,
        cache_salt: str | None = None,
    ) -> PendingEncoderOutput:
        """Starts to encode the media of one prompt.

        Args:
            inputs: As for `LLM.generate_async`.
            sampling_params: Only ``add_special_tokens`` counts here.
            cache_salt: As for `generate`.

        Returns:
            The output: await it, or call its ``result``, which raise as `generate` does.

        Raises:
            RuntimeError: After `shutdown`.
        """
        work = self._threads.submit(
            self._encode, inputs, sampling_params or SamplingParams(), cache_salt
        )
        return PendingEncoderOutput(work)

    def preprocess(
        self, inputs: PromptInputs, sampling_params: SamplingParams | None = None
    ) -> PreprocessedInputs:
        """As `LLM.preprocess`."""
        return self._llm.preprocess(inputs, sampling_params)

    def get_stats(self, timeout: float | None = 2) -> dict[str, Any]:
        """What is kept and how often encoders ran, with the keys of `LLM.get_stats`."""
        return self._llm.snapshot()

    def shutdown(self) -> None:
        """Stops the engine, after what has begun. A second call does nothing."""
        self._threads.shutdown(cancel_futures=True)
        self._llm.shutdown()

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.shutdown()

    def _encode(
        self,
        inputs: PromptInputs | PreprocessedInputs,
        sampling: SamplingParams,
        cache_salt: str | None,
    ) -> EncoderOutput:
        request = self._llm.request(inputs, sampling, cache_salt)
        prompt = request.prompt
        if not prompt.items:
            raise RequestError("the prompt has no media to encode", part="multi_modal_data")
        return _output(next(self._numbers), prompt, self._llm.encode(request))


def _output(
    request_id: int, prompt: ProcessedPrompt, rows: Sequence[torch.Tensor]
) -> EncoderOutput:
    embeddings: dict[str, list[torch.Tensor | EmbeddingData]] = {}
    hashes: dict[str, list[str | None]] = {}
    # Placeholders may name items in another order than they were given in.
    pairs = sorted(zip(prompt.items, rows, strict=True), key=lambda pair: _number(pair[0]))
    for item, own in pairs:
        placed = own if item.grid is None else EmbeddingData(own, item.grid)
        embeddings.setdefault(item.modality, []).append(placed)
        identity = None if item.identity is None else item.identity.hex()
        hashes.setdefault(item.modality, []).append(identity)
    return EncoderOutput(request_id, prompt.text, prompt.token_ids.tolist(), embeddings, hashes)


def _number(item: ProcessedItem) -> int:
    """Which of its modality's items it was in the caller's dict."""
    found = re.search(r"\[(\d+)\]$", item.part or "")
    return int(found[1]) if found is not None else 0
