# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""The shapes of OpenAI-compatible requests and answers.

Unknown fields are refused. Fields of the OpenAI API, and of TensorRT-LLM's, that this release does
not implement are accepted at the value that changes nothing. ``null`` means the default everywhere.
Ranges of sampling options are checked by ``SamplingParams`` alone, for all doors.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, cast

from pydantic import BaseModel, Field, field_validator, model_validator

from tensorrt_llm.errors import RequestError
from tensorrt_llm.executor.request import DEFAULT_PRIORITY
from tensorrt_llm.llmapi.llm_args import StrictModel, inert
from tensorrt_llm.sampling_params import SamplingParams

DEFAULT_COMPLETION_TOKENS = 16
"""Tokens that ``/v1/completions`` generates when the request names no number, as OpenAI's does."""

# Arguments of the function that renders a template, beside the template's variables.
_RENDERING_ARGUMENTS = frozenset(
    {
        *("conversation", "messages", "chat_template", "add_generation_prompt", "tools"),
        *("documents", "tokenize", "padding", "truncation", "max_length", "return_tensors"),
        *("return_dict", "return_assistant_tokens_mask", "tokenizer_kwargs"),
    }
)


class StreamOptions(StrictModel):
    """What a stream carries beside the answer."""

    include_usage: bool = Field(False, description="End with a chunk that holds the usage.")
    continuous_usage_stats: bool = Field(
        False, description="Put the usage so far on every chunk. Needs include_usage."
    )


class RequestBody(StrictModel):
    """What the body of every request is: ``null`` stands for the default."""

    @model_validator(mode="before")
    @classmethod
    def _null_is_default(cls, values: Any) -> Any:
        if not isinstance(values, Mapping):
            return values
        known = cls.model_fields
        return {k: v for k, v in values.items() if v is not None or k not in known}


class GenerationFields(RequestBody):
    """Fields that chat and plain completions share."""

    model: str | None = Field(None, description="Ignored: the server serves one model.")
    temperature: float = Field(1.0, description="0 is greedy.")
    top_p: float = Field(1.0, description="Sample among the likeliest tokens of this probability.")
    top_k: int = Field(0, description="Sample among the k likeliest tokens; 0 means all.")
    seed: int | None = Field(None, description="Makes sampling repeatable.")
    stop: str | list[str] | None = Field(None, description="Text or texts that end the answer.")
    stop_token_ids: list[int] | None = Field(None, description="Tokens that end the answer.")
    include_stop_str_in_output: bool = Field(False, description="Keep the stop text.")
    ignore_eos: bool = Field(False, description="Do not stop at the end-of-sequence token.")
    skip_special_tokens: bool = Field(True, description="Leave special tokens out of the text.")
    stream: bool = Field(False, description="Answer with server-sent events.")
    stream_options: StreamOptions | None = Field(None, description="Only with stream.")
    cache_salt: str | None = Field(
        None, description="Only requests with the same salt share KV blocks."
    )
    priority: float = Field(
        DEFAULT_PRIORITY,
        ge=0,
        le=1,
        description="Who is admitted first of those who wait, and paused last.",
    )
    user: str | None = Field(None, description="Ignored.")
    metadata: dict[str, Any] | None = Field(None, description="Ignored.")
    safety_identifier: str | None = Field(None, description="Ignored.")
    prompt_cache_key: str | None = Field(
        None, description="Ignored: blocks are shared by content; see cache_salt."
    )

    n: int = inert("more than one answer a request", 1)
    best_of: int = inert("more than one answer a request", 1)
    use_beam_search: bool = inert("beam search", False)
    length_penalty: float = inert("beam search", 1.0)
    early_stopping: bool = inert("beam search", False)
    frequency_penalty: float = inert("a frequency penalty", 0.0)
    presence_penalty: float = inert("a presence penalty", 0.0)
    repetition_penalty: float = inert("a repetition penalty", 1.0)
    logit_bias: dict[str, float] | None = inert("a logit bias", None, {})
    min_p: float = inert("min_p sampling", 0.0)
    min_tokens: int = inert("a least number of tokens", 0)
    truncate_prompt_tokens: int | None = inert("truncation of prompts", None)
    spaces_between_special_tokens: bool = inert("joining of special tokens", True)
    response_format: dict[str, Any] | None = inert("structured output", None, {"type": "text"})
    lora_request: Any = inert("an adapter a request", None)
    conversation_params: Any = inert("conversation routing", None)
    disaggregated_params: Any = Field(None, description="Not available in this release.")

    @model_validator(mode="after")
    def _check_together(self) -> GenerationFields:
        if self.stream_options is not None and not self.stream:
            raise RequestError("only with stream set", part="stream_options")
        return self

    @field_validator("cache_salt")
    @classmethod
    def _check_salt(cls, salt: str | None) -> str | None:
        if salt is not None and not salt.strip():
            raise ValueError("must not be blank")
        return salt

    @property
    def include_usage(self) -> bool:
        """Whether a stream ends with the usage."""
        return self.stream_options is not None and self.stream_options.include_usage

    @property
    def continuous_usage(self) -> bool:
        """Whether every chunk of a stream carries the usage."""
        return self.include_usage and bool(
            self.stream_options and self.stream_options.continuous_usage_stats
        )

    def _sampling_params(self, **more: Any) -> SamplingParams:
        return SamplingParams(
            temperature=self.temperature,
            top_k=self.top_k,
            top_p=self.top_p,
            # OpenAI's seeds are signed; ours are the same 64 bits without the sign.
            seed=None if self.seed is None else self.seed % 2**64,
            stop=self.stop or None,
            include_stop_str_in_output=self.include_stop_str_in_output,
            stop_token_ids=self.stop_token_ids,
            ignore_eos=self.ignore_eos,
            skip_special_tokens=self.skip_special_tokens,
            **more,
        )


class ChatCompletionRequest(GenerationFields):
    """Body of ``POST /v1/chat/completions``."""

    messages: list[dict[str, Any]] = Field(
        min_length=1,
        description="The conversation. Content is text or a list of parts: text, image_url, "
        "input_image, audio_url, input_audio; each media part may carry a uuid.",
    )
    max_tokens: int | None = Field(None, description="Most tokens of the answer.")
    max_completion_tokens: int | None = Field(None, description="Newer name of max_tokens.")
    logprobs: bool = Field(False, description="Report the log-probability of each token.")
    top_logprobs: int | None = Field(
        None, description="Report so many likeliest tokens at each place. Needs logprobs."
    )
    add_generation_prompt: bool = Field(True, description="End the prompt where the answer starts.")
    add_special_tokens: bool = Field(
        False, description="Let the tokenizer add its leading tokens beside the template's."
    )
    chat_template_kwargs: dict[str, Any] | None = Field(
        None, description="Further variables of the chat template."
    )
    mm_processor_kwargs: dict[str, Any] | None = Field(
        None, description="Options of the model's media processor."
    )
    media_io_kwargs: dict[str, Any] | None = Field(
        None, description="Options for decoding media, by modality: image, audio or video."
    )

    chat_template: str | None = inert("a chat template in a request", None)
    documents: Any = inert("documents for the chat template", None, [])
    prompt_token_ids: Any = inert("token ids in a chat request", None)
    tools: Any = inert("tool use", None, [])
    tool_choice: Any = inert("tool use", None, "none", "auto")
    functions: Any = inert("tool use", None, [])
    function_call: Any = inert("tool use", None, "none", "auto")
    parallel_tool_calls: bool | None = inert("tool use", None, True, False)
    modalities: list[str] | None = inert("answers other than text", None, ["text"])
    audio: Any = inert("answers other than text", None)
    prediction: Any = inert("predicted output", None)
    web_search_options: Any = inert("web search", None)
    reasoning_effort: str | None = inert("control of reasoning", None)
    verbosity: str | None = inert("control of verbosity", None)
    store: bool = inert("storing of answers", False)
    service_tier: str | None = inert("service tiers", None, "auto", "default")

    @field_validator("chat_template_kwargs")
    @classmethod
    def _check_variables(cls, variables: dict[str, Any] | None) -> dict[str, Any] | None:
        for name in variables or ():
            if name in _RENDERING_ARGUMENTS:
                raise ValueError(f"{name!r} is no variable of a template")
        return variables

    @model_validator(mode="after")
    def _check_logprobs(self) -> ChatCompletionRequest:
        if self.top_logprobs is not None and not self.logprobs:
            raise RequestError("only with logprobs set", part="top_logprobs")
        return self

    def sampling_params(self) -> SamplingParams:
        """The sampling options as the engine takes them.

        Raises:
            RequestError: If one is out of its range. Names it.
        """
        tokens = self.max_completion_tokens
        return self._sampling_params(
            max_tokens=self.max_tokens if tokens is None else tokens,
            logprobs=(self.top_logprobs or 0) if self.logprobs else None,
            add_special_tokens=self.add_special_tokens,
        )


class CompletionRequest(GenerationFields):
    """Body of ``POST /v1/completions``."""

    prompt: str | list[int] | list[str] | list[list[int]] = Field(
        description="Text or token ids, or a list of either for several answers."
    )
    max_tokens: int = Field(DEFAULT_COMPLETION_TOKENS, description="Most tokens of an answer.")
    logprobs: int | None = Field(
        None, description="Report so many likeliest tokens, and the token taken, at each place."
    )
    add_special_tokens: bool = Field(
        True, description="Let the tokenizer add its leading tokens to a text prompt."
    )

    echo: bool = inert("echo of the prompt", False)
    suffix: str | None = inert("insertion before a suffix", None, "")
    prompt_ignore_length: int = inert("ignoring part of the prompt", 0)

    def prompts(self) -> list[str | list[int]]:
        """The prompts, one or more."""
        given = self.prompt
        if isinstance(given, str) or (given and isinstance(given[0], int)):
            return [given]
        return list(cast("list[str] | list[list[int]]", given))

    def sampling_params(self) -> SamplingParams:
        """The sampling options as the engine takes them.

        Raises:
            RequestError: If one is out of its range. Names it.
        """
        return self._sampling_params(
            max_tokens=self.max_tokens,
            logprobs=self.logprobs,
            add_special_tokens=self.add_special_tokens,
        )


class Answer(BaseModel):
    """Base of everything sent back: only fields that were set are written, null included."""

    def to_json(self) -> str:
        """The JSON text."""
        return self.model_dump_json(exclude_unset=True)


class PromptTokensDetails(Answer):
    """Prompt tokens by origin.

    Attributes:
        cached_tokens: Found in the KV cache.
        image_tokens: Rows of images; absent without images.
        audio_tokens: Rows of audio; absent without audio.
    """

    cached_tokens: int
    image_tokens: int | None = None
    audio_tokens: int | None = None


class Usage(Answer):
    """Token counts of a request."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    prompt_tokens_details: PromptTokensDetails


class TopLogprob(Answer):
    """A token and its log-probability; ``bytes`` is null where the token is no whole text."""

    token: str
    logprob: float
    bytes: list[int] | None


class ChatLogprob(TopLogprob):
    """The token taken, beside the likeliest ones."""

    top_logprobs: list[TopLogprob]


class ChatLogprobs(Answer):
    """Log-probabilities of the tokens of an answer."""

    content: list[ChatLogprob]


class ChatMessage(Answer):
    """The answer of a chat."""

    role: Literal["assistant"]
    content: str


class ChatChoice(Answer):
    """One complete answer."""

    index: int
    message: ChatMessage
    logprobs: ChatLogprobs | None
    finish_reason: str | None
    stop_reason: int | str | None


class ChatCompletionResponse(Answer):
    """Answer of ``POST /v1/chat/completions``."""

    id: str
    object: Literal["chat.completion"]
    created: int
    model: str
    choices: list[ChatChoice]
    usage: Usage


class ChatDelta(Answer):
    """What a chunk adds."""

    role: Literal["assistant"] | None = None
    content: str | None = None


class ChatChunkChoice(Answer):
    """What a chunk adds to one answer."""

    index: int
    delta: ChatDelta
    logprobs: ChatLogprobs | None
    finish_reason: str | None
    stop_reason: int | str | None = None


class ChatCompletionChunk(Answer):
    """One event of a streamed chat answer."""

    id: str
    object: Literal["chat.completion.chunk"]
    created: int
    model: str
    choices: list[ChatChunkChoice]
    usage: Usage | None = None


class CompletionLogprobs(Answer):
    """Log-probabilities in the older form: parallel lists."""

    tokens: list[str]
    token_logprobs: list[float]
    top_logprobs: list[dict[str, float]]
    text_offset: list[int]


class CompletionChoice(Answer):
    """One answer, or what a chunk adds to it."""

    index: int
    text: str
    logprobs: CompletionLogprobs | None
    finish_reason: str | None
    stop_reason: int | str | None = None


class CompletionResponse(Answer):
    """Answer of ``POST /v1/completions``, and one event of its stream."""

    id: str
    object: Literal["text_completion"]
    created: int
    model: str
    choices: list[CompletionChoice]
    usage: Usage | None = None


class ModelCard(Answer):
    """A served model."""

    id: str
    object: Literal["model"]
    created: int
    owned_by: str
    max_model_len: int


class ModelList(Answer):
    """Answer of ``GET /v1/models``."""

    object: Literal["list"]
    data: list[ModelCard]


class ErrorResponse(Answer):
    """Body of every answer that is an error."""

    object: Literal["error"]
    message: str
    type: str
    param: str | None
    code: int
