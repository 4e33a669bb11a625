# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Items of a response's input as messages of a chat."""

from __future__ import annotations

import pytest

from tensorrt_llm.errors import RequestError
from tensorrt_llm.serve.chat_utils import ParsedMessage, parse_messages
from tensorrt_llm.serve.response_input import as_messages, joined

CALL = {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "add", "arguments": "{}"}


def test_items_are_messages_in_order() -> None:
    assert as_messages("Hi.") == [{"role": "user", "content": "Hi."}]
    image = {"type": "input_image", "image_url": "data:,x", "detail": "low"}
    answer = {"type": "output_text", "text": "Yes.", "annotations": [], "logprobs": []}
    messages = as_messages(
        [
            {"role": "user", "content": [{"type": "input_text", "text": "What?"}, image]},
            {"type": "message", "role": "assistant", "content": [answer], "id": "m", "status": "x"},
            CALL,
            {"type": "function_call_output", "call_id": "c1", "output": "3"},
        ]
    )
    assert messages == [
        {"role": "user", "content": [{"type": "text", "text": "What?"}, image]},
        {"role": "assistant", "content": [{"type": "text", "text": "Yes."}]},
        {
            "role": "assistant",
            "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "add", "arguments": "{}"}}
            ],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "3"},
    ]
    assert len(parse_messages(messages, ("image",), 1)) == 4


def test_one_turn_of_the_model_is_one_message() -> None:
    def calls(*names: str) -> dict:
        return {"tool_calls": [{"function": {"name": name, "arguments": {}}} for name in names]}

    said = ParsedMessage("assistant", "I look.")
    one, two = (ParsedMessage("assistant", "", calls(name)) for name in "ab")
    user, tool = ParsedMessage("user", "x"), ParsedMessage("tool", "3", {"tool_call_id": "c"})
    both = ParsedMessage("assistant", "I look.", calls("a", "b"))
    assert joined([user, said, one, two, tool]) == [user, both, tool]
    apart = [user, one, tool, two, user, said, said]
    assert joined(apart) == apart


@pytest.mark.parametrize("kind", ["reasoning", "item_reference", 5, None])
def test_other_items_are_refused(kind: object) -> None:
    with pytest.raises(RequestError, match="must be one of message") as raised:
        as_messages([{"role": "user", "content": "x"}, {"type": kind}])
    assert raised.value.part == "input[1].type"


def test_what_an_item_should_not_have_is_left_for_the_chat_to_refuse() -> None:
    with pytest.raises(RequestError, match="unknown field") as raised:
        parse_messages(as_messages([CALL | {"hue": 1}]), (), 0)
    assert raised.value.part == "messages[0].hue"
