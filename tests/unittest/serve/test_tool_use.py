# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Tools over HTTP, on an engine whose model writes calls."""

from __future__ import annotations

import json
from typing import Any

import pytest
from support.asgi_client import CHAT, Client, cached, events
from support.scripted import SCRIPTS

LOOK_UP = {
    "type": "function",
    "function": {
        "name": "look_up",
        "description": "Finds a place.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
    },
}
ADD = {"type": "function", "function": {"name": "add"}}
TOOLS = [LOOK_UP, ADD]
CALLS = [("look_up", {"city": "Oslo"}), ("add", {})]


def ask(client: Client, **fields: Any) -> tuple[str | None, list[tuple[str, dict]], str]:
    """Text, calls and ending, the same streamed and whole."""
    fields = {"tools": TOOLS, "max_tokens": 32} | fields
    choice = client.chat("Where is it?", **fields).json()["choices"][0]
    message = choice["message"]
    calls = message.get("tool_calls", [])
    assert len({call["id"] for call in calls}) == len(calls)
    streamed = events(client.chat("Where is it?", stream=True, **fields))
    deltas = [event["choices"][0]["delta"] for event in streamed]
    text = "".join(delta.get("content") or "" for delta in deltas)
    parts = [call for delta in deltas for call in delta.get("tool_calls", [])]
    assert [part["index"] for part in parts] == list(range(len(calls)))
    assert [part["function"] for part in parts] == [call["function"] for call in calls]
    assert text == (message["content"] or "")
    assert streamed[-1]["choices"][0]["finish_reason"] == choice["finish_reason"]
    read = [(c["function"]["name"], json.loads(c["function"]["arguments"])) for c in calls]
    return message["content"], read, choice["finish_reason"]


def test_calls_are_told_beside_the_text(tools: Client) -> None:
    assert ask(tools) == ("I look.", CALLS, "tool_calls")
    assert ask(tools, tools=[LOOK_UP], parallel_tool_calls=False)[1] == CALLS[:1]
    text, calls, _ = ask(tools, tools=[ADD])
    assert calls == CALLS[1:] and "look_up" in str(text), "what is no offered tool stays text"


def test_without_tools_the_same_words_are_text(tools: Client) -> None:
    for fields in ({"tools": []}, {"tool_choice": "none"}, {"tools": None}):
        text, calls, reason = ask(tools, **fields)
        assert text == "".join(SCRIPTS["<|assistant|>"]) and not calls and reason == "stop"


def test_a_call_that_is_cut_off_stays_text(tools: Client) -> None:
    text, calls, reason = ask(tools, max_tokens=6)
    assert text == "".join(SCRIPTS["<|assistant|>"][:6]) and not calls and reason == "length"


def test_a_choice_begins_the_answer(tools: Client) -> None:
    named = {"type": "function", "function": {"name": "look_up"}}
    bergen = (None, [("look_up", {"city": "Bergen"})], "tool_calls")
    assert ask(tools, tool_choice=named) == bergen
    assert ask(tools, tool_choice="required") == (None, [("add", {})], "tool_calls")


COUNT = {
    "type": "object",
    "properties": {"city": {"enum": ["Rome", "Bergen"]}, "n": {"type": "integer"}},
    "required": ["city", "n"],
    "additionalProperties": False,
}


def test_arguments_follow_the_schema_whatever_the_model_would_write(tools: Client) -> None:
    def counting(**more: Any) -> list[dict]:
        return [ADD, {"function": {"name": "look_up", "parameters": COUNT, **more}}]

    def follows(arguments: dict) -> bool:
        known = set(arguments) == {"city", "n"} and arguments["city"] in ("Rome", "Bergen")
        return known and type(arguments["n"]) is int

    named = {"type": "function", "function": {"name": "look_up"}}
    # Its own words are {"city": "Oslo"} and {"city": "Bergen"}, without a number.
    asked = {"tool_choice": named}, {"tool_choice": "required", "parallel_tool_calls": False}
    for fields in asked:
        for heat in ({}, {"temperature": 5.0, "seed": 3}):
            given = {"tools": counting()[1:], "max_tokens": 200, **fields, **heat}
            _, calls, reason = ask(tools, **given)
            assert len(calls) == 1 and reason == "tool_calls"
            assert follows(calls[0][1]), calls
    _, calls, _ = ask(tools, tools=counting(strict=True), max_tokens=96)
    assert calls and follows(dict(calls)["look_up"])
    assert ask(tools, tools=counting())[1][0] == CALLS[0], "not asked to hold it"


def test_tools_are_in_the_prompt_and_shared_by_content(tools: Client) -> None:
    def count(**fields: Any) -> int:
        body = {"messages": [{"role": "user", "content": "Hi."}], **fields}
        response = tools.send("POST", "/v1/chat/completions/render", json=body)
        return len(response.json()["token_ids"])

    assert (
        count(tools=TOOLS) > count(tools=[ADD]) > count() == count(tools=TOOLS, tool_choice="none")
    )
    assert count(tools=[ADD], tool_choice="required") > count(tools=[ADD])
    first = tools.chat("Hi.", tools=TOOLS, cache_salt="tools")
    again = tools.chat("Hi.", tools=TOOLS, cache_salt="tools")
    other = tools.chat("Hi.", tools=[ADD, LOOK_UP], cache_salt="tools")
    full = first.json()["usage"]["prompt_tokens"] - 1
    assert (cached(first), cached(again)) == (0, full)
    assert cached(other) < 32 < full, "the tools stand in another order"


def test_a_conversation_goes_on_after_a_call(tools: Client) -> None:
    first = {"role": "user", "content": "Where?"}
    answer = tools.send("POST", CHAT, json={"messages": [first], "tools": TOOLS})
    message = answer.json()["choices"][0]["message"]
    result = {"role": "tool", "tool_call_id": message["tool_calls"][0]["id"], "content": "<|end|>"}
    body = {"messages": [first, message, result], "tools": TOOLS}
    shown = tools.send("POST", "/v1/chat/completions/render", json=body).json()["token_ids"]
    text = tools.llm.tokenizer.decode(shown)
    for _, arguments in CALLS:
        assert json.dumps(arguments) in text
    end = tools.llm.tokenizer.convert_tokens_to_ids("<|end|>")
    assert shown.count(end) == 3, "what a tool says is text"
    assert tools.send("POST", CHAT, json=body).status_code == 200


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"tools": [{"type": "code", "function": {"name": "a"}}]}, "tools"),
        ({"tools": [{"function": {"name": "with space"}}]}, "tools"),
        ({"tools": [{"function": {"name": "a", "hue": 1}}]}, "tools"),
        (
            {"tools": [{"function": {"name": "a", "strict": True, "parameters": {"type": 3}}}]},
            "tools[0].function.parameters",
        ),
        (
            {"tools": TOOLS, "tool_choice": "required", "guided_regex": "a"},
            "response_format",
        ),
        ({"tools": [ADD, ADD]}, "tools[1].function.name"),
        ({"tools": [{"function": {"name": "a", "description": "<|end|>"}}]}, "tools"),
        ({"tool_choice": "required"}, "tool_choice"),
        ({"tool_choice": "sometimes", "tools": TOOLS}, "tool_choice"),
        (
            {"tool_choice": {"type": "function", "function": {"name": "b"}}, "tools": TOOLS},
            "tool_choice.function.name",
        ),
    ],
)
def test_mistakes_are_named(tools: Client, fields: dict, param: str) -> None:
    response = tools.chat("Hi.", **fields)
    assert response.status_code == 400, response.text
    assert str(response.json()["param"]).startswith(param), response.text


def test_a_model_that_takes_no_tools_says_so(client: Client) -> None:
    response = client.chat("Hi.", tools=TOOLS)
    assert (response.status_code, response.json()["param"]) == (400, "tools")
    assert "takes no tools" in response.json()["message"]
    assert client.chat("Hi.", tools=TOOLS, tool_choice="none").status_code == 200
