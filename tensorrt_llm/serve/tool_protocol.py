# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""The shapes of tools that a chat may call, and of the calls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from pydantic import BaseModel, Field

from tensorrt_llm.errors import RequestError
from tensorrt_llm.llmapi.strict_model import StrictModel

_NAME = r"^[a-zA-Z0-9_.-]{1,64}$"


class FunctionDefinition(StrictModel):
    """A function that the model may ask for."""

    name: str = Field(pattern=_NAME, description="What calls name it.")
    description: str | None = Field(None, description="What it does, for the model.")
    parameters: dict[str, Any] | None = Field(None, description="JSON schema of its arguments.")
    strict: bool | None = Field(
        None,
        description="Hold the arguments of calls to the schema. Calls that tool_choice asks for "
        "follow it in any case.",
    )


class Tool(StrictModel):
    """A tool: always a function."""

    type: Literal["function"] = Field("function", description="The only kind.")
    function: FunctionDefinition = Field(description="The function.")


class NamedFunction(StrictModel):
    """The name of a function."""

    name: str = Field(description="Name of one of the tools.")


class NamedTool(StrictModel):
    """The one tool that shall be called."""

    type: Literal["function"] = Field("function", description="The only kind.")
    function: NamedFunction = Field(description="Which one.")


ToolChoice = Literal["none", "auto", "required"] | NamedTool


def check_tools(tools: Sequence[Tool], choice: ToolChoice | None) -> None:
    """Refuses tools that cannot be told apart, and a choice that is none of them.

    Raises:
        RequestError: Names the field.
    """
    names = [tool.function.name for tool in tools]
    for index, name in enumerate(names):
        if name in names[:index]:
            raise RequestError(f"{name!r} is there already", part=f"tools[{index}].function.name")
    if isinstance(choice, NamedTool) and choice.function.name not in names:
        raise RequestError(
            f"{choice.function.name!r} is none of the tools", part="tool_choice.function.name"
        )
    if choice == "required" and not names:
        raise RequestError("there are no tools", part="tool_choice")


class FunctionCall(BaseModel):
    """A function and its arguments, as JSON text."""

    name: str
    arguments: str


class ToolCallMessage(BaseModel):
    """A call in an answer; ``index`` stands in streams only."""

    index: int | None = None
    id: str
    type: Literal["function"]
    function: FunctionCall
