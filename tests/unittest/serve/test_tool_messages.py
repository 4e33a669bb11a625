# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Earlier calls and their results, as clients send them back."""

from __future__ import annotations

import pytest

from tensorrt_llm.errors import RequestError
from tensorrt_llm.serve.chat_utils import parse_messages
from tensorrt_llm.serve.tool_messages import read_tool_fields

FUNCTION = {"name": "add", "arguments": '{"a": [1, "x"]}'}
CALL = {"id": "call_1", "type": "function", "function": FUNCTION}


def test_a_call_and_its_result_reach_the_template() -> None:
    call, result = parse_messages(
        [
            {"role": "assistant", "content": None, "tool_calls": [CALL]},
            {"role": "tool", "tool_call_id": "call_1", "content": [{"type": "text", "text": "3"}]},
        ],
        (),
        0,
    )
    assert (call.role, call.content) == ("assistant", "")
    function = {"name": "add", "arguments": {"a": [1, "x"]}}
    assert call.more == {"tool_calls": [{"type": "function", "id": "call_1", "function": function}]}
    assert (result.role, result.more) == ("tool", {"tool_call_id": "call_1"})


def test_nothing_is_made_of_nothing() -> None:
    assert read_tool_fields({"tool_calls": None, "name": "joe"}, "user", "m") == {}
    assert read_tool_fields({"tool_calls": []}, "assistant", "m") == {}
    bare = {"function": {"name": "add", "arguments": ""}}
    (call,) = read_tool_fields({"tool_calls": [bare]}, "assistant", "m")["tool_calls"]
    assert call == {"type": "function", "function": {"name": "add", "arguments": {}}}


@pytest.mark.parametrize(
    ("role", "message", "part"),
    [
        ("user", {"tool_calls": [CALL]}, "m.tool_calls"),
        ("user", {"tool_call_id": "x"}, "m.tool_call_id"),
        ("assistant", {"tool_calls": {}}, ""),
        ("assistant", {"tool_calls": "x"}, "m"),
        ("assistant", {"tool_calls": ["x"]}, "m.tool_calls[0]"),
        ("assistant", {"tool_calls": [CALL | {"type": "code"}]}, "m.tool_calls[0].type"),
        ("assistant", {"tool_calls": [CALL | {"hue": 1}]}, "m.tool_calls[0].hue"),
        ("assistant", {"tool_calls": [{"id": "x"}]}, "m.tool_calls[0].function"),
        (
            "assistant",
            {"tool_calls": [{"function": FUNCTION | {"arguments": "[1]"}}]},
            "m.tool_calls[0].function.arguments",
        ),
        (
            "assistant",
            {"tool_calls": [{"function": FUNCTION | {"arguments": "["}}]},
            "m.tool_calls[0].function.arguments",
        ),
        (
            "assistant",
            {"tool_calls": [{"function": FUNCTION | {"name": 5}}]},
            "m.tool_calls[0].function.name",
        ),
        ("tool", {"tool_call_id": 5}, "m.tool_call_id"),
        ("tool", {"tool_call_id": "\ud800"}, "m.tool_call_id"),
    ],
)
def test_mistakes_are_named(role: str, message: dict, part: str) -> None:
    if not part:
        assert read_tool_fields(message, role, "m") == {}
        return
    with pytest.raises(RequestError) as raised:
        read_tool_fields(message, role, "m")
    assert raised.value.part == part
