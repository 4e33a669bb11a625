# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""What models that users fill in have in common: nothing unknown passes, and mistakes get words."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, ValidationInfo, field_validator

from tensorrt_llm.errors import RequestError

_BYTE_UNITS = {
    "": 1,
    "b": 1,
    "kb": 10**3,
    "mb": 10**6,
    "gb": 10**9,
    "tb": 10**12,
    "kib": 2**10,
    "mib": 2**20,
    "gib": 2**30,
    "tib": 2**40,
}


def parse_bytes(value: Any) -> Any:
    """Turns a size such as ``"512MiB"``, ``"1.5 GB"`` or ``"4096"`` into a number of bytes.

    Values that are no text are returned unchanged, for pydantic to judge.

    Raises:
        ValueError: If the text is no size.
    """
    if not isinstance(value, str):
        return value
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-z]*)\s*", value.lower())
    if match is None or match[2] not in _BYTE_UNITS:
        raise ValueError(f"{value!r} is no size; write bytes or for example '512MiB'")
    return int(float(match[1]) * _BYTE_UNITS[match[2]])


def inert(what: str, *values: Any) -> Any:
    """A field that is accepted only at the given values, because this release lacks the feature.

    Args:
        what: The feature, as the subject of "... is not available in this release".
        values: Accepted values; the first is the default.
    """
    return Field(
        default=values[0],
        description=f"Accepted for compatibility: {what} is not available in this release.",
        json_schema_extra={"inert": list(values), "feature": what},
    )


def _same_scalar(value: Any, other: Any) -> bool:
    # True == 1 in Python; a user who writes one does not mean the other.
    return isinstance(value, bool) == isinstance(other, bool) and value == other


class StrictModel(BaseModel):
    """Base of all models that users fill in: unknown fields refused, inert fields checked."""

    model_config = ConfigDict(extra="forbid", validate_assignment=True, protected_namespaces=())

    _inert: ClassVar[dict[str, dict[str, Any]]] = {}

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        """Finds the inert fields once: every field of every request asks for them."""
        cls._inert = {
            name: field.json_schema_extra
            for name, field in cls.model_fields.items()
            if isinstance(field.json_schema_extra, dict) and "inert" in field.json_schema_extra
        }

    @field_validator("*", mode="before")
    @classmethod
    def _check_inert(cls, value: Any, info: ValidationInfo) -> Any:
        extra = cls._inert.get(info.field_name or "")
        if extra and not any(_same_scalar(value, ok) for ok in extra["inert"]):
            accepted = " or ".join(repr(ok) for ok in extra["inert"])
            raise ValueError(
                f"{info.field_name}: {extra['feature']} is not available in this release; "
                f"leave it unset or at {accepted}, got {value!r}"
            )
        return value

    @classmethod
    def inert_fields(cls) -> dict[str, dict[str, Any]]:
        """Fields that are accepted at some values only, with those values under ``"inert"``."""
        return cls._inert

    def effective(self) -> dict[str, Any]:
        """The settings that have an effect, defaults filled in, as plain data."""
        result: dict[str, Any] = {}
        for name in type(self).model_fields:
            if name in self.inert_fields():
                continue
            value = getattr(self, name)
            result[name] = value.effective() if isinstance(value, StrictModel) else value
        return result


def describe_errors(error: ValidationError) -> list[tuple[str, str]]:
    """Says what is wrong in words for users: ``(field path, reason)`` for each mistake.

    Args:
        error: What pydantic raised, also for a request body.
    """
    return [describe_mistake(item) for item in error.errors()]


def field_path(location: Sequence[int | str]) -> str:
    """Writes a location as users write it, for example ``messages[0].content``."""
    path = ""
    for step in location:
        # Pydantic also names the member of a union that it tried; that is no part of the input.
        if isinstance(step, str) and re.fullmatch(r"str|int|list\[.*\]", step):
            continue
        path += f"[{step}]" if isinstance(step, int) else f".{step}" if path else str(step)
    return path


def describe_mistake(item: Mapping[str, Any]) -> tuple[str, str]:
    """Says what is wrong in one of pydantic's error items: ``(field path, reason)``."""
    path = field_path(item["loc"])
    cause = item.get("ctx", {}).get("error")
    if isinstance(cause, RequestError) and cause.part is not None:
        return (f"{path}.{cause.part}" if path else cause.part), cause.message
    if item["type"] == "extra_forbidden":
        return path, "unknown field"
    if item["type"] == "missing":
        return path, "missing"
    reason = item["msg"].removeprefix("Value error, ")
    return path, reason.removeprefix(f"{item['loc'][-1]}: " if item["loc"] else "")
