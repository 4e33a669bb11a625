# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Keeps an answer to its grammar: which tokens may come next. llguidance does the work."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING

import torch

from tensorrt_llm.errors import EngineError

if TYPE_CHECKING:
    from llguidance import LLMatcher, LLTokenizer


class Guide:
    """The state of one answer.

    Args:
        matcher: At the beginning.
        vocab_size: Number of token ids.
    """

    def __init__(self, matcher: LLMatcher, vocab_size: int) -> None:
        self._matcher = matcher
        self._vocab_size = vocab_size
        self._mask = torch.zeros(-(-vocab_size // 32), dtype=torch.int32)

    def allowed(self) -> torch.Tensor:
        """Which tokens may come: int32 ``[ceil(vocab_size / 32)]``, a bit a token, lowest first.

        Valid until the next call.

        Raises:
            EngineError: If the grammar turned out to be too complex.
        """
        self._matcher.unsafe_compute_mask_ptr(self._mask.data_ptr(), self._mask.nbytes)
        _check(self._matcher)
        return self._mask

    def accept(self, token_id: int) -> None:
        """Goes on behind a token.

        Raises:
            EngineError: If it is not allowed.
        """
        self._matcher.consume_token(token_id)
        _check(self._matcher)

    @property
    def complete(self) -> bool:
        """Whether nothing may follow."""
        return self._matcher.is_stopped()

    def fork(self) -> Guide:
        """A second answer that goes on from here."""
        return Guide(self._matcher.deep_copy(), self._vocab_size)


def _check(matcher: LLMatcher) -> None:
    if matcher.is_error():
        raise EngineError(f"guided decoding: {matcher.get_error()}")


class GuideFactory:
    """Makes guides for one model. Safe to use from several threads.

    Args:
        tokenizer: Gives the tokenizer as the ``tokenizers`` library writes it; called when the
            first guide is made. None if there is none.
        vocab_size: Number of token ids of the model.
        stop_token_ids: Ids that may end an answer that is complete.
    """

    def __init__(
        self,
        tokenizer: Callable[[], str | None],
        vocab_size: int,
        stop_token_ids: Collection[int],
    ) -> None:
        self._tokenizer = tokenizer
        self._vocab_size = vocab_size
        self._stop_token_ids = sorted(stop_token_ids)
        self._lock = threading.Lock()
        self._vocabulary: LLTokenizer | None = None

    def make(self, grammar: str) -> Guide:
        """A guide at the beginning of an answer; takes milliseconds to seconds.

        Raises:
            EngineError: If there is no tokenizer that can guide, or the grammar does not compile.
        """
        from llguidance import LLMatcher

        matcher = LLMatcher(self._vocabulary_of_the_model(), grammar, log_level=0)
        _check(matcher)
        return Guide(matcher, self._vocab_size)

    def _vocabulary_of_the_model(self) -> LLTokenizer:
        from llguidance import LLTokenizer

        with self._lock:
            if self._vocabulary is None:
                tokenizer = self._tokenizer()
                if tokenizer is None:
                    raise EngineError("guided decoding needs a tokenizer, and there is none")
                try:
                    self._vocabulary = LLTokenizer(
                        tokenizer, n_vocab=self._vocab_size, eos_token=self._stop_token_ids or None
                    )
                except ValueError as error:
                    raise EngineError(
                        f"guided decoding does not work with this tokenizer: {error}"
                    ) from error
            return self._vocabulary
