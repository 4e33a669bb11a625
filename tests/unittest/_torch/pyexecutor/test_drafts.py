# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""What is guessed, against a search that tries every place; what holds of it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensorrt_llm._torch.pyexecutor.drafts import PromptLookup, TokenHistory, count_accepted

TOKENS = st.lists(st.integers(0, 2), max_size=24)


def slow(tokens: list[int], most: int, ngram: int) -> tuple[int, ...]:
    """Every length of the end, longest first; every earlier place."""
    for size in range(min(ngram, len(tokens) - 1), 0, -1):
        ends = [
            end
            for end in range(size - 1, len(tokens) - 1)
            if tokens[end + 1 - size : end + 1] == tokens[len(tokens) - size :]
        ]
        if ends:
            whole = [end for end in ends if len(tokens) - 1 - end >= most]
            end = whole[-1] if whole else ends[0]
            return tuple(tokens[end + 1 : end + 1 + most])
    return ()


@given(TOKENS, st.integers(0, 6), st.integers(1, 6), st.integers(1, 4))
def test_it_finds_what_a_search_of_all_places_finds(tokens, most, longest, ngram) -> None:
    found = PromptLookup(longest, ngram).propose(np.array(tokens, np.int32), most)
    assert found == (slow(tokens, min(most, longest), ngram) if min(most, longest) else ())


@pytest.mark.parametrize(
    ("tokens", "draft"),
    [
        ([1, 2, 3, 4, 1, 2], (3, 4, 1)),
        ([1, 2, 3, 4, 9, 2], (3, 4, 9)),  # one token is found where two are not
        ([1, 2, 8, 8, 8, 1, 2, 9, 9, 9, 1, 2], (9, 9, 9)),  # the newest
        ([1, 2, 8, 8, 8, 1, 2, 1, 2], (8, 8, 8)),  # the newest has fewer behind it
        ([7, 7], (7,)),
        ([1, 2, 3], ()),
        ([1], ()),
    ],
)
def test_examples(tokens, draft) -> None:
    assert PromptLookup(3, 2).propose(np.array(tokens, np.int32), 9) == draft


@pytest.mark.parametrize(
    ("draft", "chosen", "count"),
    [
        ((1, 2, 3), [1, 2, 3, 4], 3),
        ((1, 2, 3), [1, 2, 9, 4], 2),
        ((1, 2, 3), [9, 2, 3, 4], 0),
        ((1, 7, 3), [1, 7, 3, 4], 1),  # 7 ends the answer: it is chosen, nothing follows it
        ((1, 2, 3), [1, 2, None, 4], 1),  # nothing can be chosen behind the second
        ((), [5], 0),
    ],
)
def test_a_draft_holds_as_far_as_it_would_have_been_chosen(draft, chosen, count) -> None:
    assert count_accepted(draft, chosen, {7}) == count


def test_a_history_grows_with_the_answer() -> None:
    history = TokenHistory(np.array([4, 5], np.int32), 3)
    answer: list[int] = []
    for more in ([], [6], [7, 8]):
        answer += more
        assert history.upto(answer).tolist() == [4, 5, *answer]
