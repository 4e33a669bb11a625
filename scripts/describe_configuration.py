# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Writes docs/configuration.md from the options and the schema; `make docs` does it each time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, get_args

import click
from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from tensorrt_llm.commands.config import GroupedOption
from tensorrt_llm.commands.serve import serve
from tensorrt_llm.llmapi.llm_args import LlmArgs

_ESCAPES = str.maketrans({"|": "\\|", "<": "&lt;"})
PAGE = Path(__file__).resolve().parents[1] / "docs" / "configuration.md"

HEAD = """\
# Configuration

Options of `trtllm-serve` come first. Then all fields that the YAML file of `--config` and the
constructor of `LLM` take; the file wins over options. `trtllm-serve MODEL --dry_run` prints what
comes of both. Fields of TensorRT-LLM that this release lacks are accepted at the value that changes
nothing, and stand at the end.

"""


def page() -> str:
    """The page."""
    parts = [HEAD, "## Options of `trtllm-serve`\n"]
    groups: dict[str, list[GroupedOption]] = {}
    for param in serve.params:
        if isinstance(param, GroupedOption):
            groups.setdefault(param.group, []).append(param)
    for group, options in groups.items():
        rows = [(_names(one), _default(one.default), one.help or "") for one in options]
        parts.append(f"### {group}\n\n{_table(('option', 'default', 'what'), rows)}")
    parts.append("## Fields\n")
    inert: list[str] = []
    for path, model, about in _sections(LlmArgs, "", ""):
        rows = []
        for name, info in model.model_fields.items():
            full = f"{path}.{name}" if path else name
            if info.description and _is_inert(info):
                inert.append(f"`{full}`")
            elif not _nested(info):
                rows.append(
                    (
                        f"`{full}`",
                        _default(info.get_default(call_default_factory=True)),
                        info.description or "",
                    )
                )
        title = f"`{path}`" if path else "The model and its steps"
        lead = f"{about}\n\n" if about else ""
        parts.append(f"### {title}\n\n{lead}{_table(('field', 'default', 'what'), rows)}")
    parts.append(f"## Fields without effect\n\n{', '.join(inert)}.\n")
    return "\n".join(parts)


def _sections(
    model: type[BaseModel], path: str, about: str
) -> Iterator[tuple[str, type[BaseModel], str]]:
    """A model and the models inside it, each with its path."""
    yield path, model, about
    for name, info in model.model_fields.items():
        inner = _nested(info)
        if inner is not None:
            full = f"{path}.{name}" if path else name
            yield from _sections(inner, full, info.description or "")


def _nested(info: FieldInfo) -> type[BaseModel] | None:
    for kind in (info.annotation, *get_args(info.annotation)):
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            return kind
    return None


def _is_inert(info: FieldInfo) -> bool:
    return "not available in this release" in (info.description or "")


def _names(option: click.Option) -> str:
    return ", ".join(f"`{name}`" for name in (*option.opts, *option.secondary_opts))


def _default(value: Any) -> str:
    if value is None or value is PydanticUndefined or repr(value).startswith("Sentinel"):
        return ""
    if isinstance(value, (str, list, tuple, dict)) and not value:
        return ""
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


def _table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    lines = [f"| {' | '.join(head)} |", "|" + "---|" * len(head)]
    for row in rows:
        cells = (" ".join(cell.split()).translate(_ESCAPES) for cell in row)
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
