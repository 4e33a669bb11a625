# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Writes down what programs may use: names of the public modules, methods of ``LLM`` and answers.

    python scripts/api_surface.py [--write]

A test compares the text with ``tests/unittest/api_surface.txt``, so that a changed name or argument
is a decision. Fields of configurations are not in it: ``--help``, the schema and their own tests
are.
"""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Iterator
from pathlib import Path

SNAPSHOT = Path(__file__).resolve().parents[1] / "tests" / "unittest" / "api_surface.txt"
MODULES = ("tensorrt_llm", "tensorrt_llm.llmapi", "tensorrt_llm.inputs")
CLASSES = (
    ("tensorrt_llm.llmapi", "LLM"),
    ("tensorrt_llm.llmapi", "RequestOutput"),
    ("tensorrt_llm.llmapi", "LoRARequest"),
    ("tensorrt_llm.inputs", "MediaLoader"),
    ("tensorrt_llm.inputs", "InputProcessor"),
)


def members(kind: type) -> Iterator[str]:
    """The constructor, methods and properties of a class that are its own and public."""
    yield f"({', '.join(map(str, inspect.signature(kind).parameters.values()))})"
    for name, value in sorted(vars(kind).items()):
        if name.startswith("_"):
            continue
        if isinstance(value, property):
            yield f".{name}"
        elif isinstance(value, classmethod | staticmethod):
            yield f".{name}{inspect.signature(value.__func__)}"
        elif inspect.isfunction(value):
            yield f".{name}{inspect.signature(value)}"


def surface() -> str:
    """The text."""
    lines = []
    for name in MODULES:
        module = importlib.import_module(name)
        lines += [f"{name}.{public}" for public in sorted(module.__all__)]
        missing = [public for public in module.__all__ if not hasattr(module, public)]
        if missing:
            raise SystemExit(f"{name} promises what is not there: {', '.join(missing)}")
    for place, name in CLASSES:
        kind = getattr(importlib.import_module(place), name)
        lines += ["", *(f"{name}{member}" for member in members(kind))]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    if "--write" in sys.argv[1:]:
        SNAPSHOT.write_text(surface(), encoding="utf-8")
    else:
        print(surface(), end="")
