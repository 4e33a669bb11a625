# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Calls in what a model writes: whole, piece by piece, and what is none of them."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensorrt_llm.serve.tool_calls import ToolCall, ToolSyntax, opening_of, syntax_of

NAMES = frozenset({"look_up", "add"})
HERMES, JSON = ToolSyntax("hermes", NAMES), ToolSyntax("json", NAMES)
OSLO = '{"name": "look_up", "arguments": {"city": "Oslo \\"ø\\""}}'
ADD = '{"name": "add", "parameters": {"a": 1}}'
CALLS = {OSLO: ToolCall("look_up", '{"city": "Oslo \\"ø\\""}'), ADD: ToolCall("add", '{"a": 1}')}
OTHER = '{"name": "delete", "arguments": {}}'


def hermes(*bodies: str) -> str:
    return "".join(f"<tool_call>\n{body}\n</tool_call>" for body in bodies)


@pytest.mark.parametrize(
    ("syntax", "written", "text", "bodies"),
    [
        (HERMES, "Just text.\n", "Just text.\n", []),
        (HERMES, hermes(OSLO), "", [OSLO]),
        (HERMES, "I look.\n" + hermes(OSLO) + "\n" + hermes(ADD), "I look.", [OSLO, ADD]),
        (HERMES, hermes(OSLO) + " So.", " So.", [OSLO]),
        (HERMES, hermes(OSLO).removesuffix("</tool_call>"), "", [OSLO]),
        (HERMES, hermes(OTHER), hermes(OTHER), []),
        (HERMES, hermes("{nonsense") + hermes(ADD), hermes("{nonsense"), [ADD]),
        (HERMES, "<tool_call>\n" + OSLO[:-2], "<tool_call>\n" + OSLO[:-2], []),
        (HERMES, "a <tool_ cal", "a <tool_ cal", []),
        (HERMES, OSLO, OSLO, []),
        (JSON, OSLO, "", [OSLO]),
        (JSON, f"  [{OSLO}, {ADD}]\n", "", [OSLO, ADD]),
        (JSON, f"{OSLO}; {ADD}", "", [OSLO, ADD]),
        (JSON, f"<|tool_call|>[{OSLO}]<|/tool_call|>", "", [OSLO]),
        (JSON, f"<|python_tag|>{ADD}", "", [ADD]),
        (JSON, f"functools[{ADD}]", "", [ADD]),
        (JSON, f"[TOOL_CALLS] [{ADD}]", "", [ADD]),
        (JSON, f"Here: {OSLO}", f"Here: {OSLO}", []),
        (JSON, f"{OSLO} and more", f"{OSLO} and more", []),
        (JSON, OTHER, OTHER, []),
        (JSON, f"[{OSLO}, {OTHER}]", f"[{OSLO}, {OTHER}]", []),
        (JSON, "[1, 2]", "[1, 2]", []),
        (JSON, '{"name": ["add"]}', '{"name": ["add"]}', []),
        (JSON, "func", "func", []),
        (JSON, "[" * 5000, "[" * 5000, []),
        (JSON, "", "", []),
    ],
)
def test_an_answer(syntax: ToolSyntax, written: str, text: str, bodies: list[str]) -> None:
    assert syntax.read(written) == (text, [CALLS[body] for body in bodies])


def test_arguments_may_be_json_in_text_or_absent() -> None:
    for body in ({"name": "add", "arguments": '{"a": 1}'}, {"name": "add", "arguments": {"a": 1}}):
        assert JSON.read(json.dumps(body)) == ("", [ToolCall("add", '{"a": 1}')])
    assert JSON.read('{"name": "add"}')[1] == [ToolCall("add", "{}")]
    assert JSON.read('{"name": "add", "arguments": "1"}')[1] == []


def test_a_mark_inside_an_argument_ends_no_call() -> None:
    body = {"name": "add", "arguments": {"a": "<tool_call> </tool_call> {"}}
    text, calls = HERMES.read(hermes(json.dumps(body), ADD))
    assert text == "" and [json.loads(call.arguments) for call in calls] == [
        body["arguments"],
        {"a": 1},
    ]


def test_one_call_only_where_one_is_wanted() -> None:
    for name, written in (("hermes", hermes(OSLO, ADD) + "x"), ("json", f"[{OSLO}, {ADD}]")):
        assert ToolSyntax(name, NAMES, single=True).read(written) == ("", [CALLS[OSLO]])


@pytest.mark.parametrize("mark", ["", "<|tool_call|>"])
@pytest.mark.parametrize("name", ["hermes", "json"])
def test_the_prompt_may_hold_the_beginning_of_the_call(name: str, mark: str) -> None:
    endings = {"hermes": "}\n</tool_call>", "json": "}]" if mark else "}"}
    for tool, rest in (("add", '{"a": 1}'), (None, 'add", "arguments": {"a": 1}')):
        syntax = ToolSyntax(name, NAMES, opening=opening_of(name, tool, mark))
        assert syntax.read(rest + endings[name]) == ("", [CALLS[ADD]])
    assert syntax.read("nonsense") == (syntax.opening + "nonsense", [])


def test_the_template_tells_the_syntax() -> None:
    assert syntax_of("... <tool_call>\n{{ call | tojson }}") == "hermes"
    assert syntax_of("{{ tools }}") == "json"


_PIECES = st.sampled_from(
    [
        *("text ", "\n", " ", "<tool", "<tool_call>", "</tool_call>", "{", "}", "[", "]", '"', ","),
        *(OSLO, ADD, OTHER, hermes(OSLO), hermes(ADD), hermes("x"), "<|tool_call|>", "functools"),
    ]
)


@given(st.lists(_PIECES, max_size=8), st.sampled_from([HERMES, JSON]), st.data())
def test_pieces_say_what_the_whole_says_and_lose_nothing(pieces, syntax, data) -> None:
    written = "".join(pieces)
    text, calls = syntax.read(written)
    reader, streamed, at = syntax.reader(), [], 0
    while at < len(written):
        step = data.draw(st.integers(1, 12))
        streamed += reader.feed(written[at : at + step])
        at += step
    streamed += reader.finish()
    assert "".join(one for one in streamed if isinstance(one, str)) == text
    assert [one for one in streamed if not isinstance(one, str)] == calls
    assert reader.calls == len(calls)
    if not calls:
        assert text == written
