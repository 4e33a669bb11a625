# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""The input of ``/v1/responses`` as messages of a chat, one an item, in the order sent."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from tensorrt_llm.errors import RequestError
from tensorrt_llm.serve.chat_utils import ParsedMessage

# Fields that items carry where they are answers sent back.
_OF_ANSWERS = frozenset({"id", "status"})
_TEXTS = ("input_text", "output_text", "text")


def as_messages(given: str | Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The messages that a chat would have. What is wrong inside them, the chat says.

    Raises:
        RequestError: If an item is of no known kind. Names it.
    """
    if isinstance(given, str):
        return [{"role": "user", "content": given}]
    messages = []
    for index, item in enumerate(given):
        kind = item.get("type", "message")
        read = _ITEMS.get(kind) if isinstance(kind, str) else None
        if read is None:
            known = ", ".join(_ITEMS)
            raise RequestError(
                f"must be one of {known}, got {kind!r:.80}", part=f"input[{index}].type"
            )
        rest = {name: value for name, value in item.items() if name not in (*_OF_ANSWERS, "type")}
        messages.append(read(rest))
    return messages


def joined(messages: Sequence[ParsedMessage]) -> list[ParsedMessage]:
    """Messages in which what the model said in one turn, text and calls, is one message."""
    result: list[ParsedMessage] = []
    for message in messages:
        last = result[-1] if result else None
        calls = message.more.get("tool_calls")
        if last is not None and last.role == message.role == "assistant" and calls:
            result[-1] = replace(
                last, more={"tool_calls": [*last.more.get("tool_calls", ()), *calls]}
            )
        else:
            result.append(message)
    return result


def _message(item: dict[str, Any]) -> dict[str, Any]:
    content = item.get("content")
    if isinstance(content, list):
        item["content"] = [_part(part) for part in content]
    return item


def _part(part: Any) -> Any:
    if not isinstance(part, dict):
        return part
    kind = part.get("type")
    if kind in _TEXTS:
        known = {"annotations", "logprobs"}
        return {name: value for name, value in part.items() if name not in known} | {"type": "text"}
    if kind == "refusal":
        return {"type": "text", "text": part.get("refusal")}
    return part


def _call(item: dict[str, Any]) -> dict[str, Any]:
    call = {"id": item.pop("call_id", None), "type": "function"}
    function = {"name": item.pop("name", None), "arguments": item.pop("arguments", None)}
    # What is left over is unknown, and refused by its name.
    return {"role": "assistant", "tool_calls": [call | {"function": function}], **item}


def _result(item: dict[str, Any]) -> dict[str, Any]:
    content = item.pop("output", None)
    if isinstance(content, list):
        content = [_part(part) for part in content]
    return {"role": "tool", "tool_call_id": item.pop("call_id", None), "content": content, **item}


_ITEMS: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "message": _message,
    "function_call": _call,
    "function_call_output": _result,
}
