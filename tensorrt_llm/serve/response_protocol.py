# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""The shapes of ``/v1/responses``, OpenAI's newer form of a chat."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from tensorrt_llm.llmapi.strict_model import StrictModel, inert
from tensorrt_llm.serve.openai_protocol import (
    Answer,
    ChatCompletionRequest,
    GenerationFields,
    example_of,
)
from tensorrt_llm.serve.response_input import as_messages

_STORE_HELP = "Keep the answer, and what it answers, for previous_response_id and retrieval."


class ResponseTool(StrictModel):
    """A function that the model may ask for; as in a chat, without the nesting."""

    type: Literal["function"] = Field("function", description="The only kind.")
    name: str = Field(description="What calls name it.")
    description: str | None = Field(None, description="What it does, for the model.")
    parameters: dict[str, Any] | None = Field(None, description="JSON schema of its arguments.")
    strict: bool | None = Field(None, description="Hold the arguments of calls to the schema.")


class ResponseToolChoice(StrictModel):
    """The one tool that shall be called."""

    type: Literal["function"] = Field("function", description="The only kind.")
    name: str = Field(description="Which one.")


class ResponseTextFormat(StrictModel):
    """The form of an answer."""

    type: Literal["text", "json_object", "json_schema"] = Field(
        "text", description="What the answer has to be; text is anything."
    )
    name: str | None = Field(None, description="Ignored.")
    description: str | None = Field(None, description="Ignored.")
    schema_: dict[str, Any] | bool | None = Field(
        None, alias="schema", description="The JSON schema, with type json_schema."
    )
    strict: bool | None = Field(None, description="Ignored: answers always follow the schema.")


class ResponseText(StrictModel):
    """What the text of an answer has to be."""

    format: ResponseTextFormat | None = Field(None, description="Its form.")
    verbosity: str | None = inert("control of verbosity", None, "medium")


class ResponseRequest(GenerationFields):
    """Body of ``POST /v1/responses``."""

    model_config = example_of(input="Hello.", max_output_tokens=8)

    input: str | list[dict[str, Any]] = Field(
        min_length=1,
        description="Text, or items: messages with parts input_text, input_image, input_audio, "
        "output_text, or those of a chat; function_call; function_call_output.",
    )
    instructions: str | None = Field(
        None, description="A system message before everything. Not carried over to later answers."
    )
    max_output_tokens: int | None = Field(None, description="Most tokens of the answer.")
    previous_response_id: str | None = Field(
        None, description="Go on after that answer, with all that came before it."
    )
    store: bool = Field(True, description=_STORE_HELP)
    tools: list[ResponseTool] = Field(
        default_factory=list, description="Functions that the model may ask for."
    )
    tool_choice: Literal["none", "auto", "required"] | ResponseToolChoice | None = Field(
        None, description="As in a chat."
    )
    parallel_tool_calls: bool = Field(True, description="False: at most one call an answer.")
    chat_template_kwargs: dict[str, Any] | None = Field(
        None, description="Further variables of the chat template."
    )
    mm_processor_kwargs: dict[str, Any] | None = Field(
        None, description="Options of the model's media processor."
    )
    media_io_kwargs: dict[str, Any] | None = Field(
        None, description="Options for decoding media, by modality: image, audio or video."
    )

    text: ResponseText | None = Field(None, description="What the answer has to be.")

    n: int = inert("more than one answer here", 1)
    best_of: int | None = inert("more than one answer here", None, 1)
    reasoning: Any = inert("control of reasoning", None, {})
    include: Any = inert("further parts of an answer", None, [])
    truncation: Any = inert("leaving out of earlier messages", None, "disabled")
    background: bool = inert("answering in the background", False)
    conversation: Any = inert("conversations by id", None)
    prompt: Any = inert("stored prompts", None)
    max_tool_calls: int | None = inert("tools that the server runs", None)
    top_logprobs: int | None = inert("log-probabilities here", None, 0)
    prompt_logprobs: int | None = inert("log-probabilities here", None)
    service_tier: str | None = inert("service tiers", None, "auto", "default")

    def chat(self) -> ChatCompletionRequest:
        """The same as a chat; the input is its messages.

        Raises:
            RequestError: If an item of the input is of no known kind. Names it.
            ValidationError: If a chat may not have such a field.
        """
        shared = self.model_fields_set & set(ChatCompletionRequest.model_fields)
        fields = {name: getattr(self, name) for name in shared - {"tools", "tool_choice", "store"}}
        choice = self.tool_choice
        if isinstance(choice, ResponseToolChoice):
            fields["tool_choice"] = {"type": "function", "function": {"name": choice.name}}
        else:
            fields["tool_choice"] = choice
        fields["tools"] = [
            {"function": tool.model_dump(exclude_unset=True, exclude={"type"})}
            for tool in self.tools
        ]
        form = None if self.text is None else self.text.format
        if form is not None and form.type == "json_schema":
            schema = {"schema": form.schema_} if form.schema_ is not None else None
            fields["response_format"] = {"type": form.type, "json_schema": schema}
        elif form is not None and form.type != "text":
            fields["response_format"] = {"type": form.type}
        return ChatCompletionRequest(
            **fields,
            messages=as_messages(self.input),
            max_completion_tokens=self.max_output_tokens,
        )


class ResponseObject(Answer):
    """Answer of ``POST /v1/responses`` and ``GET /v1/responses/{response_id}``."""

    id: str
    object: Literal["response"]
    created_at: int
    status: str
    model: str
    output: list[dict[str, Any]]
    usage: dict[str, Any] | None
    error: dict[str, Any] | None
    incomplete_details: dict[str, Any] | None
    instructions: str | None
    previous_response_id: str | None
    max_output_tokens: int | None
    temperature: float
    top_p: float
    tools: list[dict[str, Any]]
    tool_choice: Any
    parallel_tool_calls: bool
    store: bool
    metadata: dict[str, Any]
    text: dict[str, Any]
    truncation: Literal["disabled"]


class Deleted(Answer):
    """What was deleted."""

    id: str
    object: str
    deleted: Literal[True]
