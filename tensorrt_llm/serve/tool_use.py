# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""What a chat's tools come to with the model at hand: what it is told, and how it answers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tensorrt_llm.errors import RequestError
from tensorrt_llm.sampling_params import GuidedDecodingParams, SamplingParams
from tensorrt_llm.serve.openai_protocol import ChatCompletionRequest
from tensorrt_llm.serve.tool_calls import SyntaxName, ToolSyntax, opening_of, syntax_of
from tensorrt_llm.serve.tool_grammar import CallableTool, CallGrammar
from tensorrt_llm.serve.tool_protocol import FunctionDefinition, NamedTool

# Before the calls of models that have it.
_CALL_MARK = "<|tool_call|>"


class ToolUse:
    """Knows how the served model calls tools.

    Args:
        template: The text of its chat template.
        tokenizer: Its tokenizer.
        syntax: How it writes calls; None to tell by the template.
    """

    def __init__(self, template: str, tokenizer: Any, syntax: SyntaxName | None) -> None:
        self._syntax = syntax or syntax_of(template)
        self._mark = _CALL_MARK if _CALL_MARK in tokenizer.get_added_vocab() else ""
        self._grammar = CallGrammar(self._syntax, tokenizer)

    def told(self, body: ChatCompletionRequest) -> list[dict[str, Any]]:
        """The tools that the model is told of, as templates take them."""
        if body.tool_choice == "none":
            return []
        hidden = {"function": {"strict"}}
        return [tool.model_dump(exclude_unset=True, exclude=hidden) for tool in body.tools]

    def opening(self, body: ChatCompletionRequest) -> str:
        """How the answer begins that the request leaves no choice about; empty otherwise."""
        choice = body.tool_choice
        if isinstance(choice, NamedTool):
            return opening_of(self._syntax, choice.function.name, self._mark)
        return opening_of(self._syntax, None, self._mark) if choice == "required" else ""

    def sampling_params(self, body: ChatCompletionRequest) -> SamplingParams:
        """A request's sampling options, with what holds its calls to their schemas.

        Raises:
            RequestError: If an option is out of its range, a schema cannot be followed, or the
                request also says what the whole answer has to be. Names the part.
        """
        sampling = body.sampling_params()
        choice = body.tool_choice
        asked = choice == "required" or isinstance(choice, NamedTool)
        strict = any(tool.function.strict for tool in body.tools)
        if choice == "none" or not (asked or strict):
            return sampling
        if sampling.guided_decoding is not None:
            what = "tool_choice asks for a call" if asked else "a tool is strict"
            raise RequestError(
                f"{what}, so the answer cannot have this form too", part="response_format"
            )
        grammar = self._grammar_of(body, choice) if asked else self._free_grammar(body)
        return replace(sampling, guided_decoding=GuidedDecodingParams(grammar=grammar))

    def _grammar_of(self, body: ChatCompletionRequest, choice: Any) -> str:
        """An answer that is a call, of one tool by its name or of any."""
        name = choice.function.name if isinstance(choice, NamedTool) else None
        tools = [
            _callable(tool.function, index)
            for index, tool in enumerate(body.tools)
            if name in (None, tool.function.name)
        ]
        return self._grammar.begun(
            tools,
            named=name is not None,
            in_list=bool(self._mark) and self._syntax == "json",
            more=name is None and body.parallel_tool_calls,
        )

    def _free_grammar(self, body: ChatCompletionRequest) -> str:
        """An answer of text and calls; those of tools that are not strict are any object."""
        tools = [
            _callable(tool.function, index)
            if tool.function.strict
            else CallableTool.of(tool.function.name, None, "tools")
            for index, tool in enumerate(body.tools)
        ]
        return self._grammar.free(tools, more=body.parallel_tool_calls)

    def syntax(self, body: ChatCompletionRequest) -> ToolSyntax | None:
        """How to read the answer; None where no tool may be called."""
        if not body.tools or body.tool_choice == "none":
            return None
        choice = body.tool_choice
        names = [tool.function.name for tool in body.tools]
        if isinstance(choice, NamedTool):
            names = [choice.function.name]
        return ToolSyntax(
            self._syntax,
            frozenset(names),
            single=not body.parallel_tool_calls,
            opening=self.opening(body),
        )


def _callable(function: FunctionDefinition, index: int) -> CallableTool:
    part = f"tools[{index}].function.parameters"
    return CallableTool.of(function.name, function.parameters, part)
