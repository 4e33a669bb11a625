# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""The values that pass between the input rooms, and from them to the executor.

```
PromptInputs ──▶ MediaItem + StructuredPrompt ──▶ ProcessedPrompt ──▶ executor
 (what users     (media_io, chat_template)        (input processor)
  write)
```

All of them are immutable. Nothing after ``ProcessedPrompt`` looks at media bytes again.
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NewType, TypeAlias, TypedDict

import numpy as np

# Decoder processes import this module; loading torch would be most of their start.
if TYPE_CHECKING:
    import torch

Digest = NewType("Digest", bytes)
"""32 bytes that stand for content. A distinct type, so that plain bytes are not taken for one."""

DIGEST_BYTES = 32


class _PromptExtras(TypedDict, total=False):
    multi_modal_data: dict[str, Any]
    multi_modal_embeddings: dict[str, Any]
    multi_modal_uuids: dict[str, Sequence[str | None] | str]
    mm_processor_kwargs: dict[str, Any]
    media_io_kwargs: dict[str, dict[str, Any]]


class TextPrompt(_PromptExtras):
    """A prompt as text. Media placeholders stand in the text where the rows shall go."""

    prompt: str


class TokensPrompt(_PromptExtras):
    """A prompt as token ids. One placeholder token stands where each item's rows shall go."""

    prompt_token_ids: list[int]


PromptInputs: TypeAlias = "str | list[int] | TextPrompt | TokensPrompt"


def prompt_inputs(inputs: PromptInputs) -> TextPrompt | TokensPrompt:
    """Brings every accepted prompt form to one of the two dict forms.

    Raises:
        TypeError: If the form is none of those, or a dict lacks both prompt keys.
    """
    if isinstance(inputs, str):
        return TextPrompt(prompt=inputs)
    if isinstance(inputs, list) and all(type(token) is int for token in inputs):
        return TokensPrompt(prompt_token_ids=inputs)
    if isinstance(inputs, dict) and ("prompt" in inputs or "prompt_token_ids" in inputs):
        return inputs
    raise TypeError(
        "a prompt is a str, a list of int, or a dict with 'prompt' or 'prompt_token_ids', "
        f"not {type(inputs).__name__}"
    )


class DeferredContent:
    """Content that is made when it is first asked for, once, whichever thread asks.

    Args:
        load: Makes the content. What it raises is raised to whoever asked; the next who asks has
            it tried again.
    """

    def __init__(self, load: Callable[[], Any]) -> None:
        self._lock = threading.Lock()
        self._load: Callable[[], Any] | None = load
        self._content: Any = None

    @property
    def is_made(self) -> bool:
        """Whether ``get`` gives it without work. Never waits."""
        return self._load is None

    def get(self) -> Any:
        """The content."""
        with self._lock:
            if self._load is not None:
                self._content = self._load()
                # What made it may hold the encoded bytes, which nobody needs any more.
                self._load = None
            return self._content


class DeferredInputs(Mapping[str, Any]):
    """Encoder inputs that are made when they are first looked at.

    Args:
        load: Makes them; whatever it raises is raised by the look.
    """

    def __init__(self, load: Callable[[], Mapping[str, Any]]) -> None:
        self._content = DeferredContent(load)

    @property
    def are_made(self) -> bool:
        """Whether a look at them is without work. Never waits."""
        return self._content.is_made

    def __getitem__(self, name: str) -> Any:
        return self._content.get()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._content.get())

    def __len__(self) -> int:
        return len(self._content.get())


@dataclass(frozen=True, eq=False)
class MediaItem:
    """One piece of media in canonical form.

    Attributes:
        modality: ``"image"``, ``"audio"`` or ``"video"``.
        content: The canonical payload (see ``data``), or the means to make it. The latter where
            the digest was known without decoding.
        payload_digest: Digest of modality and canonical payload; None where content could not be
            established, which makes the item's tokens unshareable and changes nothing else.
        uuid: The caller's id, mixed into the identity, never a replacement for content.
        part: Where the item stood in the request, for messages.
    """

    modality: str
    content: Any = field(repr=False)
    payload_digest: Digest | None
    uuid: str | None = None
    part: str | None = None

    @property
    def data(self) -> Any:
        """The payload: a ``PIL.Image.Image``, an ``AudioData`` or a ``VideoClip``.

        Decodes now if it was deferred.

        Raises:
            MediaError: If deferred content cannot be made after all.
        """
        content = self.content
        return content.get() if isinstance(content, DeferredContent) else content


@dataclass(frozen=True)
class TextSpan:
    """Half-open character range ``[start, end)`` of a prompt text."""

    start: int
    end: int


@dataclass(frozen=True)
class MediaSpan(TextSpan):
    """Where the placeholder text of one item stands.

    Attributes:
        item: Index of the item in the list handed to the processor.
    """

    item: int


@dataclass(frozen=True)
class StructuredPrompt:
    """A prompt text that knows which characters are structure and which came from a user.

    Attributes:
        text: The whole text.
        plain: Ordered, disjoint spans whose text is only text: special tokens spelled there are
            tokenised as ordinary characters.
        media: Ordered, disjoint spans of media placeholders.
        add_special_tokens: Whether the tokenizer adds its own leading or trailing tokens.
    """

    text: str
    plain: tuple[TextSpan, ...] = ()
    media: tuple[MediaSpan, ...] = ()
    add_special_tokens: bool = True

    def framed(self, before: str, after: str) -> StructuredPrompt:
        """The same prompt with text of ours before and behind each placeholder."""
        if not (before or after):
            return self
        width, starts = len(before) + len(after), [span.start for span in self.media]

        def shift(position: int) -> int:
            return width * bisect_left(starts, position)

        pieces, done = [], 0
        for span in self.media:
            pieces += [
                self.text[done : span.start],
                before,
                self.text[span.start : span.end],
                after,
            ]
            done = span.end
        pieces.append(self.text[done:])
        plain = tuple(
            replace(span, start=span.start + shift(span.start), end=span.end + shift(span.start))
            for span in self.plain
        )
        media = tuple(
            replace(
                span,
                start=span.start + shift(span.start) + len(before),
                end=span.end + shift(span.start) + len(before),
            )
            for span in self.media
        )
        return StructuredPrompt("".join(pieces), plain, media, self.add_special_tokens)


@dataclass(frozen=True)
class PlaceholderRun:
    """A run of consecutive prompt tokens that hold rows of one item.

    Attributes:
        position: Index of the first token in the prompt.
        length: Number of tokens, equal to the number of rows.
    """

    position: int
    length: int


@dataclass(frozen=True, eq=False)
class ProcessedItem:
    """One item as the engine needs it.

    Attributes:
        modality: ``"image"``, ``"audio"`` or ``"video"``.
        identity: Digest of everything that decides the item's rows (payload, resolved options,
            cross-item context, caller id); None if unknown, then nothing from the item's first
            token on is shared.
        runs: Exact placeholder runs in prompt order. Every token in them is one row.
        encoder_inputs: Tensors for the family's encoder, for this item alone. Making them may
            wait for the first look, which then raises whatever goes wrong.
        encoder_kwargs: Further arguments of the encoder call, for example the projection mode.
        uuid: The caller's id, echoed in events.
        part: Where the item stood in the request, for messages.
        deferred: Its content, where that was not decoded when the item was made.
        grid: Lines and columns that its rows alone do not tell (see ``EmbeddingData``).
    """

    modality: str
    identity: Digest | None
    runs: tuple[PlaceholderRun, ...]
    encoder_inputs: Mapping[str, torch.Tensor] = field(repr=False)
    encoder_kwargs: Mapping[str, Any] = field(default_factory=dict)
    uuid: str | None = None
    part: str | None = None
    deferred: DeferredContent | None = field(default=None, repr=False)
    grid: tuple[int, int] | None = None

    @property
    def was_decoded(self) -> bool:
        """Whether its content was made, at once or later."""
        return self.deferred is None or self.deferred.is_made

    @property
    def num_rows(self) -> int:
        """Embedding rows of the item: the sum of its run lengths."""
        return sum(run.length for run in self.runs)

    @property
    def inputs_at_hand(self) -> bool:
        """Whether the encoder inputs are there, so that a look at them is without work."""
        inputs = self.encoder_inputs
        return not isinstance(inputs, DeferredInputs) or inputs.are_made


@dataclass(frozen=True, eq=False)
class ProcessedPrompt:
    """What an input processor makes of a prompt: all that the executor needs to run it.

    Attributes:
        token_ids: int32 array ``[prompt_len]`` with every placeholder expanded to its rows.
        items: The media items in prompt order.
        text: The prompt text, if there was one.
        adapter_mode: What the family selects from the modalities present (for example which
            built-in adapter); part of the block key's scope.
        positions: int32 ``[axes, prompt_len]``: rotary position of each token on each axis; None
            where a token's position is its index. They follow from the token ids and the items'
            identities, so the block key holds what decides them.
        position_delta: What is added to the index of a token behind the prompt to get its
            position: a generated token stands where the same token of a longer prompt does.
    """

    token_ids: np.ndarray
    items: tuple[ProcessedItem, ...] = ()
    text: str | None = None
    adapter_mode: str = ""
    positions: np.ndarray | None = None
    position_delta: int = 0

    def __len__(self) -> int:
        return len(self.token_ids)

    def position_ids(self, begin: int, end: int) -> np.ndarray:
        """Positions of tokens ``[begin, end)`` of the prompt and of what is generated behind it.

        Returns:
            Integer array ``[axes, end - begin]``; one axis where positions are indices.
        """
        if self.positions is None:
            return np.arange(begin, end)[None]
        if end <= len(self):
            return self.positions[:, begin:end]
        axes, first = len(self.positions), max(begin, len(self))
        behind = np.arange(first, end) + self.position_delta
        return np.concatenate(
            [self.positions[:, begin:], np.broadcast_to(behind, (axes, end - first))], axis=1
        )
