# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""The brute-force oracle itself, on cases that can be checked by hand."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.prefix_model import PrefixModel, token_keys
from tensorrt_llm.inputs.data import PlaceholderRun, ProcessedItem, ProcessedPrompt


def prompt(ids: list[int], *runs: tuple[int, int]) -> ProcessedPrompt:
    items = tuple(
        ProcessedItem("image", None, (PlaceholderRun(at, length),), {}) for at, length in runs
    )
    return ProcessedPrompt(np.asarray(ids, np.int32), items)


@pytest.mark.parametrize(("partial", "expected"), [(True, [9, 7, 7, 10]), (False, [8, 4, 4, 8])])
def test_the_longest_common_head_and_never_the_last_token(partial, expected) -> None:
    model = PrefixModel(4, partial)
    written = [(n,) for n in range(10)]
    model.write(written)
    asked = [written, written[:8], written[:7] + [(99,)] * 5, [(n,) for n in range(20)]]
    assert [model.longest(keys) for keys in asked] == expected
    assert model.longest(written, scope="other") == 0


def test_equal_tokens_with_other_media_or_another_row_are_other_keys() -> None:
    text = [1, 2, 7, 7, 7, 7, 3, 4, 5]
    one, other = prompt(text, (2, 4)), prompt(text, (2, 4))
    keys = token_keys(one, ("a",))
    assert keys == token_keys(other, ("a",))
    assert keys[:2] == token_keys(other, ("b",))[:2]
    assert keys[2] != token_keys(other, ("b",))[2]
    assert keys[2] == (7, "a", 0) and keys[5] == (7, "a", 3)
    shifted = token_keys(prompt([1, 2, 7, 7, 7, 7, 7, 3], (2, 5)), ("a",))
    assert shifted[2:6] == keys[2:6], "rows are counted from the item's first"


def test_generated_tokens_count_when_written() -> None:
    model = PrefixModel(4)
    model.write(token_keys(prompt([1, 2, 3]), (), generated=[4, 5]))
    assert model.longest(token_keys(prompt([1, 2, 3, 4, 5, 6]), ())) == 5
