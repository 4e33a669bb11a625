# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Finds the tool calls in what a model writes, piece by piece.

What is no complete call of an offered tool stays text, so nothing the model wrote is lost. A call
is told when it is complete.
"""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

SyntaxName: TypeAlias = Literal["hermes", "json"]


@dataclass(frozen=True)
class ToolCall:
    """A call of a tool; ``arguments`` is JSON text."""

    name: str
    arguments: str


Found: TypeAlias = "str | ToolCall"


@dataclass(frozen=True)
class ToolSyntax:
    """How a model writes its calls in answer to one request.

    Attributes:
        name: ``"hermes"``: ``<tool_call>{"name": ..., "arguments": {...}}</tool_call>``, as Qwen
            and Hermes models do. ``"json"``: an answer that is such an object, or a list of
            them, as Llama, Phi and Mistral models give, whatever special token is before it.
        tools: Names of the tools.
        single: Whether at most one call is wanted; what follows it is dropped.
        opening: Beginning of the answer that the prompt holds already.
    """

    name: SyntaxName
    tools: frozenset[str]
    single: bool = False
    opening: str = ""

    def reader(self) -> CallReader:
        """A reader for one answer."""
        return _READERS[self.name](self)

    def read(self, text: str) -> tuple[str, list[ToolCall]]:
        """The text and the calls of a whole answer."""
        reader = self.reader()
        found = [*reader.feed(text), *reader.finish()]
        calls = [one for one in found if isinstance(one, ToolCall)]
        return "".join(one for one in found if isinstance(one, str)), calls


def opening_of(name: SyntaxName, tool: str | None, mark: str = "") -> str:
    """How an answer begins that shall be a call.

    Args:
        name: The syntax.
        tool: The tool to call; None leaves it to the model which one.
        mark: Special token of the model before its calls.
    """
    if name == "hermes":
        before, arguments = '<tool_call>\n{"name": "', "arguments"
    else:
        before = mark + ('[{"name": "' if mark else '{"name": "')
        arguments = "arguments" if mark else "parameters"
    return before if tool is None else f'{before}{tool}", "{arguments}": '


def syntax_of(template: str) -> SyntaxName:
    """The syntax that a model with this chat template is likely to write."""
    return "hermes" if _HermesReader.MARK in template else "json"


class CallReader(ABC):
    """Reads one answer as it comes.

    Attributes:
        calls: Number of calls so far.
    """

    def __init__(self, syntax: ToolSyntax) -> None:
        self._syntax = syntax
        self._rest = syntax.opening
        self.calls = 0

    def feed(self, text: str) -> list[Found]:
        """What is certain after a further piece of the answer."""
        self._rest += text
        return self._taken(self._advance())

    def finish(self) -> list[Found]:
        """What is left at the end of the answer."""
        return self._taken(self._end())

    @abstractmethod
    def _advance(self) -> list[Found]:
        """Takes from the front of ``_rest`` what is certain."""

    @abstractmethod
    def _end(self) -> list[Found]:
        """Takes all of ``_rest``."""

    def _taken(self, found: list[Found]) -> list[Found]:
        result: list[Found] = []
        for one in found:
            if self._syntax.single and self.calls:
                break
            self.calls += isinstance(one, ToolCall)
            if one != "":
                result.append(one)
        return result

    def _call(self, value: Any) -> ToolCall | None:
        """The call that a JSON value is, if it is one of an offered tool."""
        if not isinstance(value, dict):
            return None
        name, arguments = value.get("name"), value.get("arguments", value.get("parameters", {}))
        if isinstance(arguments, str):
            try:
                arguments = json.loads(arguments)
            except ValueError:
                return None
        if not isinstance(name, str) or not isinstance(arguments, dict):
            return None
        if name not in self._syntax.tools:
            return None
        return ToolCall(name, json.dumps(arguments, ensure_ascii=False))


class _HermesReader(CallReader):
    MARK, END = "<tool_call>", "</tool_call>"

    def _advance(self) -> list[Found]:
        found: list[Found] = []
        while True:
            start = self._rest.find(self.MARK)
            if start < 0:
                # White space waits too: before a call it is none of the text's.
                kept = len(self._rest) - _held_back(self._rest, self.MARK)
                kept = len(self._rest[:kept].rstrip())
                found.append(self._rest[:kept])
                self._rest = self._rest[kept:]
                return found
            end = self._end_of_call(start + len(self.MARK))
            if end is None:
                return found
            found += self._around(start, end)
            self._rest = self._rest[end:]

    def _end(self) -> list[Found]:
        found = self._advance()
        start = self._rest.find(self.MARK)
        if start >= 0:
            found += self._around(start, len(self._rest))
        elif self._rest.strip() or not (self.calls or any(isinstance(f, ToolCall) for f in found)):
            # White space after calls is no answer.
            found.append(self._rest)
        self._rest = ""
        return found

    def _end_of_call(self, body: int) -> int | None:
        """Where the call ends whose body begins there; None if not yet."""
        at = self._rest.find(self.END, body)
        while at >= 0:
            try:
                json.loads(self._rest[body:at])
            except json.JSONDecodeError as error:
                # The mark may stand inside a string; then the next one counts.
                if not error.msg.startswith("Unterminated string"):
                    break
                at = self._rest.find(self.END, at + 1)
            except RecursionError:
                break
            else:
                break
        return None if at < 0 else at + len(self.END)

    def _around(self, start: int, end: int) -> list[Found]:
        """The text before a call, and the call; all as text if it is none."""
        body = self._rest[start + len(self.MARK) : end].removesuffix(self.END)
        try:
            call = self._call(json.loads(body))
        except (ValueError, RecursionError):
            call = None
        return [self._rest[:end]] if call is None else [self._rest[:start].rstrip(), call]


class _JsonReader(CallReader):
    _MARKS = ("<|tool_call|>", "<|python_tag|>", "[TOOL_CALLS]", "functools", "{", "[")
    _LEADING = re.compile(r"\s*(<\|tool_call\|>|<\|python_tag\|>|\[TOOL_CALLS\]|functools)?\s*")
    _BETWEEN = re.compile(r"[\s;,]*")
    _TRAILING = re.compile(r"\s*(<\|/tool_call\|>)?\s*\Z")

    def __init__(self, syntax: ToolSyntax) -> None:
        super().__init__(syntax)
        self._is_text = False

    def _advance(self) -> list[Found]:
        begun = self._rest.lstrip()
        if not self._is_text and any(
            begun.startswith(mark) or mark.startswith(begun) for mark in self._MARKS
        ):
            return []
        self._is_text = True
        text, self._rest = self._rest, ""
        return [text]

    def _end(self) -> list[Found]:
        text, self._rest = self._rest, ""
        found: list[Found] = []
        if not self._is_text:
            found += self._all_calls(text)
        return found or [text]

    def _all_calls(self, text: str) -> list[ToolCall]:
        """The calls that a text consists of; none if there is anything else in it."""
        decoder, calls = json.JSONDecoder(), []
        leading = self._LEADING.match(text)
        at = leading.end() if leading else 0
        while not self._TRAILING.match(text, at):
            try:
                value, at = decoder.raw_decode(text, at)
            except (ValueError, RecursionError):
                return []
            for one in value if isinstance(value, list) else [value]:
                call = self._call(one)
                if call is None:
                    return []
                calls.append(call)
            between = self._BETWEEN.match(text, at)
            at = between.end() if between else at
        return calls


_READERS: dict[SyntaxName, type[CallReader]] = {"hermes": _HermesReader, "json": _JsonReader}


def _held_back(text: str, mark: str) -> int:
    """Length of the longest tail that begins a mark."""
    longest = min(len(mark) - 1, len(text))
    return next((n for n in range(longest, 0, -1) if text.endswith(mark[:n])), 0)
