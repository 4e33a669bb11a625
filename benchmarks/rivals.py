# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Rivals in the same run: where their environments lie, and how one of them is asked for figures.

`make peers` makes the environments, below `build/rivals` or `$RIVALS_DIR`. A rival's script lies
beside this module and is run by the rival's own interpreter, so this module needs nothing but the
standard library.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]


class RivalFailed(Exception):
    """A rival's environment is there, and its script gave no figures."""


def rivals_dir() -> Path:
    """The folder of the environments, one a rival."""
    named = os.environ.get("RIVALS_DIR")
    return Path(named).absolute() if named else ROOT / "build" / "rivals"


def interpreter(name: str) -> Path | None:
    """The Python of a rival's environment, or None where there is none."""
    python = rivals_dir() / name.lower() / "bin" / "python"
    return python if python.exists() else None


def ask(python: str | Path, module: str, *arguments: str) -> Any:
    """Runs a module of this project and gives what its last line of output says in JSON.

    Raises:
        RivalFailed: It ended with an error, or without such a line.
    """
    # Rivals look for GPUs, log to where the answer is expected, and report who uses them.
    quiet = {"CUDA_VISIBLE_DEVICES": "", "VLLM_LOGGING_LEVEL": "ERROR", "VLLM_NO_USAGE_STATS": "1"}
    done = subprocess.run(
        [str(python), "-m", module, *arguments],
        cwd=ROOT,
        env={**os.environ, **quiet},
        capture_output=True,
        text=True,
        check=False,
    )
    try:
        if done.returncode == 0:
            return json.loads(done.stdout.splitlines()[-1])
    except (IndexError, ValueError):
        pass
    said = (done.stderr.splitlines() or ["nothing on its standard error"])[-1]
    raise RivalFailed(f"{module} ended with status {done.returncode}: {said}")


def answer(measure: Callable[[int, float], dict[str, Any]]) -> None:
    """What a rival's script does: measures with the pool and time asked for, prints the figures."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--blocks", type=int, default=100_000, help="blocks of the pool")
    parser.add_argument("--seconds", type=float, default=2.0, help="timed seconds a figure")
    options = parser.parse_args()
    complaints: list[Any] = []
    sys.unraisablehook = complaints.append
    told = measure(options.blocks, options.seconds)
    if complaints:
        # Such errors are only printed, which takes time that is not the rival's.
        raise RuntimeError(
            f"{len(complaints)} errors were ignored, such as {complaints[0].exc_value}"
        )
    print(json.dumps(told))
