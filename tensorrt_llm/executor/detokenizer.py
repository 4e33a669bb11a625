# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Token ids to text, a step at a time, ending at stop texts."""

from __future__ import annotations

import json
from typing import Protocol

from tokenizers.decoders import DecodeStream


class Tokenizer(Protocol):
    """The part of a transformers fast tokenizer that is used here."""

    @property
    def backend_tokenizer(self) -> object:
        """The ``tokenizers.Tokenizer`` inside."""

    def decode(self, token_ids: list[int], skip_special_tokens: bool = False) -> str:
        """All ids to text."""

    def encode(self, text: str, add_special_tokens: bool = True) -> list[int]:
        """Text to ids."""


def tokenizer_json(tokenizer: Tokenizer | None) -> str | None:
    """The tokenizer as the ``tokenizers`` library writes it; it neither pads nor cuts."""
    if tokenizer is None:
        return None
    written = json.loads(tokenizer.backend_tokenizer.to_str())  # type: ignore[attr-defined]
    return json.dumps({**written, "padding": None, "truncation": None}, ensure_ascii=False)


class IncrementalDetokenizer:
    """Text of one answer as it grows.

    ``text`` never takes characters back: bytes of an unfinished character wait, and so does any
    tail that may turn out to be the beginning of a stop text.

    Args:
        tokenizer: A fast tokenizer.
        stop: Texts that end the answer.
        include_stop: Whether the stop text stays at the end of the answer.
        skip_special_tokens: Whether special tokens are left out.
        min_tokens: A stop text that is complete before so many tokens does not count.
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        *,
        stop: tuple[str, ...] = (),
        include_stop: bool = False,
        skip_special_tokens: bool = True,
        min_tokens: int = 0,
    ) -> None:
        self._min_tokens = min_tokens
        self._tokenizer = tokenizer
        self._stop = stop
        self._include_stop = include_stop
        self._skip_special_tokens = skip_special_tokens
        self._stream = DecodeStream(skip_special_tokens=skip_special_tokens)
        self._decoded = ""
        self._token_ids: list[int] = []
        self.text = ""
        self.stopped_at: str | None = None

    def add(self, token_id: int) -> bool:
        """Takes one token.

        Returns:
            True if a stop text is complete; no token may follow.
        """
        assert self.stopped_at is None, "a token after the stop text"
        self._token_ids.append(token_id)
        piece = self._stream.step(self._tokenizer.backend_tokenizer, token_id)  # type: ignore[arg-type]
        if piece:
            self._decoded += piece
            if len(self._token_ids) >= self._min_tokens:
                self._look_for_stop(since=len(self._decoded) - len(piece))
            if self.stopped_at is None:
                self.text = self._decoded[: len(self._decoded) - self._held_back()]
        return self.stopped_at is not None

    def finish(self) -> None:
        """Releases what was held back. An unfinished character becomes U+FFFD, as in decode()."""
        if self.stopped_at is not None:
            return
        whole = self._tokenizer.decode(
            self._token_ids, skip_special_tokens=self._skip_special_tokens
        )
        if whole.startswith(self._decoded):
            self._decoded = whole
        self.text = self._decoded

    def _look_for_stop(self, since: int) -> None:
        found: tuple[int, str] | None = None
        for stop in self._stop:
            at = self._decoded.find(stop, max(0, since - len(stop) + 1))
            if at >= 0 and (found is None or at < found[0]):
                found = (at, stop)
        if found is not None:
            at, self.stopped_at = found
            self.text = self._decoded[: at + len(self.stopped_at) * self._include_stop]

    def _held_back(self) -> int:
        """Length of the longest tail that begins a stop text."""
        longest = 0
        for stop in self._stop:
            for length in range(min(len(stop) - 1, len(self._decoded)), longest, -1):
                if self._decoded.endswith(stop[:length]):
                    longest = length
                    break
        return longest
