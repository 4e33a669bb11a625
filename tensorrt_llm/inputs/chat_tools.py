# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Where a chat template takes the tools that the model may call.

Templates take them as a variable, or as text in the system message. What stands in a variable goes
into the prompt as the template's own words, so it must not spell a special token.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tensorrt_llm.errors import RequestError

_IN_MESSAGE = re.compile(r"""message(\[['"]tools['"]\]|\.tools\b)""")
_AS_VARIABLE = re.compile(r"\btools\b")

Messages = Sequence[Mapping[str, Any]]


def place_tools(
    template: str, messages: Messages, tools: Sequence[Mapping[str, Any]]
) -> tuple[Messages, dict[str, Any]]:
    """Puts tools where a template looks for them.

    Args:
        template: The chat template's text.
        messages: The conversation.
        tools: In the form of the OpenAI API.

    Returns:
        The conversation, and variables for the template.

    Raises:
        RequestError: If the template takes no tools.
    """
    if _IN_MESSAGE.search(template):
        text = json.dumps([tool["function"] for tool in tools], ensure_ascii=False)
        first: Mapping[str, Any] = {"role": "system", "content": ""}
        if messages and messages[0]["role"] == "system":
            first, *messages = messages
        return [{**first, "tools": text}, *messages], {}
    if _AS_VARIABLE.search(template):
        return messages, {"tools": list(tools)}
    raise RequestError("the chat template of this model takes no tools", part="tools")


def refuse_special_tokens(value: Any, special: Sequence[str], part: str) -> None:
    """Refuses a value in which a special token is spelt.

    Args:
        value: Of the kinds that JSON has.
        special: Special tokens and placeholders of media.
        part: Where the value stood in the request.

    Raises:
        RequestError: Names the token.
    """
    for text in _strings(value):
        for token in special:
            if token in text:
                raise RequestError(
                    f"{token!r} is a special token of this model, and cannot stand here", part=part
                )


def _strings(value: Any) -> Iterator[str]:
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, str):
            yield one
        elif isinstance(one, Mapping):
            waiting += [*one.keys(), *one.values()]
        elif isinstance(one, list | tuple):
            waiting += one
