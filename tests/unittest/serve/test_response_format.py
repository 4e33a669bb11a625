# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""All ways to say what an answer has to be, over HTTP."""

from __future__ import annotations

import json
import re

import pytest
from support.asgi_client import COMPLETIONS, Client, events

from tensorrt_llm.errors import RequestError
from tensorrt_llm.sampling_params import GuidedDecodingParams
from tensorrt_llm.serve.openai_protocol import CompletionRequest

SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}


def guided(**fields) -> GuidedDecodingParams | None:
    return CompletionRequest(prompt="x", **fields).sampling_params().guided_decoding


@pytest.mark.parametrize(
    ("form", "expected"),
    [
        ({"type": "text"}, None),
        ({"type": "json_object"}, {"json_object": True}),
        (
            {"type": "json_schema", "json_schema": {"name": "n", "schema": SCHEMA, "strict": True}},
            {"json": SCHEMA},
        ),
        ({"type": "json", "schema": SCHEMA}, {"json": SCHEMA}),
        ({"type": "regex", "regex": "a+"}, {"regex": "a+"}),
        ({"type": "ebnf", "ebnf": "root ::= [a-c]"}, {"grammar": "root ::= [a-c]"}),
    ],
)
def test_response_formats(form, expected) -> None:
    assert guided(response_format=form) == (expected and GuidedDecodingParams(**expected))


@pytest.mark.parametrize(
    ("name", "value"),
    [("json", SCHEMA), ("regex", "a+"), ("grammar", "start: /a/"), ("choice", ["a", "b"])],
)
def test_guided_fields(name, value) -> None:
    assert guided(**{f"guided_{name}": value}) == GuidedDecodingParams(**{name: value})


def test_only_one_way_at_a_time() -> None:
    with pytest.raises(RequestError, match="guided_regex, response_format"):
        guided(guided_regex="a", response_format={"type": "json_object"})
    assert guided(guided_regex="a", response_format={"type": "text"}) is not None


@pytest.mark.parametrize("kind", ["json_schema", "json", "regex", "ebnf"])
def test_what_a_type_needs_is_asked_for_by_name(kind) -> None:
    with pytest.raises(RequestError, match=f"response_format.*type {kind} needs"):
        guided(response_format={"type": kind})


def test_answers_over_http_have_the_form(client: Client) -> None:
    fields = {"max_tokens": 40, "temperature": 9.0, "seed": 4, "n": 3}
    response = client.chat("Digits, please.", guided_regex="[0-9]{5}", **fields)
    assert response.status_code == 200, response.text
    body = response.json()
    texts = [choice["message"]["content"] for choice in body["choices"]]
    assert [choice["index"] for choice in body["choices"]] == [0, 1, 2]
    assert all(re.fullmatch("[0-9]{5}", text) for text in texts) and len(set(texts)) == 3
    usage = body["usage"]
    assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"]
    streamed = ["", "", ""]
    chunks = events(
        client.chat(
            "Digits, please.",
            guided_regex="[0-9]{5}",
            stream=True,
            stream_options={"include_usage": True},
            **fields,
        )
    )
    for chunk in chunks:
        for choice in chunk["choices"]:
            streamed[choice["index"]] += choice["delta"].get("content") or ""
    assert streamed == texts
    assert chunks[-1]["usage"]["completion_tokens"] == usage["completion_tokens"]
    prompt = {"prompt": ["One", "Two"], "guided_choice": ["yes", "no"], "max_tokens": 9, "n": 2}
    choices = client.send("POST", COMPLETIONS, json=prompt).json()["choices"]
    assert [choice["index"] for choice in choices] == [0, 1, 2, 3]
    assert {choice["text"] for choice in choices} <= {"yes", "no"}
    form = {"type": "json_schema", "json_schema": {"name": "a", "schema": SCHEMA}}
    small = {**SCHEMA, "additionalProperties": False}
    form["json_schema"]["schema"] = small
    whole = client.chat("JSON.", response_format=form, max_tokens=200, temperature=0)
    choice = whole.json()["choices"][0]
    if choice["finish_reason"] == "stop":
        assert isinstance(json.loads(choice["message"]["content"])["a"], int)
    else:
        assert choice["message"]["content"].startswith("{")


def test_a_wrong_form_is_a_mistake_of_the_request(client: Client) -> None:
    response = client.chat("x", guided_regex="(a")
    assert response.status_code == 400
    assert "no valid grammar" in response.text
    response = client.chat("x", stream=True, best_of=2)
    assert response.status_code == 400 and "best_of" in response.text
