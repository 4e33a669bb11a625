# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""What the grammars of calls let pass, letter by letter, is what the readers read as such calls."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest
from llguidance import LLMatcher, LLTokenizer

from tensorrt_llm.errors import RequestError
from tensorrt_llm.serve.tool_calls import ToolSyntax, opening_of
from tensorrt_llm.serve.tool_grammar import CallableTool, CallGrammar

SCHEMA = {
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
    "additionalProperties": False,
}
TOOLS = [CallableTool.of("look_up", SCHEMA, "x"), CallableTool.of("add.x-1", None, "y")]
NAMES = frozenset(tool.name for tool in TOOLS)
PLAIN = SimpleNamespace(added_tokens_decoder={})
BYTES = LLTokenizer("byte")
OSLO = '{"name": "look_up", "arguments": {"city": "</tool_call>"}}'
ADD = '{"name": "add.x-1", "arguments": {"a": [1]}}'
WRONG = '{"name": "look_up", "arguments": {"city": 1}}'


def passes(grammar: str, text: str) -> bool:
    matcher = LLMatcher(BYTES, grammar, log_level=0)
    assert not matcher.is_error(), matcher.get_error()
    tokens = BYTES.tokenize_str(text)
    return matcher.try_consume_tokens(tokens) == len(tokens) and matcher.is_accepting()


def tagged(*bodies: str) -> str:
    return "".join(f"<tool_call>\n{body}\n</tool_call>\n" for body in bodies)


@pytest.mark.parametrize(
    ("name", "text", "calls"),
    [
        ("hermes", "", 0),
        ("hermes", "Just <tool_ text {", 0),
        ("hermes", f"I look. {tagged(OSLO)}", 1),
        ("hermes", f"{tagged(OSLO, ADD)} and more", 2),
        ("hermes", tagged(WRONG), None),
        ("hermes", "a <tool_call> b", None),
        ("json", "Just text {", 0),
        ("json", OSLO, 1),
        ("json", f" [{OSLO}, {ADD}]", 2),
        ("json", ADD.replace("arguments", "parameters"), 1),
        ("json", WRONG, None),
        ("json", "{}", None),
    ],
)
def test_free_answers(name, text: str, calls: int | None) -> None:
    grammar = CallGrammar(name, PLAIN)
    assert passes(grammar.free(TOOLS, more=True), text) == (calls is not None)
    if calls is not None:
        assert len(ToolSyntax(name, NAMES).read(text)[1]) == calls
        one = passes(grammar.free(TOOLS, more=False), text.removesuffix(" and more"))
        assert one == (calls < 2), "no second call where one is wanted"


@pytest.mark.parametrize("name", ["hermes", "json"])
@pytest.mark.parametrize("mark", ["", "<|tool_call|>"])
@pytest.mark.parametrize("tool", [None, "look_up"])
def test_answers_that_the_prompt_has_begun(name, mark: str, tool: str | None) -> None:
    opening = opening_of(name, tool, mark)
    in_list = bool(mark) and name == "json"
    end = "\n</tool_call>" if name == "hermes" else "]" if in_list else ""
    key = "parameters" if name == "json" and not mark else "arguments"
    tools = TOOLS if tool is None else TOOLS[:1]
    grammar = CallGrammar(name, PLAIN).begun(
        tools, named=tool is not None, in_list=in_list, more=False
    )
    begin = f'{opening}look_up", "{key}": ' if tool is None else opening
    for arguments, good in (({"city": "Oslo"}, True), ({"city": 1}, False), ({}, False)):
        answer = begin.removeprefix(opening) + json.dumps(arguments) + "}" + end
        assert passes(grammar, answer) == good, answer
        read = ToolSyntax(name, NAMES, opening=opening).read(answer)[1]
        assert [json.loads(call.arguments) for call in read] == [arguments]


def test_marks_and_other_tokens_are_told_by_their_ids() -> None:
    words = {7: ("<tool_call>", False), 9: ("<think>", False), 11: ("<|end|>", True)}

    class Added(str):
        special = False

    added = {}
    for number, (text, special) in words.items():
        added[number] = Added(text)
        added[number].special = special
    grammar = CallGrammar("hermes", SimpleNamespace(added_tokens_decoder=added))
    text = grammar.free(TOOLS, more=True)
    assert "<[7]>" in text and "other: <[9]>" in text and "11" not in text


@pytest.mark.parametrize("schema", [{"type": "array"}, {"properties": 3}, {"type": 4}])
def test_schemas_that_cannot_be_followed_are_named(schema: dict) -> None:
    with pytest.raises(RequestError, match=r"^tools\[1\]\.function\.parameters: "):
        CallableTool.of("add", schema, "tools[1].function.parameters")
