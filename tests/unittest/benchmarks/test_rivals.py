# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Rivals beside ours, without one: absent, answering, failing. A shell script plays the rival."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from benchmarks import kv_cache_manager, media_hash
from benchmarks.rivals import ROOT, RivalFailed, ask, interpreter, rivals_dir


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


def test_the_last_line_is_the_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "speaks.py").write_text("import sys\nprint('noise')\nprint(sys.argv[1])\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert ask(sys.executable, "speaks", '{"a": [1]}') == {"a": [1]}
    with pytest.raises(RivalFailed, match="ended with status 0"):
        ask(sys.executable, "speaks", "no answer")
    (tmp_path / "breaks.py").write_text("print('{}')\nraise OSError('no such thing')\n")
    with pytest.raises(RivalFailed, match="breaks ended with status 1: OSError: no such thing"):
        ask(sys.executable, "breaks")


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
        for on, rate in ((True, 10), (False, 20))
    ]
    told = json.dumps({"version": "9.9", "rows": figures})
    install(folder, "sglang", f"echo \"$@\" > {folder}/asked; echo '{told}'")
    install(folder, "vllm", "echo no such module >&2; exit 3")
    failed, *rows = kv_cache_manager.rivals(0.05)
    assert failed["what"].endswith("benchmarks.rival_vllm ended with status 3: no such module")
    asked = (folder / "asked").read_text().split()
    assert asked == ["-m", "benchmarks.rival_sglang", "--blocks", "3000", "--seconds", "0.1"]
    for row, figure in zip(rows, figures, strict=True):
        assert row.items() >= {"name": "SGLang", "version": "9.9", **figure}.items()
        assert row["ours"] > 100
        assert row["ratio"] == pytest.approx(row["ours"] / figure["requests_per_s"], abs=0.01)
    for row in (failed, *rows):
        kv_cache_manager.say_rival(row)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 3 and "not run" in lines[0] and f"{rows[0]['ratio']:.1f}x" in lines[1]


def test_the_hasher_of_an_absent_vllm_has_no_rates(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert media_hash.vllm_rates(None, 0.01) == {}
    install(folder, "vllm", 'echo \'{"version": "9.9"}\'')
    assert media_hash.vllm_rates(None, 0.01) == {"version": "9.9"}
    broken = install(folder, "broken", "exit 1")
    assert media_hash.vllm_rates(str(broken), 0.01) == {}
    said = capsys.readouterr().err.splitlines()
    assert [line.split(":")[0] for line in said] == ["vLLM not run"] * 2
