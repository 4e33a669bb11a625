# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Every protection that SECURITY.md names has options and tests that there are."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tensorrt_llm.commands.serve import serve

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
TESTS = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", PAGE)


def protections() -> list[list[str]]:
    """The cells of the table of protections, row by row."""
    table = PAGE.partition("## What protects")[2].partition("\n## ")[0]
    rows = [line for line in table.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in rows[1:]]


def test_each_protection_names_a_test() -> None:
    assert len(protections()) > 10
    for protection, _, tests in protections():
        assert re.search(r"`tests/[\w/]+\.py::\w+`", tests), protection


@pytest.mark.parametrize(("file", "name"), TESTS)
def test_each_test_is_there(file: str, name: str) -> None:
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    assert name in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


def test_each_option_is_there() -> None:
    known = {name for one in serve.params for name in (*one.opts, *one.secondary_opts)}
    assert set(re.findall(r"`(--\w+)`", PAGE)) <= known
