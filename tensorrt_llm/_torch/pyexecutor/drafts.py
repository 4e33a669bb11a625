# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Drafts by prompt lookup: what followed the last tokens the last time they came.

A draft is a guess at an answer's next tokens. The model runs over all of them in one step and says
of each what it would have chosen; the draft holds as far as that is the same. So an answer is what
it would be without drafts, whatever is guessed. Only the request's own tokens are looked at: those
of others would tell about them.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class PromptLookup:
    """Finds drafts.

    Attributes:
        max_draft_len: Most tokens of a draft.
        max_matching_ngram_size: Most last tokens that are looked for; fewer where so many never
            came before.
    """

    max_draft_len: int
    max_matching_ngram_size: int

    def propose(self, tokens: np.ndarray, most: int) -> tuple[int, ...]:
        """Guesses what comes after some tokens.

        The longest match counts; of several the newest that is followed by a whole draft, or the
        oldest if none is, as more tokens follow that.

        Args:
            tokens: int32 ``[n]``.
            most: Most tokens of the draft, beside ``max_draft_len``.

        Returns:
            At most so many tokens; none if the last token never came before.
        """
        length, most = len(tokens), min(most, self.max_draft_len)
        if most < 1 or length < 2:
            return ()
        ends = np.flatnonzero(tokens[:-1] == tokens[-1])
        for back in range(1, self.max_matching_ngram_size):
            longer = ends[ends >= back]
            longer = longer[tokens[longer - back] == tokens[length - 1 - back]]
            if not len(longer):
                break
            ends = longer
        if not len(ends):
            return ()
        followed = ends[ends + most < length]
        begin = int(followed[-1] if len(followed) else ends[0]) + 1
        return tuple(tokens[begin : begin + most].tolist())


def count_accepted(
    draft: Sequence[int], chosen: Sequence[int | None], stop_token_ids: Collection[int]
) -> int:
    """How many tokens of a draft are what would have been chosen without it.

    Args:
        draft: The guess.
        chosen: What is chosen before the draft's first token and after each of its tokens, one
            more than the draft has; None where nothing can be chosen.
        stop_token_ids: Tokens behind which there is nothing.

    Returns:
        A number of leading tokens. What is chosen after them can be chosen.
    """
    count = 0
    for token_id, follows in zip(draft, chosen[1:], strict=True):
        if chosen[count] != token_id or token_id in stop_token_ids or follows is None:
            break
        count += 1
    return count


class TokenHistory:
    """All tokens of a request in one array, so that a look at them copies nothing.

    Args:
        prompt: int32 ``[n]``.
        most: Most tokens that come behind it.
    """

    def __init__(self, prompt: np.ndarray, most: int) -> None:
        self._tokens = np.empty(len(prompt) + most, np.int32)
        self._tokens[: len(prompt)] = prompt
        self._prompt_len = self._length = len(prompt)

    def upto(self, answer: Sequence[int]) -> np.ndarray:
        """Prompt and answer, int32, a view; the answer begins with what it was the last time."""
        end = self._prompt_len + len(answer)
        self._tokens[self._length : end] = answer[self._length - self._prompt_len :]
        self._length = end
        return self._tokens[:end]
