# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Writes results of the engine in the shapes of the OpenAI API, whole or chunk by chunk."""

from __future__ import annotations

import json
import time
import uuid
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

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
    PromptLogprobs,
    PromptTokensDetails,
    TopLogprob,
    Usage,
)
from tensorrt_llm.serve.prompt_logprobs import prompt_entries
from tensorrt_llm.serve.tool_calls import CallReader, ToolCall, ToolSyntax
from tensorrt_llm.serve.tool_protocol import FunctionCall, ToolCallMessage

# Made once: a call of json.dumps that asks for this makes one of its own.
_JSON = json.JSONEncoder(ensure_ascii=False)


def usage_of(results: Sequence[GenerationResult]) -> Usage:
    """Counts the tokens of one or more results."""
    prompt = sum(len(result.request.prompt) for result in results)
    completion = sum(result.num_generated for result in results)
    details: dict[str, Any] = {}
    unshared: Counter[str] = Counter()
    for result in results:
        unshared.update(result.unshared_tokens)
        for item in result.request.prompt.items:
            name = f"{item.modality}_tokens"
            details[name] = details.get(name, 0) + item.num_rows
    if unshared:
        details["unshared_tokens"] = dict(unshared)
    cached = sum(result.cached_tokens for result in results)
    return Usage(
        prompt_tokens=prompt,
        completion_tokens=completion,
        total_tokens=prompt + completion,
        prompt_tokens_details=PromptTokensDetails(cached_tokens=cached, **details),
    )


def _outputs(results: Sequence[GenerationResult]) -> list[CompletionOutput]:
    """All answers to the first prompt, then to the next."""
    return [output for result in results for output in result.outputs]


def _ending(output: CompletionOutput) -> dict[str, Any]:
    """How an answer ended; ``stop_reason`` stands only where it did."""
    if output.finish_reason is None:
        return {"finish_reason": None}
    return {"finish_reason": output.finish_reason, "stop_reason": output.stop_reason}


def _tools_finish(output: CompletionOutput, called: bool) -> str | None:
    """Why an answer ended, told to who acts on calls."""
    return "tool_calls" if called and output.finish_reason == "stop" else output.finish_reason


def _call(call: ToolCall, **index: int) -> ToolCallMessage:
    return ToolCallMessage(
        **index,
        id=f"call_{uuid.uuid4().hex[:24]}",
        type="function",
        function=FunctionCall(name=call.name, arguments=call.arguments),
    )


@dataclass(frozen=True)
class WrittenChunk:
    """A chunk as JSON text already: most of a stream differs in a few letters only.

    Attributes:
        text: The JSON.
    """

    text: str

    def to_json(self) -> str:
        """The JSON text."""
        return self.text


Chunk: TypeAlias = "Answer | WrittenChunk"


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
        self._ended: set[int] = set()
        # Writes a chunk of nothing but text; None where chunks hold more.
        self._plain_chunk: Callable[[CompletionOutput], WrittenChunk] | None = None

    @abstractmethod
    def response(self, results: Sequence[GenerationResult]) -> Answer:
        """The whole answer."""

    def opening(self, result: GenerationResult) -> list[Answer]:
        """The chunks before the first token, if there are any."""
        return []

    def update(self, result: GenerationResult) -> list[Chunk]:
        """The chunks for what the latest update added, one for each answer it added to."""
        chunks: list[Chunk] = []
        for output in result.outputs:
            ends = output.finish_reason is not None and output.index not in self._ended
            plain = output.finish_reason is None and output.logprobs is None
            if plain and output.text_diff and self._plain_chunk is not None:
                chunks.append(self._plain_chunk(output))
            elif output.text_diff or output.logprobs_diff or ends:
                added = self._added(output)
                if added is not None:
                    chunks.append(self._chunk([added], self._usage_so_far(result)))
            if ends:
                self._ended.add(output.index)
        return chunks

    def closing(self, result: GenerationResult) -> Answer | None:
        """The chunk after the last token, if the request asked for usage."""
        return self._chunk([], {"usage": usage_of([result])}) if self._include_usage else None

    @abstractmethod
    def _added(self, output: CompletionOutput) -> Any:
        """What the latest update added to an answer; None if there is nothing to tell."""

    @abstractmethod
    def _chunk(self, choices: list[Any], usage: Mapping[str, Usage]) -> Answer:
        """One event with these choices."""

    def _usage_so_far(self, result: GenerationResult) -> dict[str, Usage]:
        return {"usage": usage_of([result])} if self._continuous_usage else {}

    def _prompt_logprobs(self, result: GenerationResult) -> dict[str, PromptLogprobs]:
        """Of one prompt; stands only where it was asked for."""
        scores = result.outputs[0].prompt_logprobs
        return {} if scores is None else {"prompt_logprobs": prompt_entries(scores, self._spell)}

    def _spell(self, token_id: int) -> str:
        return self._tokenizer.decode([token_id], skip_special_tokens=False)


class ChatWriter(AnswerWriter):
    """Writes answers of ``/v1/chat/completions``."""

    prefix = "chatcmpl"

    def __init__(
        self,
        model: str,
        tokenizer: Any,
        *,
        include_usage: bool,
        continuous_usage: bool,
        tools: ToolSyntax | None = None,
    ) -> None:
        super().__init__(
            model, tokenizer, include_usage=include_usage, continuous_usage=continuous_usage
        )
        self._tools = tools
        self._readers: dict[int, CallReader] = {}
        if tools is None and not continuous_usage:
            self._plain_chunk = self._text_chunk

    def response(self, results: Sequence[GenerationResult]) -> Answer:
        """The whole answer."""
        choices = []
        for index, output in enumerate(_outputs(results)):
            message = self._message(output.text)
            choices.append(
                ChatChoice(
                    index=index,
                    message=message,
                    logprobs=self._logprobs(output.logprobs),
                    finish_reason=_tools_finish(output, message.tool_calls is not None),
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
            **self._prompt_logprobs(results[0]),
        )

    def opening(self, result: GenerationResult) -> list[Answer]:
        """The chunks that name the role."""
        return [
            self._chunk(
                [
                    ChatChunkChoice(
                        index=output.index,
                        delta=ChatDelta(role="assistant", content=""),
                        logprobs=None,
                        finish_reason=None,
                    )
                ],
                self._usage_so_far(result),
            )
            for output in result.outputs
        ]

    @cached_property
    def _around_text(self) -> tuple[str, str, str]:
        """A chunk of text, cut where the answer's number and its text stand."""
        delta = ChatDelta(content="")
        choice = ChatChunkChoice(index=0, delta=delta, logprobs=None, finish_reason=None)
        whole = self._chunk([choice], {}).to_json()
        # From the end, where nothing is the model's name.
        head, index, rest = whole.rpartition('"index":0')
        before, _, behind = rest.partition('""')
        return f"{head}{index[:-1]}", before, behind

    def _text_chunk(self, output: CompletionOutput) -> WrittenChunk:
        head, middle, tail = self._around_text
        text = _JSON.encode(output.text_diff)
        return WrittenChunk(f"{head}{output.index}{middle}{text}{tail}")

    def _message(self, text: str) -> ChatMessage:
        if self._tools is None:
            return ChatMessage(role="assistant", content=text)
        content, calls = self._tools.read(text)
        if not calls:
            return ChatMessage(role="assistant", content=content)
        return ChatMessage(
            role="assistant", content=content or None, tool_calls=[_call(call) for call in calls]
        )

    def _added(self, output: CompletionOutput) -> ChatChunkChoice | None:
        delta, called = self._delta(output)
        logprobs = self._logprobs(output.logprobs_diff)
        if not (delta.model_fields_set or output.logprobs_diff or output.finish_reason):
            return None
        ending = _ending(output)
        if output.finish_reason is not None:
            ending["finish_reason"] = _tools_finish(output, called)
        return ChatChunkChoice(index=output.index, delta=delta, logprobs=logprobs, **ending)

    def _delta(self, output: CompletionOutput) -> tuple[ChatDelta, bool]:
        """What is new, and whether tools have been called so far."""
        if self._tools is None:
            text = output.text_diff
            return (ChatDelta(content=text) if text else ChatDelta()), False
        reader = self._readers.setdefault(output.index, self._tools.reader())
        before = reader.calls
        found = reader.feed(output.text_diff)
        if output.finish_reason is not None:
            found += reader.finish()
        fields: dict[str, Any] = {}
        text = "".join(one for one in found if isinstance(one, str))
        calls = [one for one in found if isinstance(one, ToolCall)]
        if text:
            fields["content"] = text
        if calls:
            fields["tool_calls"] = [
                _call(call, index=index) for index, call in enumerate(calls, before)
            ]
        return ChatDelta(**fields), reader.calls > 0

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
        self._offsets: dict[int, int] = {}

    def response(self, results: Sequence[GenerationResult]) -> Answer:
        """The whole answer."""
        choices: list[CompletionChoice] = []
        answers = [
            (output, of_prompt)
            for result in results
            for of_prompt in [self._prompt_logprobs(result)]
            for output in result.outputs
        ]
        for index, (output, of_prompt) in enumerate(answers):
            choices.append(
                CompletionChoice(
                    index=index,
                    text=output.text,
                    logprobs=self._logprobs(output.logprobs, index),
                    finish_reason=output.finish_reason,
                    stop_reason=output.stop_reason,
                    **of_prompt,
                )
            )
        return self._chunk(choices, {"usage": usage_of(results)})

    def _added(self, output: CompletionOutput) -> CompletionChoice:
        return CompletionChoice(
            index=output.index,
            text=output.text_diff,
            logprobs=self._logprobs(output.logprobs_diff, output.index),
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

    def _logprobs(
        self, logprobs: Sequence[TokenLogprobs] | None, index: int
    ) -> CompletionLogprobs | None:
        if logprobs is None:
            return None
        tokens = [self._spell(entry.token_id) for entry in logprobs]
        offsets, offset = [], self._offsets.get(index, 0)
        for token in tokens:
            offsets.append(offset)
            offset += len(token)
        self._offsets[index] = offset
        return CompletionLogprobs(
            tokens=tokens,
            token_logprobs=[entry.logprob for entry in logprobs],
            top_logprobs=[
                {self._spell(token_id): logprob for token_id, logprob in entry.top}
                for entry in logprobs
            ],
            text_offset=offsets,
        )
