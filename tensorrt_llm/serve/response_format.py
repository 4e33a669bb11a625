# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""What a request says its answer has to be: ``response_format`` and the ``guided_*`` fields."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from tensorrt_llm.errors import RequestError
from tensorrt_llm.llmapi.strict_model import StrictModel
from tensorrt_llm.sampling_params import GuidedDecodingParams


class JsonSchemaFormat(StrictModel):
    """A schema with a name, as OpenAI's API has it."""

    name: str | None = Field(None, description="Ignored.")
    description: str | None = Field(None, description="Ignored.")
    schema_: dict[str, Any] | bool = Field(True, alias="schema", description="The JSON schema.")
    strict: bool | None = Field(None, description="Ignored: answers always follow the schema.")


class ResponseFormat(StrictModel):
    """The form of an answer."""

    type: Literal["text", "json_object", "json_schema", "json", "regex", "ebnf"] = Field(
        description="What the answer has to be; text is anything."
    )
    json_schema: JsonSchemaFormat | None = Field(None, description="With type json_schema.")
    schema_: dict[str, Any] | bool | None = Field(
        None, alias="schema", description="A JSON schema, with type json."
    )
    regex: str | None = Field(None, description="With type regex.")
    ebnf: str | None = Field(None, description="A grammar, with type ebnf.")

    def guided(self) -> GuidedDecodingParams | None:
        """The same as the engine takes it.

        Raises:
            RequestError: If what the type needs is missing.
        """
        if self.type == "text":
            return None
        if self.type == "json_object":
            return GuidedDecodingParams(json_object=True)
        if self.type == "json_schema":
            given: Any = self.json_schema and self.json_schema.schema_
        else:
            given = {"json": self.schema_, "regex": self.regex, "ebnf": self.ebnf}[self.type]
        if given is None:
            name = "schema" if self.type == "json" else self.type
            raise RequestError(
                f"type {self.type} needs a value here", part=f"response_format.{name}"
            )
        kind = {"json_schema": "json", "ebnf": "grammar"}.get(self.type, self.type)
        return GuidedDecodingParams(**{kind: given})


def one_guide(
    response_format: ResponseFormat | None, guides: dict[str, Any]
) -> GuidedDecodingParams | None:
    """What the answer has to be, if it has to be anything.

    Args:
        response_format: The field of that name.
        guides: The fields of ``GuidedDecodingParams``, None where unset.

    Raises:
        RequestError: If a request says so in more than one way.
    """
    given = {kind: value for kind, value in guides.items() if value is not None}
    form = None if response_format is None else response_format.guided()
    if len(given) + (form is not None) > 1:
        names = [*(f"guided_{kind}" for kind in given), *(["response_format"] * (form is not None))]
        raise RequestError(f"only one of {', '.join(names)} may be set", part=names[0])
    return GuidedDecodingParams(**given) if given else form
