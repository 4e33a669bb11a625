# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""The one place where what callers write becomes what the engine takes.

``LLM`` hands in prompt dicts, the server hands in chat messages; both get a `ProcessedPrompt`. All
methods may be called from several threads.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from tensorrt_llm.errors import MediaError, RequestError
from tensorrt_llm.inputs.chat_template import MediaPart, TextPart, render_chat
from tensorrt_llm.inputs.chat_tools import place_tools, refuse_special_tokens
from tensorrt_llm.inputs.data import (
    MediaItem,
    ProcessedPrompt,
    PromptInputs,
    StructuredPrompt,
    prompt_inputs,
)
from tensorrt_llm.inputs.media_io import MediaLoader
from tensorrt_llm.inputs.media_memo import MediaMemo, MemoKey, MemoStats
from tensorrt_llm.inputs.registry import InputProcessor, TokenizedPrompt
from tensorrt_llm.llmapi.media import check_keys, read_io_options, read_media


@dataclass(frozen=True)
class ChatOptions:
    """How a conversation becomes a prompt.

    Attributes:
        add_generation_prompt: End the prompt where the answer starts.
        add_special_tokens: Let the tokenizer add its own tokens beside the template's.
        template_kwargs: Further variables of the template.
        tools: What the model may call, in the form of the OpenAI API.
        opening: How the answer begins; the prompt ends with it.
    """

    add_generation_prompt: bool = True
    add_special_tokens: bool = False
    template_kwargs: Mapping[str, Any] | None = None
    tools: Sequence[Mapping[str, Any]] = ()
    opening: str = ""


PROMPT_MEMO_BYTES = 8 * 2**20
"""Most bytes of rendered and tokenised conversations that are kept for repeats."""

# A template that reads one of these writes something else each time.
_CHANGING = ("strftime_now", "random")


class Preprocessor:
    """Turns prompts and conversations into processed prompts.

    Attributes:
        template: The text of the chat template; empty if there is none.

    Args:
        processor: The input processor of the model's family.
        tokenizer: The model's tokenizer.
        vocab_size: Token ids of a caller must be below it.
        chat_template: Jinja text to use instead of the tokenizer's own template.
        memo: Remembers items, so that those of a repeat are not preprocessed again.
    """

    def __init__(
        self,
        processor: InputProcessor,
        tokenizer: Any,
        vocab_size: int,
        chat_template: str | None = None,
        memo: MediaMemo | None = None,
    ) -> None:
        self._processor = processor
        self._tokenizer = tokenizer
        self._vocab_size = vocab_size
        self._chat_template = chat_template
        self._memo = memo
        self._prompts = MediaMemo(PROMPT_MEMO_BYTES)
        self.template = str(chat_template or tokenizer.chat_template or "")
        self._template_changes = any(name in self.template for name in _CHANGING)

    @property
    def modalities(self) -> tuple[str, ...]:
        """What the model takes beside text."""
        return self._processor.modalities

    @cached_property
    def special_texts(self) -> tuple[str, ...]:
        """The texts that stand for special tokens and for media."""
        added = self._tokenizer.added_tokens_decoder.values()
        placeholders = [self._processor.placeholder_text(one) for one in self.modalities]
        return (*(str(token) for token in added if token.special), *placeholders)

    @property
    def prompt_memo_stats(self) -> MemoStats:
        """Counters of the conversations that are kept rendered and tokenised."""
        return self._prompts.stats

    def process_inputs(
        self,
        inputs: PromptInputs,
        loader: MediaLoader,
        *,
        add_special_tokens: bool = True,
        scope: str | None = None,
    ) -> ProcessedPrompt:
        """Processes a prompt as ``LLM.generate`` takes it.

        Args:
            inputs: Text, token ids, or a prompt dict.
            loader: Loads the media that the prompt names.
            add_special_tokens: Let the tokenizer add its leading tokens to a text prompt.
            scope: Tenant (the request's ``cache_salt``): what is remembered of media is shared
                within it only.

        Raises:
            TypeError: If the prompt has none of these forms.
            RequestError: If something in it is wrong.
        """
        prompt: Mapping[str, Any] = prompt_inputs(inputs)
        check_keys(prompt)
        io_options = read_io_options(prompt.get("media_io_kwargs"))
        items = [
            loader.load(
                media.modality,
                media.source,
                part=media.part,
                uuid=media.uuid,
                options=io_options.get(media.modality),
                scope=scope,
            )
            for media in read_media(prompt, self.modalities)
        ]
        kwargs = prompt.get("mm_processor_kwargs")
        token_ids = prompt.get("prompt_token_ids")
        if token_ids is not None:
            self.check_token_ids(token_ids)
            return self._process(token_ids, items, kwargs, scope)
        text = prompt.get("prompt")
        if not isinstance(text, str):
            raise TypeError(f"prompt must be a str, not {type(text).__name__}")
        located = self._processor.locate_placeholders(text, items, add_special_tokens)
        return self._process(located, items, kwargs, scope)

    def process_chat(
        self,
        messages: Sequence[Mapping[str, Any]],
        items: Sequence[MediaItem],
        options: ChatOptions,
        mm_processor_kwargs: Mapping[str, Any] | None = None,
        scope: str | None = None,
    ) -> ProcessedPrompt:
        """Processes a conversation.

        Args:
            messages: Dicts with ``role`` and ``content``; content is text or a list of parts,
                whose media parts name an item by its index.
            items: The loaded media.
            options: How the conversation becomes a prompt.
            mm_processor_kwargs: Options of the model's media processor.
            scope: As in ``process_inputs``.

        Raises:
            RequestError: If there is no template, the template refuses the conversation, or an
                option is unknown.
        """
        if self._chat_template is None and not self._tokenizer.chat_template:
            raise RequestError(
                "this model has no chat template; start it with chat_template (--chat_template), "
                "or ask for completions"
            )
        prompt = self._tokenized_chat(messages, options, scope)
        return self._process(prompt, items, mm_processor_kwargs, scope)

    def _tokenized_chat(
        self, messages: Sequence[Mapping[str, Any]], options: ChatOptions, scope: str | None
    ) -> TokenizedPrompt:
        """Renders and tokenises a conversation, unless the same one was just seen."""
        key = self._prompt_key(messages, options, scope)
        known: TokenizedPrompt | None = None if key is None else self._prompts.get(key)
        if known is not None:
            return known
        variables = dict(options.template_kwargs or {})
        for index, message in enumerate(messages):
            refuse_special_tokens(
                message.get("tool_calls"), self.special_texts, f"messages[{index}].tool_calls"
            )
        if options.tools:
            refuse_special_tokens(options.tools, self.special_texts, "tools")
            messages, more = place_tools(self.template, messages, options.tools)
            variables |= more
        prompt = render_chat(
            self._tokenizer,
            messages,
            self._processor.placeholder_text,
            add_generation_prompt=options.add_generation_prompt,
            chat_template=self._chat_template,
            template_kwargs=variables,
            add_special_tokens=options.add_special_tokens,
        )
        # What the answer begins with is the template's, not a user's: special tokens count in it.
        prompt = replace(prompt, text=prompt.text + options.opening)
        tokenized = self._processor.tokenize(prompt)
        if key is not None:
            self._prompts.put(key, tokenized, tokenized.nbytes)
        return tokenized

    def _prompt_key(
        self, messages: Sequence[Mapping[str, Any]], options: ChatOptions, scope: str | None
    ) -> MemoKey | None:
        """What a conversation's prompt is remembered under; None if it must be made each time."""
        if self._template_changes:
            return None
        try:
            return MediaMemo.prompt_key(
                [_as_seen(dict(message)) for message in messages],
                options.add_generation_prompt,
                options.add_special_tokens,
                _as_seen(dict(options.template_kwargs or {})),
                _as_seen(list(options.tools)),
                options.opening,
                scope=scope,
            )
        except (MediaError, RecursionError):
            # A value that the template may know what to do with, and we do not.
            return None

    def _process(
        self,
        prompt: StructuredPrompt | TokenizedPrompt | Sequence[int],
        items: Sequence[MediaItem],
        options: Mapping[str, Any] | None,
        scope: str | None,
    ) -> ProcessedPrompt:
        return self._processor.process(prompt, items, options, memo=self._memo, scope=scope)

    def check_token_ids(self, token_ids: Sequence[int]) -> None:
        """Refuses what is no token of this model.

        Raises:
            TypeError: If one is no whole number.
            RequestError: If one is outside the vocabulary.
        """
        for token_id in token_ids:
            if type(token_id) is not int:
                raise TypeError(f"prompt_token_ids must be int, got {token_id!r}")
            if not 0 <= token_id < self._vocab_size:
                raise RequestError(
                    f"token id {token_id} is outside the vocabulary of {self._vocab_size} tokens"
                )


_SCALARS = (type(None), bool, int, float, str, bytes)


def _as_seen(value: Any) -> Any:
    """A value with all that a template may write of it: a list that begins with its kind.

    Templates see the order of keys, and write equal values of different types differently.

    Raises:
        MediaError: If there is a value of a type in it whose looks are not known.
    """
    kind = type(value)
    if kind in _SCALARS:
        return value
    if kind is TextPart:
        return ["TextPart", value.text]
    if kind is MediaPart:
        return ["MediaPart", value.modality, value.item]
    if kind is dict:
        return ["dict", *(_as_seen(one) for pair in value.items() for one in pair)]
    if kind in (list, tuple):
        return [kind.__name__, *(_as_seen(one) for one in value)]
    raise MediaError(f"what a template writes of a {kind.__name__} is not known")
