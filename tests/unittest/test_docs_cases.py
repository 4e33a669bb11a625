# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""The table of failure cases names all thirty, and tests that there are."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "reliability" / "cases.md").read_text(encoding="utf-8")
COLUMNS = 6


def rows() -> dict[str, list[str]]:
    """The table's cells by case."""
    lines = [line for line in PAGE.splitlines() if re.match(r"\| C\d\d \|", line)]
    cells = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]
    return {row[0]: row for row in cells}


def functions_of(file: Path) -> dict[str, str]:
    """What a file's test functions say they are about, by name."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    return {
        node.name: ast.get_docstring(node) or ""
        for node in tree.body
        if isinstance(node, ast.FunctionDef)
    }


def test_the_table_names_all_thirty_cases_once() -> None:
    assert list(rows()) == [f"C{number:02}" for number in range(1, 31)]
    assert len(re.findall(r"^\| C\d\d ", PAGE, re.M)) == 30
    assert {len(row) for row in rows().values()} == {COLUMNS}


def test_each_case_is_held_by_a_test_that_there_is() -> None:
    for case, row in rows().items():
        file, _, name = row[-1].strip("`").partition("::")
        about = functions_of(ROOT / file)
        assert name in about, f"{case}: {row[-1]}"
        told = re.findall(r"\bC\d\d\b", about[name])
        assert not told or case in told, f"{case}: the test says that it is about {told}"


def test_the_counts_are_those_of_the_table() -> None:
    told = re.search(r"right in (\d+) of 30, wrong in (\d+), (\d+)\s+could not be tried", PAGE)
    assert told is not None
    kinds = [row[4].split(":")[0] for row in rows().values()]
    counted = [kinds.count(kind) for kind in ("right", "not right", "not tried")]
    assert [int(count) for count in told.groups()] == counted
    for row in rows().values():
        assert row[2].startswith("right") and row[3].startswith("right")
