# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""The shapes of questions about prompts that generate nothing, and of their answers.

The fields are those of vLLM's routes of the same names, which routers and agents already ask.
"""

from __future__ import annotations

from typing import Any

from pydantic import Field, model_validator

from tensorrt_llm.errors import RequestError
from tensorrt_llm.serve.openai_protocol import (
    Answer,
    ChatCompletionRequest,
    RequestBody,
    example_of,
)


class TokenizeRequest(RequestBody):
    """Body of ``POST /tokenize``: a text or a conversation."""

    model_config = example_of(prompt="Once upon a time")

    model: str | None = Field(None, description="Ignored: the server serves one model.")
    prompt: str | None = Field(None, description="A text. Instead of messages.")
    messages: list[dict[str, Any]] = Field(
        default_factory=list, description="A conversation, as for a chat. Instead of prompt."
    )
    add_special_tokens: bool | None = Field(
        None,
        description="Let the tokenizer add its leading tokens; by default to a text, and not "
        "beside a chat template's.",
    )
    add_generation_prompt: bool = Field(True, description="End a chat where the answer starts.")
    chat_template_kwargs: dict[str, Any] | None = Field(
        None, description="Further variables of the chat template."
    )
    mm_processor_kwargs: dict[str, Any] | None = Field(
        None, description="Options of the model's media processor."
    )
    media_io_kwargs: dict[str, Any] | None = Field(
        None, description="Options for decoding media, by modality."
    )
    cache_salt: str | None = Field(
        None, description="What is remembered of the media is shared within one salt only."
    )
    return_token_strs: bool = Field(False, description="Answer with the tokens' texts too.")

    @model_validator(mode="after")
    def _check_one_of(self) -> TokenizeRequest:
        if (self.prompt is None) == (not self.messages):
            raise RequestError("either a prompt or messages, and not both", part="prompt")
        return self

    def conversation(self) -> ChatCompletionRequest:
        """The conversation, as a chat would have it.

        Raises:
            ValidationError: If a chat may not have such a field.
        """
        return ChatCompletionRequest(
            messages=self.messages,
            add_special_tokens=bool(self.add_special_tokens),
            add_generation_prompt=self.add_generation_prompt,
            chat_template_kwargs=self.chat_template_kwargs,
            mm_processor_kwargs=self.mm_processor_kwargs,
            media_io_kwargs=self.media_io_kwargs,
            cache_salt=self.cache_salt,
        )


class TokenizeResponse(Answer):
    """Answer of ``POST /tokenize``.

    Attributes:
        count: Number of tokens, with one for each row of an item.
        max_model_len: Most tokens of a request, the answer included.
        tokens: Token ids.
        token_strs: What the vocabulary calls them.
    """

    count: int
    max_model_len: int
    tokens: list[int]
    token_strs: list[str] | None = None


class DetokenizeRequest(RequestBody):
    """Body of ``POST /detokenize``."""

    model_config = example_of(tokens=[5, 6, 7])

    model: str | None = Field(None, description="Ignored: the server serves one model.")
    tokens: list[int] = Field(description="Token ids.")


class DetokenizeResponse(Answer):
    """Answer of ``POST /detokenize``: the text, special tokens included."""

    prompt: str


class PlaceholderRange(Answer):
    """Consecutive prompt tokens: ``offset`` of the first one, and how many."""

    offset: int
    length: int


class RenderedMedia(Answer):
    """The items of a prompt, by modality and in prompt order.

    Attributes:
        mm_hashes: What stands for an item in the keys of its blocks, and in cache events: its
            identity in hexadecimal; null where it is unknown, then nothing from there on is shared.
        mm_placeholders: From an item's first row to its last.
        mm_runs: Exactly the tokens that hold rows, where other tokens stand between them.
    """

    mm_hashes: dict[str, list[str | None]]
    mm_placeholders: dict[str, list[PlaceholderRange]]
    mm_runs: dict[str, list[list[PlaceholderRange]]]


class RenderResponse(Answer):
    """Answer of ``POST /v1/chat/completions/render``: what the engine would be asked.

    Attributes:
        model: The served model, or the adapter that the request names.
        token_ids: The prompt, one token for each row of an item.
        features: Its media; null without.
        cache_salt: The request's, behind that of its API key; only requests with the same share
            blocks.
        adapter: Identity of that adapter in hexadecimal; null without. Names of equal content have
            the same, and prompts share blocks only under the same.
        adapter_mode: What the modalities present select in the model; prompts share blocks only
            under the same one.
        tokens_per_block: Tokens that one block of the KV cache holds.
    """

    model: str
    token_ids: list[int]
    features: RenderedMedia | None
    cache_salt: str | None
    adapter: str | None
    adapter_mode: str
    tokens_per_block: int
