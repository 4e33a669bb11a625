# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""What sampling options mean, and that wrong ones are named with their value."""

from __future__ import annotations

import pytest

from tensorrt_llm.errors import RequestError
from tensorrt_llm.sampling_params import SamplingParams


@pytest.mark.parametrize(
    ("options", "greedy"),
    [
        ({}, True),
        ({"temperature": 0}, True),
        ({"temperature": 0.7}, False),
        ({"top_k": 1, "temperature": 0.7}, True),
        ({"top_k": 0}, True),
        ({"top_k": 5}, False),
        ({"top_p": 1.0}, True),
        ({"top_p": 0.9}, False),
        ({"temperature": 0, "top_p": 0.9}, True),
    ],
)
def test_greedy(options, greedy) -> None:
    assert SamplingParams(**options).greedy is greedy


@pytest.mark.parametrize(
    ("field", "value", "says"),
    [
        ("max_tokens", 0, "at least 1, got 0"),
        ("temperature", -0.1, "at least 0, got -0.1"),
        ("temperature", float("nan"), "at least 0, got nan"),
        ("top_k", -1, "at least 0, got -1"),
        ("top_p", 0, r"in \(0, 1\], got 0"),
        ("top_p", 1.5, r"in \(0, 1\], got 1.5"),
        ("seed", -1, r"in \[0, 2\*\*64\), got -1"),
        ("logprobs", 21, r"in \[0, 20\], got 21"),
        ("n", 2, "1 .* got 2"),
        ("stop", "", "non-empty text, got ''"),
        ("stop", ["a", ""], "non-empty text"),
    ],
)
def test_wrong_values_are_named(field, value, says) -> None:
    with pytest.raises(RequestError, match=f"^{field}: must be {says}"):
        SamplingParams(**{field: value})


def test_stop_is_one_text_or_several() -> None:
    assert SamplingParams().stop_list == ()
    assert SamplingParams(stop="a").stop_list == ("a",)
    assert SamplingParams(stop=["a", "b"]).stop_list == ("a", "b")
