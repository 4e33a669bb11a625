# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""A slower path fails and its twin passes; what cannot be told is said, and is no figure."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from benchmarks import check_regression
from benchmarks.check_regression import BASELINE, Verdict, a_turn, differences, main
from benchmarks.core_paths import PATHS, TURNS

counts_here = pytest.mark.skipif(shutil.which("valgrind") is None, reason="needs valgrind")

# The paths over a manager that is as it is, looks every prompt up twice, or has forgotten all.
WORKER = f"""
import sys
sys.path.insert(0, {str(check_regression.ROOT)!r})
from benchmarks import core_paths
from tensorrt_llm import bindings

class Changed(bindings.KVCacheManager):
    def add_sequence(self, number, tokens, media, scope, new):
        if HOW == "slow":
            self.probe(tokens, media, scope)
        if HOW == "wrong":
            self.reset_reuse_state()
        return super().add_sequence(number, tokens, media, scope, new)

bindings.KVCacheManager = Changed
core_paths.main(*sys.argv[1:])
"""


@pytest.fixture(name="worker")
def worker_script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], object]:
    """Makes the counted program one whose manager is changed so."""
    script = tmp_path / "worker.py"
    monkeypatch.setattr(check_regression, "WORKER", (str(script),))
    return lambda how: bool(script.write_text(f"HOW = {how!r}\n{WORKER}"))


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, list(arguments))


@counts_here
def test_a_path_that_is_slowed_fails_and_its_twin_does_not(
    tmp_path: Path, worker: Callable[[str], object]
) -> None:
    options = ("--only", "full_hits", "--baseline", str(tmp_path / "baseline.json"))
    worker("as it is")
    assert run("--write", *options).exit_code == 0
    twin = run(*options)
    assert twin.exit_code == 0, twin.output
    assert "as before" in twin.output
    worker("slow")
    slowed = run(*options)
    assert slowed.exit_code == 1
    assert "SLOWER" in slowed.output and "Error: full_hits: above the tolerance" in slowed.output


@counts_here
def test_a_path_that_answers_wrongly_is_no_figure(
    tmp_path: Path, worker: Callable[[str], object]
) -> None:
    worker("wrong")
    baseline = tmp_path / "baseline.json"
    done = run("--write", "--only", "full_hits", "--baseline", str(baseline))
    assert done.exit_code == 1 and not baseline.exists()


def verdict(counted: int, known: int | None) -> Verdict:
    return Verdict("path", counted, known, 0.02)


def test_the_tolerance_is_a_bound_upwards() -> None:
    assert [verdict(n, 1000).word for n in (500, 979, 980, 1020, 1021)] == [
        *("faster", "faster", "as before", "as before", "SLOWER")
    ]
    assert [verdict(n, 1000).fails for n in (500, 1020, 1021)] == [False, False, True]
    assert verdict(1, None).fails and verdict(1, None).word == "not in the baseline"


def test_what_happens_once_is_not_counted() -> None:
    counts = {"a 1": 900 + 5 * TURNS, "a 2": 900 + 10 * TURNS, "b 1": 0, "b 2": 3 * TURNS}
    assert a_turn(counts) == {"a": 5, "b": 3}


def other_baseline(tmp_path: Path, **environment: str) -> Path:
    content: dict[str, Any] = json.loads(BASELINE.read_text())
    content["environment"] = {**check_regression.here(), **environment}
    path = tmp_path / "baseline.json"
    path.write_text(json.dumps(content))
    return path


def test_another_version_is_not_compared(tmp_path: Path) -> None:
    done = run("--baseline", str(other_baseline(tmp_path, numpy="0.1")))
    assert done.exit_code == 0
    now = check_regression.here()["numpy"]
    assert done.output == f"not compared: numpy is {now}, not 0.1\n"
    assert list(differences({"a": "1"}, {"b": "2"})) == [
        *("a is absent, not 1", "b is 2, not absent")
    ]


def test_without_valgrind_it_is_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    baseline = other_baseline(tmp_path)
    monkeypatch.setattr(check_regression.shutil, "which", lambda name: None)
    done = run("--baseline", str(baseline))
    assert (done.exit_code, done.output) == (0, "not run: there is no valgrind here\n")


def test_the_baseline_has_every_path_and_is_whole() -> None:
    content = json.loads(BASELINE.read_text())
    assert set(content["instructions"]) == set(PATHS)
    assert all(count > 1000 for count in content["instructions"].values())
    assert set(content["environment"]) == set(check_regression.here())
    assert run("--write", "--only", "full_hits").exit_code == 2, "half a baseline is none"
