# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Grammars that hold a model's calls to the schemas of the tools.

A grammar speaks of what is generated: where the prompt holds the beginning of a call already, it
goes on from there. What it lets pass, the readers in ``tool_calls`` read as calls.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tensorrt_llm.errors import RequestError
from tensorrt_llm.serve.tool_calls import SyntaxName

_ANY_OBJECT = {"type": "object"}
_GAP = r"[ \n]{0,4}"
_SPACE = r"/[ \n]{1,4}/"
_MARKS = ("<|tool_call|>", "<|python_tag|>", "<|/tool_call|>", "<tool_call>", "</tool_call>")
# llguidance takes added tokens of this form for special ones, whatever their tokenizer says.
_AS_TOKEN = re.compile(r"<.+>", re.DOTALL)
# What the reader of that syntax takes for the beginning of calls.
_BEGINS_AS_CALLS = r"\s*(<\|tool_call\|>|<\|python_tag\|>|\[TOOL_CALLS\]|functools|\{|\[)"


@dataclass(frozen=True)
class CallableTool:
    """A tool, as far as the form of its calls goes.

    Attributes:
        name: Its name.
        schema: JSON schema of its arguments.
    """

    name: str
    schema: dict[str, Any]

    @classmethod
    def of(cls, name: str, parameters: dict[str, Any] | None, part: str) -> CallableTool:
        """A tool whose arguments are an object, whatever else its schema says.

        Raises:
            RequestError: If answers cannot be held to the schema. Names ``part``.
        """
        from llguidance import LLMatcher

        schema = {**_ANY_OBJECT, **(parameters or {})}
        if schema["type"] != "object":
            raise RequestError("arguments are an object", part=part)
        try:
            problem = LLMatcher.validate_grammar(LLMatcher.grammar_from_json_schema(schema))
        except (ValueError, TypeError) as error:
            problem = str(error)
        if problem:
            raise RequestError(f"answers cannot be held to this schema: {problem}", part=part)
        return cls(name, schema)


class CallGrammar:
    """Writes the grammars for one model.

    Args:
        syntax: How the model writes calls.
        tokenizer: Its tokenizer.
    """

    def __init__(self, syntax: SyntaxName, tokenizer: Any) -> None:
        self._syntax = syntax
        # Text of a grammar never stands for these: they are told by their ids.
        self._tokens = {
            str(token): number
            for number, token in tokenizer.added_tokens_decoder.items()
            if str(token) in _MARKS or (not token.special and _AS_TOKEN.fullmatch(str(token)))
        }

    def begun(
        self, tools: Sequence[CallableTool], *, named: bool, in_list: bool, more: bool
    ) -> str:
        """An answer that is calls, and whose first words the prompt holds.

        Args:
            tools: Of which one is called.
            named: Whether the name of the one is in the prompt as well.
            in_list: Whether the call stands in a list that the prompt has begun.
            more: Whether further calls may follow.
        """
        first = "args_0" if named else _any_of(tools, "rest")
        if self._syntax == "hermes":
            follows = f"({_SPACE}? {self._mark('<tool_call>')} call close)*" if more else ""
            start = f"first close {follows}"
        else:
            follows = '("," call)*' if more and in_list else ""
            start = f'first "}}" {follows} {"list_end" if in_list else ""}'
        return self._grammar(tools, f"start: {start}", f"first: {first}")

    def free(self, tools: Sequence[CallableTool], *, more: bool) -> str:
        """An answer with or without calls.

        Args:
            tools: Of which any is called.
            more: Whether more than one call may be in it.
        """
        if self._syntax == "json":
            marks = " | ".join(map(self._mark, _MARKS[:2]))
            calls = '("," call)*' if more else ""
            return self._grammar(
                tools,
                f"start: FREE? | ({marks})? (call | BEGIN call {calls} list_end)",
                f"BEGIN: /{_GAP}\\[/",
                f"FREE: /(?s:.*)/ & ~/{_BEGINS_AS_CALLS}(?s:.*)/",
            )
        token = self._tokens.get("<tool_call>")
        others = [str(one) for text, one in self._tokens.items() if text not in _MARKS]
        return self._grammar(
            tools,
            "start: (head call close)* text" if more else "start: text | head call close",
            # A mark that is text ends the text before it as soon as it is there.
            "head: lazy_head" if token is None else f"head: lazy_head | text <[{token}]>",
            f"lazy_head: {'(TEXT other)* ' if others else ''}marked",
            'marked[lazy]: TEXT "<tool_call>"',
            f"text: TEXT {'(other TEXT)*' if others else ''}",
            *([f"other: <[{','.join(others)}]>"] if others else []),
            "TEXT: /(?s:.*)/",
        )

    def _grammar(self, tools: Sequence[CallableTool], *lines: str) -> str:
        hermes = self._syntax == "hermes"
        key = '"arguments"' if hermes else '"(arguments|parameters)"'
        rules = ["%llguidance {}", *lines, f"call: {_any_of(tools, 'call')}"]
        rules.append(f"KEY: /,{_GAP}{key}{_GAP}:{_GAP}/")
        if hermes:
            # What closes a call: its brace and its mark.
            mark = self._mark("</tool_call>")
            rules += [f"close: BRACE {mark} {_SPACE}?", f"BRACE: /{_GAP}\\}}{_GAP}/"]
        else:
            end = self._tokens.get("<|/tool_call|>")
            rules.append(f"list_end: /{_GAP}\\]/" + ("" if end is None else f" <[{end}]>?"))
        for index, tool in enumerate(tools):
            begin = f'/{_GAP}\\{{{_GAP}"name"{_GAP}:{_GAP}"{re.escape(tool.name)}"/'
            end_brace = "" if hermes else ' "}"'
            rules += [
                f"call_{index}: {begin} KEY args_{index}{end_brace}",
                f'rest_{index}: "{tool.name}\\"" KEY args_{index}',
                f"args_{index}: %json {json.dumps(tool.schema)}",
            ]
        return "\n".join(rules)

    def _mark(self, text: str) -> str:
        token = self._tokens.get(text)
        return json.dumps(text) if token is None else f'("{text}" | <[{token}]>)'


def _any_of(tools: Sequence[CallableTool], kind: str) -> str:
    return " | ".join(f"{kind}_{index}" for index in range(len(tools)))
