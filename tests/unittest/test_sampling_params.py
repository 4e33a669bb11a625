# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""What sampling options mean, and that wrong ones are named with their value."""

from __future__ import annotations

import pytest
from pydantic import BaseModel

from tensorrt_llm.errors import RequestError
from tensorrt_llm.sampling_params import GuidedDecodingParams, SamplingParams


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
        ("temperature", float("inf"), "finite, got inf"),
        ("top_k", -1, "at least 0, got -1"),
        ("top_p", 0, r"in \(0, 1\], got 0"),
        ("top_p", 1.5, r"in \(0, 1\], got 1.5"),
        ("seed", -1, r"in \[0, 2\*\*64\), got -1"),
        ("logprobs", 21, r"in \[0, 20\], got 21"),
        ("min_p", 1.5, r"in \[0, 1\], got 1.5"),
        ("repetition_penalty", 0, "above 0, got 0"),
        ("repetition_penalty", float("inf"), "above 0, got inf"),
        ("presence_penalty", 2.5, r"in \[-2, 2\], got 2.5"),
        ("frequency_penalty", float("nan"), r"in \[-2, 2\], got nan"),
        ("logit_bias", {5: 101}, r"in \[-100, 100\], got {5: 101}"),
        ("min_tokens", -1, "at least 0, got -1"),
        ("prompt_logprobs", 21, r"in \[0, 20\], got 21"),
        ("n", 0, r"in \[1, 128\], got 0"),
        ("n", 129, r"in \[1, 128\], got 129"),
        ("best_of", 0, r"in \[n, 128\] \(n is 1\), got 0"),
        ("bad", ["a", ""], "non-empty text"),
        ("stop", "", "non-empty text, got ''"),
        ("stop", ["a", ""], "non-empty text"),
    ],
)
def test_wrong_values_are_named(field, value, says) -> None:
    with pytest.raises(RequestError, match=f"^{field}: must be {says}"):
        SamplingParams(**{field: value})


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"best_of": 1}, "best_of: a beam search needs at least 2 beams"),
        ({"temperature": 0.5}, "temperature: not with use_beam_search"),
        ({"top_k": 5}, "top_k: not"),
        ({"seed": 0}, "seed: not"),
        ({"repetition_penalty": 1.5}, "repetition_penalty: not"),
        ({"logit_bias": {3: 1.0}}, "logit_bias: not"),
        ({"bad": "word"}, "bad: not"),
        ({"stop": "word"}, "stop: not"),
        ({"min_tokens": 1}, "min_tokens: not"),
        ({"prompt_logprobs": 0}, "prompt_logprobs: not"),
        ({"return_generation_logits": True}, "return_generation_logits: not"),
        ({"guided_decoding": GuidedDecodingParams(regex="a")}, "guided_decoding: not"),
        ({"length_penalty": float("inf")}, "length_penalty: must be a finite number"),
        ({"early_stopping": "always"}, "early_stopping: must be a boolean or 'never'"),
        ({"use_beam_search": False, "length_penalty": 2.0}, "length_penalty: must be 1 without"),
        ({"use_beam_search": False, "early_stopping": True}, "early_stopping: must be false"),
    ],
)
def test_what_does_not_go_with_a_beam_search_is_named(options, says) -> None:
    with pytest.raises(RequestError, match=f"^{says}"):
        SamplingParams(**{"use_beam_search": True, "best_of": 3, **options})


def test_a_beam_search_takes_what_changes_nothing() -> None:
    params = SamplingParams(use_beam_search=True, best_of=3, n=2, temperature=1.0, top_p=1, top_k=0)
    assert (params.num_answers, params.num_sequences, params.scored_logprobs) == (2, 3, 0)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({}, "exactly one kind has to be set, got none"),
        ({"regex": "a", "json_object": True}, "exactly one .* got regex, json_object"),
        ({"choice": []}, "choice: must be a list of non-empty texts"),
        ({"choice": ["a", ""]}, "choice: must be a list of non-empty texts"),
    ],
)
def test_an_answer_is_guided_in_one_way(given, says) -> None:
    with pytest.raises(RequestError, match=says):
        GuidedDecodingParams(**given)


def test_a_pydantic_model_stands_for_its_schema() -> None:
    class City(BaseModel):
        name: str

    assert GuidedDecodingParams(json=City).json == City.model_json_schema()


def test_best_answers_need_log_probabilities_that_nobody_asked_for() -> None:
    assert SamplingParams(n=2).scored_logprobs is None
    assert SamplingParams(n=2, best_of=2).scored_logprobs is None
    assert SamplingParams(n=2, best_of=3).scored_logprobs == 0
    assert SamplingParams(n=2, best_of=3, logprobs=4).scored_logprobs == 4


def test_stop_is_one_text_or_several() -> None:
    assert SamplingParams().stop_list == ()
    assert SamplingParams(stop="a").stop_list == ("a",)
    assert SamplingParams(stop=["a", "b"]).stop_list == ("a", "b")
