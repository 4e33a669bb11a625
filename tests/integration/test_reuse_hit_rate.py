# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""The reuse benchmark, as users run it: it reuses all that can be, and every answer is right."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from click.testing import CliRunner
from support.checkpoints import REPOSITORY, load_script

from tensorrt_llm.commands.bench import main

SCRIPT = REPOSITORY / "benchmarks" / "reuse_hit_rate.py"


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(SCRIPT), *arguments], capture_output=True, text=True, timeout=280
    )


def test_every_workload_reuses_the_most_possible_without_a_wrong_hit(tmp_path) -> None:
    out = tmp_path / "out.json"
    done = run("--json", str(out))
    assert done.returncode == 0, done.stderr
    report = json.loads(out.read_text())
    assert set(report) == {"workloads", "machine", "versions"}
    assert len(report["workloads"]) == 4
    for row in report["workloads"]:
        assert row["wrong_hits"] == 0, row
        assert row["cached_tokens"] == row["max_cached_tokens"] > 0, row
        assert row["encoder_runs"] < row["encoder_runs_without_reuse"], row
        assert row["ttft_warm_ms"] > 0 and row["ttft_cold_ms"] > 0, row
        assert row["name"].split()[0] in done.stdout


@pytest.mark.parametrize(
    ("arguments", "says"), [(("--scale", "0"), "--scale"), (("--model", "/none"), "--model")]
)
def test_a_wrong_argument_is_named(arguments, says) -> None:
    done = CliRunner().invoke(load_script("benchmarks/reuse_hit_rate.py").main, arguments)
    assert done.exit_code == 2
    assert f"Invalid value for '{says}'" in done.output


def test_the_command_says_what_it_cannot_measure(llama_checkpoint, tmp_path) -> None:
    for folder, says in ((tmp_path, "no config.json"), (llama_checkpoint, "takes no audio and")):
        done = CliRunner().invoke(main, ["reuse", str(folder)])
        assert done.exit_code == 1 and says in done.output, done.output
    done = CliRunner().invoke(main, ["reuse", str(tmp_path), "--scale", "0"])
    assert done.exit_code == 2 and "Invalid value for '--scale'" in done.output
