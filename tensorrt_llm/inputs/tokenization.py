# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Text to token ids, where what a user wrote stays text.

A tokenizer cannot tell a special token that the chat template put from one that a user typed. We
can: a ``StructuredPrompt`` says which characters came from a user. As long as none of those spells
a special token, the ids are exactly what the tokenizer gives for the text. Otherwise the text is
tokenised by a copy in which every special token has a name that nobody can type, after giving the
template's own tokens those names: the user's characters then match nothing special.
"""

from __future__ import annotations

import json
import re
import secrets
import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from tokenizers import Tokenizer
from transformers import PreTrainedTokenizerBase

from tensorrt_llm.errors import ConfigurationError, RequestError
from tensorrt_llm.inputs.data import MediaSpan, StructuredPrompt, TextSpan


class PromptTokenizer:
    """Tokenises structured prompts; leaves the tokenizer itself as it is.

    Safe to call from several threads.

    Args:
        tokenizer: A fast tokenizer.

    Raises:
        ConfigurationError: If the tokenizer keeps no offsets.
    """

    def __init__(self, tokenizer: PreTrainedTokenizerBase) -> None:
        if not tokenizer.is_fast:
            raise ConfigurationError(
                f"{type(tokenizer).__name__} keeps no character offsets; a fast tokenizer is needed"
            )
        self._tokenizer = tokenizer
        self._special = special_tokens(tokenizer)
        self._aliases: _AliasTokenizer | None = None
        self._lock = threading.Lock()

    def __call__(self, prompt: StructuredPrompt) -> tuple[np.ndarray, list[int]]:
        """Tokenises a prompt.

        Args:
            prompt: The prompt; each media span must be one special token.

        Returns:
            int32 ids ``[num_tokens]``, and for each media span the index of its token.

        Raises:
            ConfigurationError: If a media placeholder is not one special token.
            RequestError: If the text is no valid Unicode, or a user's part of it cannot be written
                without special tokens.
        """
        _check_unicode(prompt.text)
        encoding = self._tokenizer(
            prompt.text,
            add_special_tokens=prompt.add_special_tokens,
            return_offsets_mapping=True,
            return_attention_mask=False,
            verbose=False,
        )
        ids = encoding["input_ids"]
        found = _find_special(prompt.text, ids, encoding["offset_mapping"], self._special)
        if _any_inside(found.values(), prompt):
            return self._alias_tokenizer().encode(prompt)
        return np.asarray(ids, dtype=np.int32), _media_tokens(prompt, found)

    def _alias_tokenizer(self) -> _AliasTokenizer:
        # Made when first needed: it costs a second for a large vocabulary, and few prompts ask.
        with self._lock:
            if self._aliases is None:
                self._aliases = _AliasTokenizer.of(self._tokenizer, self._special)
            return self._aliases


def tokenize(
    tokenizer: PreTrainedTokenizerBase, prompt: StructuredPrompt
) -> tuple[np.ndarray, list[int]]:
    """Tokenises one prompt; see ``PromptTokenizer``, which serves many."""
    return PromptTokenizer(tokenizer)(prompt)


def _check_unicode(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise RequestError(
            f"the text is not valid Unicode: a lone surrogate at character {error.start}"
        ) from error


def special_tokens(tokenizer: PreTrainedTokenizerBase) -> dict[int, str]:
    """The tokens that are structure, never text: id to spelling."""
    return {
        token_id: token.content
        for token_id, token in tokenizer.added_tokens_decoder.items()
        if token.special
    }


@dataclass(frozen=True)
class _Special(TextSpan):
    """Where a special token is spelled in the text, and its index among the tokens."""

    token: int


def _find_special(
    text: str,
    ids: Sequence[int],
    offsets: Sequence[tuple[int, int]],
    spellings: dict[int, str],
) -> dict[int, _Special]:
    """The special tokens of an encoding that stand in the text, by their first character."""
    found = {}
    for index, (token, (start, end)) in enumerate(zip(ids, offsets, strict=True)):
        # Tokens that the tokenizer adds of itself stand for no characters.
        if token not in spellings or start == end:
            continue
        # Some special tokens swallow the white space beside them, which is not their spelling.
        core = text.find(spellings[token], start, end)
        if core >= 0:
            start, end = core, core + len(spellings[token])
        found[start] = _Special(start, end, index)
    return found


def _any_inside(found: Iterable[_Special], prompt: StructuredPrompt) -> bool:
    """Whether any of the tokens takes a character of a plain span."""
    is_plain = np.zeros(len(prompt.text), dtype=bool)
    for span in prompt.plain:
        is_plain[span.start : span.end] = True
    return any(is_plain[special.start : special.end].any() for special in found)


def _media_tokens(prompt: StructuredPrompt, found: dict[int, _Special]) -> list[int]:
    return [_media_token(span, found, prompt.text) for span in prompt.media]


def _media_token(span: MediaSpan, found: dict[int, _Special], text: str) -> int:
    special = found.get(span.start)
    if special is None or special.end != span.end:
        raise ConfigurationError(
            f"the media placeholder {text[span.start : span.end]!r} is not one special token of "
            "this tokenizer"
        )
    return special.token


@dataclass(frozen=True)
class _AliasTokenizer:
    """A copy of a tokenizer whose special tokens have unspeakable names.

    Attributes:
        backend: The copy.
        aliases: Spelling of a special token to its name in the copy.
        names: Id of a special token in the copy to its name there.
        original_ids: Id in the copy of an added token, special or not, to id in the original.
    """

    backend: Tokenizer
    aliases: dict[str, str]
    names: dict[int, str]
    original_ids: dict[int, int]

    @classmethod
    def of(cls, tokenizer: PreTrainedTokenizerBase, special: dict[int, str]) -> _AliasTokenizer:
        # Drawn anew for each tokenizer, so no prompt can be prepared for it.
        nonce = secrets.token_hex(16)
        aliases = {text: f"\ue000{nonce}:{token}\ue001" for token, text in special.items()}
        layout = json.loads(tokenizer.backend_tokenizer.to_str())
        for added in layout["added_tokens"]:
            if added["special"] and added["content"] in aliases:
                added["content"] = aliases[added["content"]]
        # A length limit that somebody set on the original must not cut prompts here.
        layout["truncation"] = layout["padding"] = None
        backend = Tokenizer.from_str(json.dumps(layout))
        names = {_id_of(backend, alias): alias for alias in aliases.values()}
        # New names may take new ids, and then the other added tokens move too.
        originals = {
            _id_of(backend, aliases.get(added.content, added.content)): token
            for token, added in tokenizer.added_tokens_decoder.items()
        }
        return cls(backend, aliases, names, originals)

    def encode(self, prompt: StructuredPrompt) -> tuple[np.ndarray, list[int]]:
        """Tokenises, and finds the token of each media span."""
        text, stood = self._rename(prompt)
        encoding = self.backend.encode(text, add_special_tokens=prompt.add_special_tokens)
        self._refuse_reached(encoding.ids, encoding.offsets, text)
        found = _find_special(text, encoding.ids, encoding.offsets, self.names)
        # The renamed tokens are the same in the same order, only at other characters.
        moved = {
            start: _Special(start, end, special.token)
            for (start, end), special in zip(stood, found.values(), strict=True)
        }
        ids = [self.original_ids.get(token, token) for token in encoding.ids]
        return np.asarray(ids, dtype=np.int32), _media_tokens(prompt, moved)

    def _rename(self, prompt: StructuredPrompt) -> tuple[str, list[tuple[int, int]]]:
        """Renames the special tokens outside plain spans; also gives where those stood."""
        # Longest first, as tokenizers match where one spelling begins another.
        spellings = sorted(self.aliases, key=len, reverse=True)
        pattern = re.compile("|".join(map(re.escape, spellings)))
        pieces: list[str] = []
        stood: list[tuple[int, int]] = []
        for start, end, is_plain in _regions(prompt):
            if is_plain:
                pieces.append(prompt.text[start:end])
                continue
            done = start
            for match in pattern.finditer(prompt.text, start, end):
                pieces += [prompt.text[done : match.start()], self.aliases[match.group()]]
                stood.append(match.span())
                done = match.end()
            pieces.append(prompt.text[done:end])
        return "".join(pieces), stood

    def _refuse_reached(
        self, ids: Sequence[int], offsets: Sequence[tuple[int, int]], text: str
    ) -> None:
        # A vocabulary may hold a special token's spelling as an ordinary entry too; if the model
        # reaches it from plain text there is no way to write that text.
        special = {self.original_ids[token] for token in self.names}
        forbidden = special - set(self.original_ids)
        for token, (start, end) in zip(ids, offsets, strict=True):
            if token in forbidden and start < end:
                raise RequestError(
                    f"this tokenizer cannot write {text[start:end]!r} as ordinary text"
                )


def _id_of(backend: Tokenizer, name: str) -> int:
    token = backend.token_to_id(name)
    assert token is not None, f"the copy lost {name}"
    return token


def _regions(prompt: StructuredPrompt) -> Iterable[tuple[int, int, bool]]:
    """Cuts the text into structure and plain spans: (start, end, is plain)."""
    done = 0
    for span in prompt.plain:
        if span.start > done:
            yield done, span.start, False
        yield span.start, span.end, True
        done = span.end
    if done < len(prompt.text):
        yield done, len(prompt.text), False
