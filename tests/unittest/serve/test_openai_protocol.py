# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Request bodies: fields that work, fields that are inert, fields that are refused."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from tensorrt_llm.errors import RequestError
from tensorrt_llm.llmapi.strict_model import describe_errors
from tensorrt_llm.sampling_params import GuidedDecodingParams, SamplingParams
from tensorrt_llm.serve.openai_protocol import ChatCompletionRequest, CompletionRequest

MESSAGES = [{"role": "user", "content": "x"}]


def chat(**fields) -> ChatCompletionRequest:
    return ChatCompletionRequest(**{"messages": MESSAGES, **fields})


def mistake(kind, **fields) -> tuple[str, str]:
    required = {"messages": MESSAGES} if kind is ChatCompletionRequest else {"prompt": "x"}
    with pytest.raises(ValidationError) as caught:
        kind(**{**required, **fields})
    return describe_errors(caught.value)[0]


def test_sampling_options_reach_the_engine_as_they_are() -> None:
    body = chat(
        max_tokens=7,
        temperature=0.5,
        top_p=0.9,
        top_k=4,
        seed=3,
        stop=["a", "b"],
        stop_token_ids=[9],
        include_stop_str_in_output=True,
        ignore_eos=True,
        skip_special_tokens=False,
        logprobs=True,
        top_logprobs=5,
        add_special_tokens=True,
        n=2,
        best_of=3,
        min_p=0.1,
        repetition_penalty=1.1,
        presence_penalty=0.25,
        frequency_penalty=-0.5,
        logit_bias={"5": 1.5},
        bad="c",
        bad_token_ids=[8],
        min_tokens=2,
        guided_choice=["yes", "no"],
    )
    assert body.sampling_params() == SamplingParams(
        max_tokens=7,
        temperature=0.5,
        top_p=0.9,
        top_k=4,
        seed=3,
        stop=["a", "b"],
        stop_token_ids=[9],
        include_stop_str_in_output=True,
        ignore_eos=True,
        skip_special_tokens=False,
        logprobs=5,
        add_special_tokens=True,
        n=2,
        best_of=3,
        min_p=0.1,
        repetition_penalty=1.1,
        presence_penalty=0.25,
        frequency_penalty=-0.5,
        logit_bias={5: 1.5},
        bad="c",
        bad_token_ids=[8],
        min_tokens=2,
        guided_decoding=GuidedDecodingParams(choice=["yes", "no"]),
    )


def test_beam_search() -> None:
    body = chat(use_beam_search=True, best_of=3, length_penalty=0.5, early_stopping="never")
    assert body.sampling_params() == SamplingParams(
        max_tokens=None,
        temperature=1.0,
        top_p=1.0,
        top_k=0,
        repetition_penalty=1.0,
        presence_penalty=0.0,
        frequency_penalty=0.0,
        min_tokens=0,
        add_special_tokens=False,
        best_of=3,
        use_beam_search=True,
        length_penalty=0.5,
        early_stopping="never",
    )
    assert mistake(ChatCompletionRequest, use_beam_search=True, best_of=3, stream=True) == (
        "use_beam_search",
        "the answers of a beam search are known at the end; not streamed",
    )


def test_defaults_are_those_of_the_openai_api() -> None:
    sampling = chat().sampling_params()
    assert (sampling.max_tokens, sampling.temperature, sampling.top_p) == (None, 1.0, 1.0)
    assert not sampling.greedy
    assert sampling.logprobs is None
    assert CompletionRequest(prompt="x").sampling_params().max_tokens == 16
    assert chat(temperature=0).sampling_params().greedy


def test_null_is_the_default_everywhere() -> None:
    for kind, required in ((ChatCompletionRequest, "messages"), (CompletionRequest, "prompt")):
        value = MESSAGES if required == "messages" else "x"
        nulls = dict.fromkeys(name for name in kind.model_fields if name != required)
        assert kind(**{required: value, **nulls}) == kind(**{required: value})
    assert mistake(ChatCompletionRequest, frobnicate=None) == ("frobnicate", "unknown field")


def test_the_newer_name_of_max_tokens_wins() -> None:
    assert chat(max_completion_tokens=5).sampling_params().max_tokens == 5
    assert chat(max_tokens=9, max_completion_tokens=5).sampling_params().max_tokens == 5


def test_signed_seeds_are_distinct_and_in_range() -> None:
    seeds = {chat(seed=seed).sampling_params().seed for seed in (-1, 0, 1, -(2**63), 2**63 - 1)}
    assert len(seeds) == 5
    assert all(0 <= seed < 2**64 for seed in seeds if seed is not None)


def test_log_probabilities() -> None:
    assert chat(logprobs=True).sampling_params().logprobs == 0
    assert chat(logprobs=False).sampling_params().logprobs is None
    assert CompletionRequest(prompt="x", logprobs=3).sampling_params().logprobs == 3
    assert mistake(ChatCompletionRequest, top_logprobs=2)[0] == "top_logprobs"


@pytest.mark.parametrize("kind", [ChatCompletionRequest, CompletionRequest])
@pytest.mark.parametrize(
    ("field", "inert", "other"),
    [
        ("truncate_prompt_tokens", None, 5),
        ("spaces_between_special_tokens", True, False),
    ],
)
def test_inert_fields(kind, field: str, inert: object, other: object) -> None:
    required = {"messages": MESSAGES} if kind is ChatCompletionRequest else {"prompt": "x"}
    kind(**required, **{field: inert})
    path, reason = mistake(kind, **{field: other})
    assert path == field
    assert "not available in this release" in reason


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("frobnicate", 1),
        ("tools", {"type": "function"}),
        ("chat_template", "{{ 1 }}"),
        ("cache_salt", " "),
        ("cache_salt", ""),
        ("messages", []),
        ("messages", "x"),
        ("temperature", "hot"),
        ("max_tokens", 1.5),
        ("stream_options", {"include_usage": True}),
        ("chat_template_kwargs", {"tokenize": True}),
        ("chat_template_kwargs", 5),
        ("stop", 5),
        ("logit_bias", {"five": 1.0}),
        ("response_format", {"type": "poem"}),
        ("response_format", {"type": "json_object", "frobnicate": 1}),
        ("guided_choice", "yes"),
    ],
)
def test_refused_in_chat(field: str, value: object) -> None:
    assert mistake(ChatCompletionRequest, **{field: value})[0].split(".")[0] == field


def test_nested_unknown_fields_are_named() -> None:
    path, reason = mistake(ChatCompletionRequest, stream=True, stream_options={"usage": True})
    assert (path, reason) == ("stream_options.usage", "unknown field")


def test_ranges_are_checked_once_for_all_doors() -> None:
    for fields in (
        *({"temperature": -1}, {"top_p": 0}, {"max_tokens": 0}, {"stop": [""]}),
        *({"n": 0}, {"min_p": 2}, {"logit_bias": {"5": 200}}, {"best_of": 1, "n": 2}),
    ):
        with pytest.raises(RequestError) as caught:
            chat(**fields).sampling_params()
        assert caught.value.part == next(iter(fields))


@pytest.mark.parametrize(
    ("options", "include", "continuous"),
    [
        ({}, False, False),
        ({"stream": True}, False, False),
        ({"stream": True, "stream_options": {"include_usage": True}}, True, False),
        ({"stream": True, "stream_options": {"continuous_usage_stats": True}}, False, False),
        (
            {
                "stream": True,
                "stream_options": {"include_usage": True, "continuous_usage_stats": True},
            },
            True,
            True,
        ),
    ],
)
def test_usage_in_streams(options: dict, include: bool, continuous: bool) -> None:
    body = chat(**options)
    assert (body.include_usage, body.continuous_usage) == (include, continuous)


@pytest.mark.parametrize(
    ("prompt", "prompts"),
    [
        ("x", ["x"]),
        ([1, 2], [[1, 2]]),
        (["x", "y"], ["x", "y"]),
        ([[1], [2, 3]], [[1], [2, 3]]),
        ([], []),
    ],
)
def test_prompts(prompt: object, prompts: list) -> None:
    assert CompletionRequest(prompt=prompt).prompts() == prompts


@pytest.mark.parametrize("prompt", [5, {"a": 1}, [1, "x"], [[1], "x"]])
def test_wrong_prompts(prompt: object) -> None:
    assert mistake(CompletionRequest, prompt=prompt)[0].startswith("prompt")
