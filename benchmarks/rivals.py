# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Rivals in the same run: where their environments lie, and how one of them is measured in turns.

`make peers` makes the environments, below `build/rivals` or `$RIVALS_DIR`. A rival's script lies
beside this module and is run by the rival's own interpreter. It says that it is ready, then
measures one round for each line that it reads, so that rounds of ours come between and a busy
minute hurts both.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from benchmarks.shared_prefix import BestHundredth

ROUNDS = 10
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


class Rival:
    """A script of a rival that runs in the rival's environment, and what it said last.

    Attributes:
        told: The last line of its output that was a JSON object.

    Raises:
        RivalFailed: From every method, when the script ended before it answered.
    """

    def __init__(self, python: str | Path, module: str, *arguments: str) -> None:
        # Rivals look for GPUs, log to where the answer is expected, and report who uses them.
        quiet = {"CUDA_VISIBLE_DEVICES": "", "VLLM_LOGGING_LEVEL": "ERROR"}
        self._module = module
        self._errors = tempfile.TemporaryFile("w+")  # noqa: SIM115 - closed with the script
        self._process = subprocess.Popen(
            [str(python), "-m", module, *arguments],
            cwd=ROOT,
            env={**os.environ, **quiet, "VLLM_NO_USAGE_STATS": "1"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
        )
        self.told: dict[str, Any] = {}

    def __enter__(self) -> Rival:
        try:
            self._listen()
        except RivalFailed:
            self._close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._close()

    def _close(self) -> None:
        try:
            self._process.communicate()  # the end of its input ends it
        finally:
            self._errors.close()

    def round(self) -> None:
        """Has it measure another round; the figures so far are in ``told`` then."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write("\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            pass  # it ended; why is found where its answer should be
        self._listen()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith("{"):  # rivals print other things too
                self.told = json.loads(line)
                return
        status = self._process.wait()
        self._errors.seek(0)
        lines = self._errors.read().splitlines()
        # What libraries complain of at the end of a process comes after what ended it.
        raised = [line for line in lines if re.match(r"[\w.]*(Error|Exception)\b", line)]
        said = (raised or lines or ["nothing on its standard error"])[-1]
        raise RivalFailed(f"{self._module} ended with status {status}: {said}")


@dataclass(frozen=True)
class Figure:
    """One figure of a rival.

    Attributes:
        what: What is timed.
        events: ``off``, ``on`` (recorded) or ``read`` (and taken after every request).
        turn: Does the work of one request and gives its seconds.
    """

    what: str
    events: str
    turn: Callable[[], float]


def answer(version: str, prepare: Callable[[int], Sequence[Figure]]) -> None:
    """What a rival's script does: fills its pools, measures a round for every line it reads."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--blocks", type=int, default=100_000, help="blocks of the pool")
    parser.add_argument("--seconds", type=float, default=2.0, help="timed seconds a figure")
    options = parser.parse_args()
    complaints: list[Any] = []
    sys.unraisablehook = complaints.append
    figures = [(figure, BestHundredth(options.seconds)) for figure in prepare(options.blocks)]
    print(json.dumps({"version": version}), flush=True)
    for _ in sys.stdin:
        for figure, timer in figures:
            timer.add_round(figure.turn, ROUNDS)
        if complaints:
            # Such errors are only printed, which takes time that is not the rival's.
            error = complaints[0].exc_value
            raise RuntimeError(f"{len(complaints)} errors were ignored, such as {error}")
        rows = [
            {"what": figure.what, "events": figure.events, "requests_per_s": round(1 / timer.best)}
            for figure, timer in figures
        ]
        print(json.dumps({"version": version, "rows": rows}), flush=True)
