# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""What ``make mutants`` leaves out stands where it says, once, and has the test it names."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts import mutate_block_key, mutate_families

ROOT = Path(__file__).resolve().parents[2]
PLACES = [
    *((one.name, ROOT / one.file, one.old, one.new) for one in mutate_block_key.MUTATIONS),
    *(
        (one.name, ROOT / "tensorrt_llm" / one.file, one.old, one.new)
        for one in mutate_families.MUTATIONS
    ),
]


@pytest.mark.parametrize(("name", "file", "old", "new"), PLACES, ids=[one[0] for one in PLACES])
def test_it_stands_in_one_place(name: str, file: Path, old: str, new: str) -> None:
    assert file.read_text("utf-8").count(old) == 1 and old != new


def test_names_are_told_apart_and_tests_are_there() -> None:
    for script in (mutate_block_key, mutate_families):
        names = [one.name for one in script.MUTATIONS]
        assert len(set(names)) == len(names)
    for one in mutate_families.MUTATIONS:
        file, test = one.test.split("::")
        source = (ROOT / "tests" / "unittest" / file).read_text("utf-8")
        assert f"\ndef {test.partition('[')[0]}(" in source, one.test
