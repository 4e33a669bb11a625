# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Every source file opens with the licence header, after its `#!` line if it has one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
HEADER = (
    "Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.",
    "SPDX-License-Identifier: Apache-2.0",
)
COMMENT = {
    "#": (".py", ".pyi", ".sh", ".cmake", ".toml", ".yaml", ".yml", "CMakeLists.txt", "Makefile"),
    "//": (".h", ".hpp", ".cpp", ".cc", ".cu", ".cuh"),
}
# Programs whose names end in nothing that tells what they are.
PROGRAMS = (".ci/run",)
NOT_OURS = {".git", ".venv", "build", "dist"}
CACHES = {"__pycache__", ".hypothesis", ".mypy_cache", ".pytest_cache", ".ruff_cache"}


def comment_of(path: Path, root: Path) -> str | None:
    """What starts a comment in that file, or None where no header is asked for."""
    if path.relative_to(root).as_posix() in PROGRAMS:
        return "#"
    return next((mark for mark, ends in COMMENT.items() if path.name.endswith(ends)), None)


def source_files(root: Path) -> Iterator[Path]:
    """The source files below a folder that need a header."""
    for folder, folders, names in os.walk(root):
        skipped = CACHES | (NOT_OURS if Path(folder) == root else set())
        folders[:] = sorted(name for name in folders if name not in skipped)
        paths = (Path(folder) / name for name in sorted(names))
        yield from (path for path in paths if comment_of(path, root))


def without_header(root: Path) -> list[str]:
    """Source files below a folder that lack the header, by relative path."""
    missing = []
    for path in source_files(root):
        lines = path.read_text(encoding="utf-8").splitlines()
        if lines and lines[0].startswith("#!"):
            lines = lines[1:]
        if lines[:2] != [f"{comment_of(path, root)} {line}" for line in HEADER]:
            missing.append(path.relative_to(root).as_posix())
    return missing


def test_every_source_file_has_the_header() -> None:
    assert len(list(source_files(ROOT))) > 20
    assert without_header(ROOT) == []


@pytest.mark.parametrize("name", ["a.py", "cpp/b.h", "cpp/CMakeLists.txt", "Makefile", ".ci/run"])
def test_a_missing_header_is_seen_and_a_present_one_passes(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    mark = "//" if name.endswith(".h") else "#"
    path.write_text(f"{mark} {HEADER[1]}\n{mark} {HEADER[0]}\n")
    assert without_header(tmp_path) == [name]
    path.write_text(f"{mark} {HEADER[0]}\n{mark} {HEADER[1]}\n\nrest\n")
    assert without_header(tmp_path) == []


def test_the_header_may_follow_the_interpreter_line(tmp_path: Path) -> None:
    (tmp_path / "a.sh").write_text(f"#!/usr/bin/env bash\n# {HEADER[0]}\n# {HEADER[1]}\n")
    assert without_header(tmp_path) == []


def test_only_source_files_outside_build_outputs_count(tmp_path: Path) -> None:
    for name in ("build/a.py", ".venv/lib/b.py", "docs.md", "x/__pycache__/c.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("nothing\n")
    assert without_header(tmp_path) == []
