# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""The shapes of OpenAI-compatible requests and answers.

Unknown fields are refused. Fields of the OpenAI API, and of TensorRT-LLM's, that this release does
not implement are accepted at the value that changes nothing. ``null`` means the default everywhere.
Ranges of sampling options are checked by ``SamplingParams`` alone, for all doors.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias, cast

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from tensorrt_llm.errors import RequestError
from tensorrt_llm.executor.request import DEFAULT_PRIORITY
from tensorrt_llm.llmapi.strict_model import StrictModel, inert
from tensorrt_llm.sampling_params import SamplingParams
from tensorrt_llm.serve.response_format import ResponseFormat, one_guide
from tensorrt_llm.serve.tool_protocol import Tool, ToolCallMessage, ToolChoice, check_tools

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


def example_of(**body: Any) -> ConfigDict:
    """Shows a body in the API's description, for who tries it and for what tests it."""
    return ConfigDict(json_schema_extra={"examples": [body]})


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


class LoraField(RequestBody):
    """An adapter that is loaded, as TensorRT-LLM's requests name it."""

    lora_name: str
    lora_int_id: int = Field(1, description="Accepted for compatibility, says nothing.")
    lora_path: str = Field("", description="Empty, or the folder that the name was loaded from.")
    lora_ckpt_source: Literal["hf"] = "hf"


class GenerationFields(RequestBody):
    """Fields that chat and plain completions share."""

    model: str | None = Field(
        None,
        description="Name of a loaded adapter to answer with; any other name is the model itself.",
    )
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

    n: int = Field(1, description="Number of answers. The prompt is computed once for all.")
    best_of: int | None = Field(
        None, description="Generate so many and give the n likeliest; n by default. Not streamed."
    )
    frequency_penalty: float = Field(
        0.0, description="Taken from the logits of tokens each time they are in the answer."
    )
    presence_penalty: float = Field(
        0.0, description="Taken from the logits of tokens that are in the answer."
    )
    repetition_penalty: float = Field(
        1.0, description="Divides the logits of tokens that prompt or answer have."
    )
    logit_bias: dict[int, float] | None = Field(
        None, description="Added to the logits of tokens, by token id."
    )
    min_p: float = Field(
        0.0, description="Sample among tokens this many times as likely as the likeliest."
    )
    min_tokens: int = Field(0, description="Least number of tokens before an answer may end.")
    bad: str | list[str] | None = Field(None, description="Text or texts that must not come.")
    bad_token_ids: list[int] | None = Field(None, description="Tokens that must not come.")
    prompt_logprobs: int | None = Field(
        None,
        description="Report the log-probability of each prompt token but the first, and so many "
        "likeliest tokens at its place. The prompt is computed anew. Not streamed.",
    )
    response_format: ResponseFormat | None = Field(
        None, description="What the answer has to be, JSON for example."
    )
    guided_json: dict[str, Any] | bool | str | None = Field(
        None, description="A JSON schema that the answer follows."
    )
    guided_regex: str | None = Field(
        None, description="A regular expression that the whole answer matches."
    )
    guided_grammar: str | None = Field(
        None, description="A grammar (Lark, or with ::=) that the answer follows."
    )
    guided_choice: list[str] | None = Field(None, description="Texts of which the answer is one.")

    use_beam_search: bool = Field(
        False, description="Search for the likeliest answers with best_of beams. Not streamed."
    )
    length_penalty: float = Field(
        1.0,
        description="A beam search divides the score of an answer by its length to this power.",
    )
    early_stopping: bool | Literal["never"] = Field(
        False, description="Whether a beam search stops once it has best_of whole answers."
    )
    truncate_prompt_tokens: int | None = inert("truncation of prompts", None)
    spaces_between_special_tokens: bool = inert("joining of special tokens", True)
    lora_request: LoraField | None = Field(
        None, description="A loaded adapter to answer with, where model does not name it."
    )
    conversation_params: Any = inert("conversation routing", None)
    disaggregated_params: Any = Field(None, description="Not available in this release.")

    @model_validator(mode="after")
    def _check_together(self) -> GenerationFields:
        if self.stream_options is not None and not self.stream:
            raise RequestError("only with stream set", part="stream_options")
        if self.stream and self.use_beam_search:
            raise RequestError(
                "the answers of a beam search are known at the end; not streamed",
                part="use_beam_search",
            )
        if self.stream and self.best_of is not None and self.best_of > self.n:
            raise RequestError(
                "the best answers are known at the end; not streamed", part="best_of"
            )
        if self.stream and self.prompt_logprobs is not None:
            raise RequestError("not streamed", part="prompt_logprobs")
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
            min_p=self.min_p or None,
            repetition_penalty=self.repetition_penalty,
            presence_penalty=self.presence_penalty,
            frequency_penalty=self.frequency_penalty,
            logit_bias=self.logit_bias,
            bad=self.bad or None,
            bad_token_ids=self.bad_token_ids,
            min_tokens=self.min_tokens,
            prompt_logprobs=self.prompt_logprobs,
            n=self.n,
            best_of=self.best_of,
            use_beam_search=self.use_beam_search,
            length_penalty=self.length_penalty,
            early_stopping=self.early_stopping,
            guided_decoding=one_guide(
                self.response_format,
                {
                    "json": self.guided_json,
                    "regex": self.guided_regex,
                    "grammar": self.guided_grammar,
                    "choice": self.guided_choice,
                },
            ),
            **more,
        )


class ChatCompletionRequest(GenerationFields):
    """Body of ``POST /v1/chat/completions``."""

    model_config = example_of(
        messages=[{"role": "user", "content": [{"type": "text", "text": "Hello."}]}], max_tokens=8
    )

    messages: list[dict[str, Any]] = Field(
        min_length=1,
        description="The conversation. Content is text or a list of parts: text, image_url, "
        "input_image, audio_url, input_audio, video_url; each media part may carry a uuid.",
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

    tools: list[Tool] = Field(
        default_factory=list, description="Functions that the model may ask for."
    )
    tool_choice: ToolChoice | None = Field(
        None,
        description="none: the model is not told of the tools; auto (default): it calls what it "
        "likes; required, or one tool by name: its answer begins as a call.",
    )
    parallel_tool_calls: bool = Field(True, description="False: at most one call an answer.")

    chat_template: str | None = inert("a chat template in a request", None)
    documents: Any = inert("documents for the chat template", None, [])
    prompt_token_ids: Any = inert("token ids in a chat request", None)
    functions: Any = inert("the older form of tool use", None, [])
    function_call: Any = inert("the older form of tool use", None, "none", "auto")
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

    @model_validator(mode="after")
    def _check_tools(self) -> ChatCompletionRequest:
        check_tools(self.tools, self.tool_choice)
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

    model_config = example_of(prompt="Once upon a time", max_tokens=8)

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
        video_tokens: Rows of video, its sound included; absent without video.
        unshared_tokens: Never shared with another request, by the reason; absent where all can be.
    """

    cached_tokens: int
    image_tokens: int | None = None
    audio_tokens: int | None = None
    video_tokens: int | None = None
    unshared_tokens: dict[str, int] | None = None


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


class PromptLogprob(Answer):
    """How likely a token is at a place of the prompt.

    Attributes:
        logprob: Its natural-log probability, given all tokens before it.
        rank: Its place among all tokens there, likeliest first, from 1.
        decoded_token: Its text.
    """

    logprob: float
    rank: int
    decoded_token: str


PromptLogprobs: TypeAlias = list[dict[int, PromptLogprob] | None]
"""One a prompt token, by token id: the prompt's own and the likeliest; null for the first token."""


class ChatMessage(Answer):
    """The answer of a chat."""

    role: Literal["assistant"]
    content: str | None
    tool_calls: list[ToolCallMessage] | None = None


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
    prompt_logprobs: PromptLogprobs | None = None


class ChatDelta(Answer):
    """What a chunk adds."""

    role: Literal["assistant"] | None = None
    content: str | None = None
    tool_calls: list[ToolCallMessage] | None = None


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
    prompt_logprobs: PromptLogprobs | None = None


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
    parent: str | None = None


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
