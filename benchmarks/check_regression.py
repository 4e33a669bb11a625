# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Do the core paths take more instructions than they did?

    python benchmarks/check_regression.py [--write] [--only PATH]... [--baseline FILE]

Times on shared machines lie; the number of instructions does not, and callgrind counts it. The
paths are those of `core_paths.py`. What is compared with is `baselines/instructions.json`, which
`--write` renews. A path that takes more than the tolerance above its baseline, or has none, fails.

Another Python, compiler or wheel runs other instructions: where any of those that the baseline
names differs, nothing is compared, and that is said. Without valgrind nothing is run, likewise.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
from rich import box
from rich.console import Console
from rich.table import Table

if __package__ in (None, ""):  # run as a script
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.core_paths import PATHS, TURNS

ROOT = Path(__file__).resolve().parents[1]
BASELINE = ROOT / "benchmarks" / "baselines" / "instructions.json"
MARKS = ROOT / "benchmarks" / "cpp" / "callgrindMarks.cpp"
WORKER = ("-m", "benchmarks.core_paths")
# Wheels whose code runs inside a counted path.
WHEELS = (
    *("blake3", "Jinja2", "msgspec", "numpy", "pillow", "regex", "soundfile"),
    *("tokenizers", "torch", "transformers", "xxhash"),
)
# What decides the order of things, how many threads there are, and which instructions torch picks.
SETTINGS = {
    "PYTHONHASHSEED": "0",
    "OMP_NUM_THREADS": "1",
    "RAYON_NUM_THREADS": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "ATEN_CPU_CAPABILITY": "default",
}
PASSED_ON = ("PATH", "HOME", "LD_LIBRARY_PATH", "PYTHONPATH", "TMPDIR")


class NotRun(Exception):
    """Something is missing here; the message says what."""


@dataclass(frozen=True)
class Verdict:
    """One path.

    Attributes:
        name: Of the path.
        counted: Instructions a turn, now.
        known: Likewise, in the baseline; None if it does not have the path.
        tolerance: Part of ``known`` by which ``counted`` may be above it.
    """

    name: str
    counted: int
    known: int | None
    tolerance: float

    @property
    def change(self) -> float | None:
        """Part of the baseline by which the path takes more."""
        return None if not self.known else self.counted / self.known - 1

    @property
    def fails(self) -> bool:
        """Whether it takes too many, or nobody knows how many are right."""
        return not self.known or self.counted > self.known * (1 + self.tolerance)

    @property
    def word(self) -> str:
        """What to say of it."""
        if not self.known:
            return "not in the baseline"
        if self.fails:
            return "SLOWER"
        return "faster" if self.counted < self.known * (1 - self.tolerance) else "as before"


def count(names: Sequence[str] = (), worker: Sequence[str] = WORKER) -> dict[str, int]:
    """Instructions that a turn of each path takes.

    Args:
        names: Of paths; all if empty.
        worker: Arguments of the interpreter that begin the program whose paths are counted.

    Raises:
        NotRun: If there is no valgrind, or no compiler that finds its header.
        subprocess.CalledProcessError: If a path failed; its output was shown.
    """
    valgrind = shutil.which("valgrind")
    if valgrind is None:
        raise NotRun("there is no valgrind here")
    with tempfile.TemporaryDirectory(prefix="trtllm-counts-") as folder:
        marks = Path(folder) / "marks.so"
        compile_marks(marks)
        out = Path(folder) / "counts"
        command = [valgrind, "--quiet", "--tool=callgrind", "--instr-atstart=no"]
        command += [f"--callgrind-out-file={out}", sys.executable, *worker, str(marks), *names]
        environment = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
        done = subprocess.run(
            command,
            cwd=ROOT,
            env={**environment, **SETTINGS},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        if done.returncode:
            click.echo(done.stdout, err=True)
            done.check_returncode()
        return a_turn(read_counts(out))


def compile_marks(target: Path) -> None:
    """Compiles the functions that mark where counting begins and ends.

    Raises:
        NotRun: If it cannot be done here.
    """
    try:
        subprocess.run(
            [compiler(), "-shared", "-fPIC", "-O1", "-o", str(target), str(MARKS)],
            check=True,
            capture_output=True,
            text=True,
        )
    except FileNotFoundError:
        raise NotRun("there is no C++ compiler here") from None
    except subprocess.CalledProcessError as error:
        said = (error.stderr.splitlines() or ["the compiler failed"])[0]
        raise NotRun(f"the marks of callgrind cannot be compiled: {said}") from None


def compiler() -> str:
    """The C++ compiler's name."""
    return os.environ.get("CXX", "c++")


def read_counts(out: Path) -> dict[str, int]:
    """Instructions by the label of the file that callgrind wrote them to, in the order written."""
    counts = {}
    for file in sorted(out.parent.glob(f"{out.name}.*"), key=lambda file: int(file.suffix[1:])):
        text = file.read_text(encoding="utf-8")
        label = re.search(r"^desc: Trigger: Client Request: (.*)$", text, re.MULTILINE)
        totals = re.search(r"^totals: (\d+)$", text, re.MULTILINE)
        if label and totals:
            counts[label[1]] = int(totals[1])
    return counts


def a_turn(counts: Mapping[str, int]) -> dict[str, int]:
    """From the counts of some turns and of twice as many, what one takes."""
    names = [label.removesuffix(" 1") for label in counts if label.endswith(" 1")]
    return {name: round((counts[f"{name} 2"] - counts[f"{name} 1"]) / TURNS) for name in names}


def here() -> dict[str, str]:
    """All that decides how many instructions the same source is, and is not of this project."""
    return {
        "machine": f"{platform.machine()}{' with AVX2' if has_avx2() else ''}",
        "python": " ".join(sys.version.split()),
        "libc": " ".join(platform.libc_ver()),
        "compiler": first_line(compiler(), "--version"),
        "valgrind": first_line("valgrind", "--version"),
        **{wheel: version_of(wheel) for wheel in WHEELS},
    }


def has_avx2() -> bool:
    """Whether libraries that look at the processor find the widest registers of callgrind."""
    cpuinfo = Path("/proc/cpuinfo")
    return cpuinfo.exists() and " avx2 " in cpuinfo.read_text(encoding="utf-8")


def first_line(*command: str) -> str:
    """What a program says first; empty if it is not there."""
    try:
        said = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    except FileNotFoundError:
        return ""
    return next(iter(said.splitlines()), "")


def version_of(wheel: str) -> str:
    """Of an installed wheel; empty if it is not."""
    try:
        return importlib.metadata.version(wheel)
    except importlib.metadata.PackageNotFoundError:
        return ""


def differences(known: Mapping[str, str], now: Mapping[str, str]) -> Iterator[str]:
    """Every part of the environment that is another one than the baseline's."""
    for name in sorted({*known, *now}):
        if known.get(name) != now.get(name):
            yield f"{name} is {now.get(name) or 'absent'}, not {known.get(name) or 'absent'}"


def compare(counts: Mapping[str, int], baseline: Mapping[str, Any]) -> list[Verdict]:
    """Each path beside its baseline, in the baseline's own tolerance."""
    known, tolerance = baseline["instructions"], baseline["tolerance"]
    return [Verdict(name, counted, known.get(name), tolerance) for name, counted in counts.items()]


def show(verdicts: Sequence[Verdict]) -> None:
    """Prints a table."""
    table = Table(box=box.SIMPLE_HEAD)
    table.add_column("path")
    for title in ("instructions a turn", "baseline", "change"):
        table.add_column(title, justify="right")
    table.add_column("")
    for row in verdicts:
        change = "" if row.change is None else f"{row.change:+.2%}"
        known = "" if row.known is None else f"{row.known:,}"
        table.add_row(row.name, f"{row.counted:,}", known, change, row.word)
    Console().print(table)


def write(counts: Mapping[str, int], baseline: Path, tolerance: float) -> None:
    """Makes these counts the ones to compare with."""
    baseline.parent.mkdir(parents=True, exist_ok=True)
    content = {"tolerance": tolerance, "instructions": counts, "environment": here()}
    baseline.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


@click.command(help=__doc__)
@click.option("--write", "renew", is_flag=True, help="Make these counts the baseline.")
@click.option("--only", multiple=True, type=click.Choice(list(PATHS)), help="Count only this path.")
@click.option("--baseline", type=click.Path(path_type=Path), default=BASELINE, show_default=True)
@click.option("--tolerance", default=0.02, show_default=True, help="Written with a baseline.")
def main(renew: bool, only: tuple[str, ...], baseline: Path, tolerance: float) -> None:
    if renew:
        if only and baseline == BASELINE:
            raise click.UsageError("the baseline has all paths; --write goes without --only")
        known: dict[str, Any] = {}
    else:
        known = json.loads(baseline.read_text(encoding="utf-8"))
        if others := list(differences(known["environment"], here())):
            click.echo(f"not compared: {'; '.join(others)}")
            return
    try:
        counts = count(only, WORKER)
    except NotRun as reason:
        click.echo(f"not run: {reason}")
        return
    if renew:
        write(counts, baseline, tolerance)
        click.echo(f"written: {baseline}")
        return
    verdicts = compare(counts, known)
    show(verdicts)
    if failed := [row.name for row in verdicts if row.fails]:
        raise click.ClickException(
            f"{', '.join(failed)}: above the tolerance of {known['tolerance']:.0%}, or not in the "
            f"baseline. If that is meant, `{Path(__file__).name} --write` renews it"
        )


if __name__ == "__main__":
    main()
