# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Reads what messages of a chat say of tools: earlier calls, and their results."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from tensorrt_llm.errors import RequestError

TOOL_FIELDS = ("tool_calls", "tool_call_id")


def read_tool_fields(message: Mapping[str, Any], role: str, where: str) -> dict[str, Any]:
    """The fields that a chat template takes, or none.

    Arguments of calls come as JSON text and are handed on as what they say: templates write them
    as JSON themselves.

    Raises:
        RequestError: If a field stands in the wrong kind of message, or is none of its kind.
    """
    owners = {"tool_calls": "assistant", "tool_call_id": "tool"}
    for name, owner in owners.items():
        if message.get(name) and role != owner:
            raise RequestError(f"only in messages of role {owner}", part=f"{where}.{name}")
    more: dict[str, Any] = {}
    if role == "tool":
        for name in ("tool_call_id", "name"):
            value = message.get(name)
            if value is not None:
                more[name] = _text(value, f"{where}.{name}")
    calls = message.get("tool_calls")
    if calls:
        if not isinstance(calls, list):
            raise RequestError(f"must be a list of calls, got {calls!r:.80}", part=where)
        more["tool_calls"] = [
            _call(call, f"{where}.tool_calls[{index}]") for index, call in enumerate(calls)
        ]
    return more


def _call(call: Any, where: str) -> dict[str, Any]:
    function = _object(call, ("id", "type", "function", "index"), where).get("function")
    if call.get("type", "function") != "function":
        raise RequestError(f"must be function, got {call['type']!r:.80}", part=f"{where}.type")
    function = _object(function, ("name", "arguments"), f"{where}.function")
    name = _text(function.get("name"), f"{where}.function.name")
    arguments = function.get("arguments") or {}
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments)
        except (ValueError, RecursionError):
            arguments = None
    if not isinstance(arguments, dict):
        raise RequestError("must be a JSON object, as text", part=f"{where}.function.arguments")
    read: dict[str, Any] = {
        "type": "function",
        "function": {"name": name, "arguments": arguments},
    }
    if call.get("id") is not None:
        read["id"] = _text(call["id"], f"{where}.id")
    return read


def _object(value: Any, known: tuple[str, ...], where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise RequestError(f"must be an object, got {value!r:.80}", part=where)
    for name in value:
        if name not in known:
            raise RequestError("unknown field", part=f"{where}.{name}")
    return value


def _text(value: Any, where: str) -> str:
    if not isinstance(value, str):
        raise RequestError(f"must be text, got {value!r:.80}", part=where)
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise RequestError(f"no valid Unicode text: {error.reason}", part=where) from error
    return value
