# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Rivals beside ours, without one: absent, answering, failing. A shell script plays the rival."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks import kv_cache_manager, media_hash
from benchmarks.rivals import ROOT, ROUNDS, Rival, RivalFailed, interpreter, rivals_dir


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder of environments."""
    monkeypatch.setenv("RIVALS_DIR", str(tmp_path))
    # Large enough for a batch; the real one takes long to fill.
    monkeypatch.setattr(kv_cache_manager, "RIVAL_POOL", 3000)
    return tmp_path


def install(folder: Path, name: str, script: str) -> Path:
    python = folder / name / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(f"#!/bin/sh\n{script}\n")
    python.chmod(0o755)
    return python


def test_the_folder_can_be_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert rivals_dir() == folder and interpreter("vLLM") is None
    python = install(folder, "vllm", "true")
    assert interpreter("vLLM") == python and interpreter("SGLang") is None
    monkeypatch.setenv("RIVALS_DIR", "")
    assert rivals_dir() == ROOT / "build" / "rivals"
    monkeypatch.delenv("RIVALS_DIR")
    assert rivals_dir() == ROOT / "build" / "rivals"


SCRIPT = """
import itertools, sys
from benchmarks.rivals import Figure, answer

turns = itertools.count()

def turn():
    next(turns)
    if "breaks" in sys.argv[0] and next(turns) > 200:
        raise OSError("no such thing")
    if "ignores" in sys.argv[0]:
        sys.unraisablehook(type("Seen", (), {"exc_value": "dropped"}))
    return 0.01

def prepare(blocks):
    print("a rival's own words")
    return [Figure(f"{blocks} blocks", "off", turn)]

answer("9.9", prepare)
"""


def test_rounds_until_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("speaks", "breaks", "ignores"):
        (tmp_path / f"{name}.py").write_text(SCRIPT)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    options = ["--blocks", "7", "--seconds", "10"]
    with Rival(sys.executable, "speaks", *options) as rival:
        assert rival.told == {"version": "9.9"}
        for _ in range(ROUNDS):
            rival.round()
        row = {"what": "7 blocks", "events": "off", "requests_per_s": 100}
        assert rival.told == {"version": "9.9", "rows": [row]}
    with (
        pytest.raises(RivalFailed, match="breaks ended with status 1: OSError: no such thing"),
        Rival(sys.executable, "breaks", *options) as rival,
    ):
        for _ in range(ROUNDS):
            rival.round()
    with (
        pytest.raises(RivalFailed, match="errors were ignored, such as dropped"),
        Rival(sys.executable, "ignores", *options) as rival,
    ):
        rival.round()


def test_a_script_without_an_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "silent.py").write_text("print('noise')\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with (
        pytest.raises(RivalFailed, match="silent ended with status 0: nothing on its standard"),
        Rival(sys.executable, "silent"),
    ):
        pass


def test_absent_rivals_are_not_run() -> None:
    rows = kv_cache_manager.rivals(0.01)
    assert [row["name"] for row in rows] == ["vLLM", "SGLang"]
    for row in rows:
        assert row["what"].startswith("not run") and row["requests_per_s"] is row["version"] is None


def test_one_rival_answers_and_the_other_fails(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    figures = [
        {"what": "the tree", "events": on, "requests_per_s": rate}
        for on, rate in (("read", 10), ("on", 15), ("off", 20))
    ]
    told = json.dumps({"version": "9.9", "rows": figures})
    ready = f"echo \"$@\" > {folder}/asked; echo '{{}}'"
    install(folder, "sglang", f"{ready}; while read line; do echo '{told}'; done")
    install(folder, "vllm", "echo no such module >&2; exit 3")
    failed, *rows = kv_cache_manager.rivals(0.05)
    assert failed["what"].endswith("benchmarks.rival_vllm ended with status 3: no such module")
    asked = (folder / "asked").read_text().split()
    assert asked == ["-m", "benchmarks.rival_sglang", "--blocks", "3000", "--seconds", "0.05"]
    for row, figure in zip(rows, figures, strict=True):
        assert row.items() >= {"name": "SGLang", "version": "9.9", **figure}.items()
        assert row["ours"] > 100
        assert row["ratio"] == pytest.approx(row["ours"] / figure["requests_per_s"], abs=0.01)
    for row in (failed, *rows):
        kv_cache_manager.say_rival(row)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 4 and "not run" in lines[0] and f"{rows[0]['ratio']:.1f}x" in lines[1]


def test_the_hasher_of_an_absent_vllm_has_no_rates(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def small() -> Iterator[tuple[str, str, Any]]:
        yield "clip", "audio", np.zeros(4096, np.float32)

    monkeypatch.setattr(media_hash, "objects", small)
    rows, version = media_hash.measured_rows(None, 0.01)
    assert version is None and [row["vllm_gb_per_s"] for row in rows] == [None] * 3
    told = '{"version": "9.9", "clip/blake3": 0.5}'
    install(folder, "vllm", f"echo '{told}'; while read line; do echo '{told}'; done")
    rows, version = media_hash.measured_rows(None, 0.01)
    assert version == "9.9" and [row["vllm_gb_per_s"] for row in rows] == [0.5, None, None]
    assert rows[0]["ratio"] == pytest.approx(rows[0]["gb_per_s"] / 0.5, abs=0.01)
    broken = install(folder, "broken", "exit 1")
    assert media_hash.measured_rows(str(broken), 0.01)[1] is None
    early = install(folder, "early", f"echo '{told}'; exit 2")
    assert media_hash.measured_rows(str(early), 0.01)[1] is None
    said = capsys.readouterr().err.splitlines()
    assert [line.split(":")[0] for line in said] == ["vLLM not run"] * 3
