# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Writes results of the engine in the shapes of the OpenAI API, whole or chunk by chunk."""

from __future__ import annotations

import time
import uuid
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from tensorrt_llm.executor.result import CompletionOutput, GenerationResult, TokenLogprobs
from tensorrt_llm.serve.openai_protocol import (
    Answer,
    ChatChoice,
    ChatChunkChoice,
    ChatCompletionChunk,
    ChatCompletionResponse,
    ChatDelta,
    ChatLogprob,
    ChatLogprobs,
    ChatMessage,
    CompletionChoice,
    CompletionLogprobs,
    CompletionResponse,
    PromptTokensDetails,
    TopLogprob,
    Usage,
)


def usage_of(results: Sequence[GenerationResult]) -> Usage:
    """Counts the tokens of one or more results."""
    prompt = sum(len(result.request.prompt) for result in results)
    completion = sum(result.outputs[0].length for result in results)
    rows: dict[str, int] = {}
    for result in results:
        for item in result.request.prompt.items:
            name = f"{item.modality}_tokens"
            rows[name] = rows.get(name, 0) + item.num_rows
    cached = sum(result.cached_tokens for result in results)
    return Usage(
        prompt_tokens=prompt,
        completion_tokens=completion,
        total_tokens=prompt + completion,
        prompt_tokens_details=PromptTokensDetails(cached_tokens=cached, **rows),
    )


def _ending(output: CompletionOutput) -> dict[str, Any]:
    """How an answer ended; ``stop_reason`` stands only where it did."""
    if output.finish_reason is None:
        return {"finish_reason": None}
    return {"finish_reason": output.finish_reason, "stop_reason": output.stop_reason}


class AnswerWriter(ABC):
    """Writes the answer to one HTTP request.

    Args:
        model: Name of the model, as served.
        tokenizer: Spells tokens for log-probabilities.
        include_usage: End a stream with the usage.
        continuous_usage: Put the usage so far on every chunk.
    """

    prefix: str

    def __init__(
        self, model: str, tokenizer: Any, *, include_usage: bool, continuous_usage: bool
    ) -> None:
        self._id = f"{self.prefix}-{uuid.uuid4().hex}"
        self._created = int(time.time())
        self._model = model
        self._tokenizer = tokenizer
        self._include_usage = include_usage
        self._continuous_usage = continuous_usage

    @abstractmethod
    def response(self, results: Sequence[GenerationResult]) -> Answer:
        """The whole answer."""

    def opening(self, result: GenerationResult) -> Answer | None:
        """The chunk before the first token, if there is one."""
        return None

    def update(self, result: GenerationResult) -> Answer | None:
        """The chunk for what the latest update added; None if there is nothing to tell."""
        output = result.outputs[0]
        if not (output.text_diff or output.logprobs_diff or output.finish_reason):
            return None
        return self._chunk([self._added(output)], self._usage_so_far(result))

    def closing(self, result: GenerationResult) -> Answer | None:
        """The chunk after the last token, if the request asked for usage."""
        return self._chunk([], {"usage": usage_of([result])}) if self._include_usage else None

    @abstractmethod
    def _added(self, output: CompletionOutput) -> Any:
        """What the latest update added to an answer."""

    @abstractmethod
    def _chunk(self, choices: list[Any], usage: Mapping[str, Usage]) -> Answer:
        """One event with these choices."""

    def _usage_so_far(self, result: GenerationResult) -> dict[str, Usage]:
        return {"usage": usage_of([result])} if self._continuous_usage else {}

    def _spell(self, token_id: int) -> str:
        return self._tokenizer.decode([token_id], skip_special_tokens=False)


class ChatWriter(AnswerWriter):
    """Writes answers of ``/v1/chat/completions``."""

    prefix = "chatcmpl"

    def response(self, results: Sequence[GenerationResult]) -> Answer:
        """The whole answer."""
        choices = []
        for index, result in enumerate(results):
            output = result.outputs[0]
            choices.append(
                ChatChoice(
                    index=index,
                    message=ChatMessage(role="assistant", content=output.text),
                    logprobs=self._logprobs(output.logprobs),
                    finish_reason=output.finish_reason,
                    stop_reason=output.stop_reason,
                )
            )
        return ChatCompletionResponse(
            id=self._id,
            object="chat.completion",
            created=self._created,
            model=self._model,
            choices=choices,
            usage=usage_of(results),
        )

    def opening(self, result: GenerationResult) -> Answer | None:
        """The chunk that names the role."""
        choice = ChatChunkChoice(
            index=0,
            delta=ChatDelta(role="assistant", content=""),
            logprobs=None,
            finish_reason=None,
        )
        return self._chunk([choice], self._usage_so_far(result))

    def _added(self, output: CompletionOutput) -> ChatChunkChoice:
        return ChatChunkChoice(
            index=0,
            delta=ChatDelta(content=output.text_diff) if output.text_diff else ChatDelta(),
            logprobs=self._logprobs(output.logprobs_diff),
            **_ending(output),
        )

    def _chunk(self, choices: list[ChatChunkChoice], usage: Mapping[str, Usage]) -> Answer:
        return ChatCompletionChunk(
            id=self._id,
            object="chat.completion.chunk",
            created=self._created,
            model=self._model,
            choices=choices,
            **usage,
        )

    def _logprobs(self, logprobs: Sequence[TokenLogprobs] | None) -> ChatLogprobs | None:
        if logprobs is None:
            return None
        return ChatLogprobs(
            content=[
                ChatLogprob(
                    **self._token(entry.token_id),
                    logprob=entry.logprob,
                    top_logprobs=[
                        TopLogprob(**self._token(token_id), logprob=logprob)
                        for token_id, logprob in entry.top
                    ],
                )
                for entry in logprobs
            ]
        )

    def _token(self, token_id: int) -> dict[str, Any]:
        text = self._spell(token_id)
        # A token may be a part of a character only; then its text stands for no bytes.
        return {"token": text, "bytes": None if "\ufffd" in text else list(text.encode())}


class CompletionWriter(AnswerWriter):
    """Writes answers of ``/v1/completions``."""

    prefix = "cmpl"

    def __init__(
        self, model: str, tokenizer: Any, *, include_usage: bool, continuous_usage: bool
    ) -> None:
        super().__init__(
            model, tokenizer, include_usage=include_usage, continuous_usage=continuous_usage
        )
        self._offset = 0

    def response(self, results: Sequence[GenerationResult]) -> Answer:
        """The whole answer."""
        choices = []
        for index, result in enumerate(results):
            output = result.outputs[0]
            self._offset = 0
            choices.append(
                CompletionChoice(
                    index=index,
                    text=output.text,
                    logprobs=self._logprobs(output.logprobs),
                    finish_reason=output.finish_reason,
                    stop_reason=output.stop_reason,
                )
            )
        return self._chunk(choices, {"usage": usage_of(results)})

    def _added(self, output: CompletionOutput) -> CompletionChoice:
        return CompletionChoice(
            index=0,
            text=output.text_diff,
            logprobs=self._logprobs(output.logprobs_diff),
            **_ending(output),
        )

    def _chunk(self, choices: list[CompletionChoice], usage: Mapping[str, Usage]) -> Answer:
        return CompletionResponse(
            id=self._id,
            object="text_completion",
            created=self._created,
            model=self._model,
            choices=choices,
            **usage,
        )

    def _logprobs(self, logprobs: Sequence[TokenLogprobs] | None) -> CompletionLogprobs | None:
        if logprobs is None:
            return None
        tokens = [self._spell(entry.token_id) for entry in logprobs]
        offsets = []
        for token in tokens:
            offsets.append(self._offset)
            self._offset += len(token)
        return CompletionLogprobs(
            tokens=tokens,
            token_logprobs=[entry.logprob for entry in logprobs],
            top_logprobs=[
                {self._spell(token_id): logprob for token_id, logprob in entry.top}
                for entry in logprobs
            ],
            text_offset=offsets,
        )
