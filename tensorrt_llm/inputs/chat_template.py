# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Chat messages to one prompt text that still knows which characters a user wrote.

The template is rendered twice: once as it is, and once with every text a user wrote replaced by a
marker drawn for this call. The second rendering shows what the template itself writes and where
the texts go; laid over the first, it gives the span of each text. Media placeholders are those the
template writes, so a placeholder that a user spells is never taken for one.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from jinja2.exceptions import TemplateError
from transformers import PreTrainedTokenizerBase

from tensorrt_llm.errors import ConfigurationError, RequestError
from tensorrt_llm.inputs.data import MediaSpan, StructuredPrompt, TextSpan


@dataclass(frozen=True)
class TextPart:
    """A piece of text in a message.

    Attributes:
        text: What the user wrote.
    """

    text: str


@dataclass(frozen=True)
class MediaPart:
    """The place of a media item in a message.

    Attributes:
        modality: ``"image"``, ``"audio"`` or ``"video"``.
        item: Index of the item in the list handed to the input processor.
    """

    modality: str
    item: int


Content: TypeAlias = "str | Sequence[TextPart | MediaPart]"
PlaceholderText: TypeAlias = Callable[[str], str]

# What a template raises over messages that it was not made for: its own complaints, and Python's
# where it treats a list as a string.
_TEMPLATE_FAILURES = (TemplateError, TypeError, ValueError, RecursionError)


def render_chat(
    tokenizer: PreTrainedTokenizerBase,
    messages: Sequence[Mapping[str, Any]],
    placeholder_text: PlaceholderText,
    *,
    add_generation_prompt: bool = True,
    chat_template: str | None = None,
    template_kwargs: Mapping[str, Any] | None = None,
    add_special_tokens: bool = False,
) -> StructuredPrompt:
    """Renders messages with the model's own chat template.

    Templates that take a list of parts get one; for those that take strings only, the parts are
    joined in order, with the family's placeholder where a media part stood.

    Args:
        tokenizer: Its chat template is used; it is not changed.
        messages: Dicts with ``role`` and ``content``, a str or a sequence of ``TextPart`` and
            ``MediaPart``. Other string values count as a user's text; other values are handed to
            the template as they are.
        placeholder_text: Gives the placeholder that stands for one item of a modality.
        add_generation_prompt: Whether the prompt ends where the assistant's answer begins.
        chat_template: Template to use instead of the tokenizer's.
        template_kwargs: Further variables of the template.
        add_special_tokens: Whether the tokenizer shall add its own tokens around the result;
            templates usually write them themselves.

    Returns:
        The prompt, with a plain span for each text and a media span for each media part.

    Raises:
        ConfigurationError: If there is no chat template.
        RequestError: If the template refuses the messages, or leaves out or repeats a media part.
    """
    if chat_template is None and not tokenizer.chat_template:
        raise ConfigurationError("the tokenizer has no chat template; give one")
    renderer = _Renderer(
        tokenizer,
        dict(template_kwargs or {})
        | {"add_generation_prompt": add_generation_prompt, "chat_template": chat_template},
    )
    marked = _MarkedMessages.of(messages, placeholder_text)
    error: Exception | None = None
    for form in renderer.content_forms():
        try:
            pieces = renderer.render_pieces(marked, form)
            return _assemble(pieces, marked, placeholder_text, add_special_tokens)
        except _TEMPLATE_FAILURES as failure:
            # A template of the other kind may still take these messages.
            error = error or failure
    raise RequestError(f"the chat template refuses the messages: {error}") from error


@dataclass(frozen=True)
class _Piece:
    """A stretch of the prompt: what the template wrote, or one of the marked things."""

    text: str
    marked: TextPart | MediaPart | None = None


@dataclass
class _MarkedMessages:
    """Messages in which markers stand for texts, and what each marker stands for.

    A marker is made of characters for private use and a number that nobody can guess, so neither
    a template nor a user can write one.
    """

    placeholder_text: PlaceholderText
    nonce: str = field(default_factory=lambda: secrets.token_hex(8))
    parts: list[TextPart | MediaPart] = field(default_factory=list)
    messages: list[dict[str, Any]] = field(default_factory=list)

    @classmethod
    def of(
        cls, messages: Sequence[Mapping[str, Any]], placeholder_text: PlaceholderText
    ) -> _MarkedMessages:
        marked = cls(placeholder_text)
        for message in messages:
            marked.messages.append({key: marked._mark(key, message[key]) for key in message})
        return marked

    def _mark(self, key: str, value: Any) -> Any:
        if key == "role":
            return value
        if isinstance(value, str):
            return self._marker(TextPart(value))
        if key == "content" and value is not None:
            return [(part, self._marker(part)) for part in value]
        return value

    def _marker(self, part: TextPart | MediaPart) -> str:
        # An empty text leaves no trace, and templates may treat it as absent.
        if part == TextPart(""):
            return ""
        self.parts.append(part)
        return f"\ue000{self.nonce}:{len(self.parts) - 1}\ue001"

    @property
    def pattern(self) -> re.Pattern[str]:
        """Matches a marker; group 1 is the index of its part."""
        return re.compile(f"\ue000{self.nonce}:([0-9]+)\ue001")

    @property
    def media(self) -> list[MediaPart]:
        return [part for part in self.parts if isinstance(part, MediaPart)]

    def original(self, part: TextPart | MediaPart) -> str:
        """What stands in the prompt for a part."""
        return part.text if isinstance(part, TextPart) else self.placeholder_text(part.modality)

    def for_template(self, form: str, markers: bool) -> list[dict[str, Any]]:
        """The messages as a template takes them.

        Args:
            form: ``"parts"``: content that was a sequence is a list of dicts; ``"wrapped"``: so is
                content that was a string; ``"string"``: all content is a string.
            markers: Whether markers stand for the texts, or the texts themselves.
        """
        return [
            {key: self._for_template(key, value, form, markers) for key, value in message.items()}
            for message in self.messages
        ]

    def _for_template(self, key: str, value: Any, form: str, markers: bool) -> Any:
        if key == "role" or not isinstance(value, (str, list)):
            return value
        if isinstance(value, str):
            text = value if markers else self._unmark(value)
            wrap = form == "wrapped" and key == "content"
            return [{"type": "text", "text": text}] if wrap else text
        if key != "content":
            return value
        if form == "string":
            return "".join(marker if markers else self.original(part) for part, marker in value)
        return [
            {"type": part.modality}
            if isinstance(part, MediaPart)
            else {"type": "text", "text": marker if markers else part.text}
            for part, marker in value
        ]

    def _unmark(self, text: str) -> str:
        return self.pattern.sub(lambda match: self.original(self.parts[int(match[1])]), text)


@dataclass(frozen=True)
class _Renderer:
    """A tokenizer's chat template with its variables."""

    tokenizer: PreTrainedTokenizerBase
    variables: dict[str, Any]

    def render(self, messages: list[dict[str, Any]]) -> str:
        text = self.tokenizer.apply_chat_template(messages, tokenize=False, **self.variables)
        assert isinstance(text, str)
        return text

    def content_forms(self) -> list[str]:
        """Forms of content to try, the template's own first.

        A template made for strings prints a list as Python would, so what it makes of one short
        text tells.
        """
        probe = f"\ue000{secrets.token_hex(8)}\ue001"
        as_string = self._try([{"role": "user", "content": probe}])
        as_parts = self._try([{"role": "user", "content": [{"type": "text", "text": probe}]}])
        if as_parts is None or probe not in as_parts or f"'{probe}'" in as_parts:
            return ["string", "parts"]
        if as_string is None or probe not in as_string:
            return ["wrapped", "string"]
        return ["parts", "string"]

    def _try(self, messages: list[dict[str, Any]]) -> str | None:
        try:
            return self.render(messages)
        except _TEMPLATE_FAILURES:
            return None

    def render_pieces(self, marked: _MarkedMessages, form: str) -> list[_Piece]:
        """Renders the messages and cuts the result into the template's text and the parts."""
        skeleton = _cut(self.render(marked.for_template(form, markers=True)), marked)
        text = self.render(marked.for_template(form, markers=False))
        aligned = _align(skeleton, text, marked)
        if aligned is not None:
            return aligned
        # The template looks at the texts and wrote something else this time. What it writes around
        # markers is as good, and there we know what is whose.
        return [
            _Piece(marked.original(piece.marked) if piece.marked else piece.text, piece.marked)
            for piece in skeleton
        ]


def _cut(rendered: str, marked: _MarkedMessages) -> list[_Piece]:
    """Cuts a rendering with markers at the markers."""
    pieces, done = [], 0
    for match in marked.pattern.finditer(rendered):
        pieces.append(_Piece(rendered[done : match.start()]))
        pieces.append(_Piece(match.group(), marked.parts[int(match[1])]))
        done = match.end()
    pieces.append(_Piece(rendered[done:]))
    return [piece for piece in pieces if piece.text]


def _align(skeleton: Sequence[_Piece], text: str, marked: _MarkedMessages) -> list[_Piece] | None:
    """Lays the pieces over the true rendering; None if they do not cover it.

    A template may keep a part of a text only. Pieces are taken in order, and one that fits in
    several ways is tried the longest first, going back where the rest then does not fit.
    """
    choices = [
        [piece.text] if piece.marked is None else _variants(marked.original(piece.marked))
        for piece in skeleton
    ]
    taken: list[int] = []
    starts = [0]
    choice = 0
    # (piece, start) from which the rest is known not to fit. Without it, many texts of nothing but
    # white space could be made to take exponential time, and without an end to it, quadratic.
    hopeless: set[tuple[int, int]] = set()
    while len(taken) < len(skeleton) or starts[-1] != len(text):
        index, start = len(taken), starts[-1]
        options = choices[index] if index < len(skeleton) else []
        while choice < len(options) and (
            not text.startswith(options[choice], start)
            or (index + 1, start + len(options[choice])) in hopeless
        ):
            choice += 1
        if choice < len(options):
            taken.append(choice)
            starts.append(start + len(options[choice]))
            choice = 0
        elif taken and len(hopeless) < _MAX_DEAD_ENDS:
            hopeless.add((index, start))
            choice = taken.pop() + 1
            starts.pop()
        else:
            return None
    return [
        _Piece(choices[index][chosen], piece.marked)
        for index, (piece, chosen) in enumerate(zip(skeleton, taken, strict=True))
    ]


# Dead ends after which laying pieces over a text is given up. A text that fits at all fits in few.
_MAX_DEAD_ENDS = 10_000

# Templates of reasoning models leave out of earlier answers what stands before this mark.
_END_OF_THOUGHT = "</think>"


def _variants(text: str) -> list[str]:
    """The text, and what templates are known to leave of it, longest first."""
    forms = {text}
    for kept in (text, text.rpartition(_END_OF_THOUGHT)[2]):
        for characters in (None, "\n"):
            forms |= {kept.lstrip(characters), kept.rstrip(characters), kept.strip(characters)}
        forms.add(kept)
    return sorted(forms, key=len, reverse=True)


def _assemble(
    pieces: Sequence[_Piece],
    marked: _MarkedMessages,
    placeholder_text: PlaceholderText,
    add_special_tokens: bool,
) -> StructuredPrompt:
    """Joins the pieces, and gives each media part the placeholder that stands for it."""
    plain: list[TextSpan] = []
    media: list[MediaSpan] = []
    placed = {piece.marked for piece in pieces}
    unplaced = [part for part in marked.media if part not in placed]
    waiting = {
        modality: iter([part for part in unplaced if part.modality == modality])
        for modality in {part.modality for part in unplaced}
    }
    length = 0
    for piece in pieces:
        if isinstance(piece.marked, TextPart):
            plain.append(TextSpan(length, length + len(piece.text)))
        elif isinstance(piece.marked, MediaPart):
            media.append(MediaSpan(length, length + len(piece.text), piece.marked.item))
        else:
            media += _written_by_template(piece.text, length, waiting, placeholder_text)
        length += len(piece.text)
    expected = sorted(part.item for part in marked.media)
    if sorted(span.item for span in media) != expected:
        raise RequestError(
            f"the chat template placed {len(media)} media parts, the messages hold {len(expected)}"
        )
    text = "".join(piece.text for piece in pieces)
    return StructuredPrompt(text, tuple(plain), tuple(media), add_special_tokens)


def _written_by_template(
    text: str,
    offset: int,
    waiting: Mapping[str, Iterator[MediaPart]],
    placeholder_text: PlaceholderText,
) -> list[MediaSpan]:
    """Media spans of the placeholders in a stretch that the template wrote.

    The k-th placeholder of a modality stands for the k-th part of it.
    """
    modality_of = {placeholder_text(modality): modality for modality in waiting}
    if not modality_of:
        return []
    spans = []
    for match in re.finditer("|".join(map(re.escape, modality_of)), text):
        part = next(waiting[modality_of[match.group()]], None)
        if part is not None:
            start, end = match.span()
            spans.append(MediaSpan(offset + start, offset + end, part.item))
    return spans
