# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""How many requests a second does the KV cache manager serve?

    python benchmarks/kv_cache_manager.py [--pool N]... [--seconds S] [--passes N] [--json FILE]

Requests are those of ``shared_prefix.py``. Timed is what the engine's loop does with one through
Python: match and allocate, commit, free, key hashing and the media's description included; making
the tokens is not. With events on they are recorded and nobody asks for them; in the rows with a
reader every batch's events are taken as JSON, which is when blocks are named. One thread; requests
come in batches of 16, for one row in single calls. Pools are full, so that every new block evicts
one, or half full. Each answer is checked in the same run. The figure is the best hundredth of the
time, and of several passes over all rows: on a shared machine the others are noise.

Rivals get the same requests, one by one as their engines take them, where ``make peers`` has made
their environments, and are "not run" otherwise. Rounds of ours and of theirs take turns, so that a
ratio compares figures of the same minutes.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click
import numpy as np

if __package__ in (None, ""):  # run as a script
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.rivals import ROOT, ROUNDS, Rival, RivalFailed, interpreter
from benchmarks.shared_prefix import (
    IMAGE_POSITION,
    IMAGE_ROWS,
    OWN_BLOCKS,
    PROMPT_BLOCKS,
    PROMPT_LENGTH,
    SHARED_TOKENS,
    TOKENS_PER_BLOCK,
    BestHundredth,
    Prompts,
)
from tensorrt_llm.bindings import KVCacheManager, MediaBatch, MediaRuns, ReuseScope

BATCH = 16
EVENTS = 256  # kept; the older ones are dropped, as where nobody fetches them
RIVALS = ("vLLM", "SGLang")
RIVAL_POOL = 100_000
BOUNDARY_ROUNDS = 5


@dataclass(frozen=True)
class Row:
    """One pool; ``ns_per_block`` is over all blocks of a request."""

    pool_blocks: int
    events: bool
    evicting: bool
    requests_per_s: float
    ns_per_block: float
    batch: int
    reader: bool


class Workload:
    """A manager and requests for it."""

    def __init__(self, pool_blocks: int, events: bool, batch: int, reader: bool) -> None:
        self.manager = KVCacheManager(
            pool_blocks, TOKENS_PER_BLOCK, event_buffer_max_size=EVENTS if events else 0
        )
        self.events = events
        self.reader = reader
        self.batch = batch
        self.prompts = Prompts()
        self.ids = np.arange(batch, dtype=np.int64)
        self.offsets = np.arange(batch + 1, dtype=np.int64)
        self.token_offsets = self.offsets * PROMPT_LENGTH
        self.ones = np.ones(batch, np.int64)
        # One image each; only whose it is changes.
        self.media = (
            np.ones(batch, np.bool_),
            np.zeros(batch, np.int32),
            self.ones * IMAGE_POSITION,
            self.ones * IMAGE_ROWS,
            self.ones * IMAGE_ROWS,
        )
        self.written = np.full(batch, PROMPT_LENGTH, np.int64)
        self.scopes = [ReuseScope()] * batch
        self.full = False

    def fill(self, evicting: bool) -> None:
        """Brings the pool to where the timing starts."""
        self.full = False
        self.manager.reset_reuse_state()
        target = self.manager.num_blocks - OWN_BLOCKS if evicting else self.manager.num_blocks // 2
        while self.manager.stats().cached_num_blocks < target:
            self.run()
        self.full = True

    def run(self) -> float:
        """Seconds for one batch."""
        chosen, tokens = self.prompts.draw(self.batch)
        flat = tokens.reshape(-1)
        digests = self.prompts.digests[chosen]
        clock, manager, ones = time.perf_counter, self.manager, self.ones
        start = clock()
        media = MediaBatch(MediaRuns(digests, *self.media), self.offsets, self.offsets)
        cached = manager.add_sequence_batch(
            self.ids, flat, self.token_offsets, media, self.scopes, ones
        )
        manager.commit_batch(self.ids, self.written)
        manager.free_batch(self.ids)
        if self.events:
            manager.flush_events()
        if self.reader:
            manager.take_events(EVENTS)
        seconds = clock() - start
        right = cached == SHARED_TOKENS
        if not (right if self.full else right | (cached == 0)).all():
            raise RuntimeError(f"cached tokens {cached.tolist()}, expected {SHARED_TOKENS}")
        return seconds


def measure(
    pool_blocks: int, events: bool, evicting: bool, seconds: float, batch: int, reader: bool
) -> Row:
    """Times one pool."""
    workload = Workload(pool_blocks, events, batch, reader)
    workload.fill(evicting)
    evicted = workload.manager.stats().evicted_blocks
    before_full = max(1, pool_blocks // 4 // (batch * OWN_BLOCKS))
    timer = BestHundredth(seconds)
    while timer.running:
        timer.add(workload.run())
        if not evicting and timer.turns % before_full == 0:
            workload.fill(evicting)
    evicted = workload.manager.stats().evicted_blocks - evicted
    requests = timer.turns * batch
    expected = requests * OWN_BLOCKS if evicting else 0
    # The pool may have had room for less than one more request at the start.
    if not expected - OWN_BLOCKS <= evicted <= expected:
        raise RuntimeError(f"{evicted} blocks evicted by {requests} requests")
    per_request = timer.best / batch
    return Row(
        pool_blocks,
        events,
        evicting,
        round(1 / per_request),
        round(per_request * 1e9 / PROMPT_BLOCKS, 1),
        batch,
        reader,
    )


@dataclass(frozen=True)
class Boundary:
    """The same work without Python beside ours; ``share`` is what Python adds to the time."""

    cpp_requests_per_s: int
    python_requests_per_s: int
    share: float


def cpp_benchmark() -> Path:
    """The program that does the same work without Python, built if need be.

    Raises:
        OSError: If there is no cmake.
        subprocess.CalledProcessError: If it cannot be built.
    """
    build = ROOT / "build" / "cpp-benchmarks"
    options = ["-DCMAKE_BUILD_TYPE=Release", "-DTRTLLM_BUILD_PYTHON=OFF"]
    options += ["-DTRTLLM_BUILD_BENCHMARKS=ON", f"-DPython_EXECUTABLE={sys.executable}"]
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    environment = {**os.environ, "PATH": path}
    for command in (
        ["cmake", "-S", str(ROOT), "-B", str(build), "-G", "Ninja", *options],
        ["cmake", "--build", str(build), "--parallel", "2"],
    ):
        subprocess.run(command, env=environment, check=True, capture_output=True)
    return build / "benchmarks" / "cpp" / "kvCacheManagerBenchmark"


def boundary(pool_blocks: int, seconds: float) -> Boundary | None:
    """What Python costs, or None where the C++ benchmark cannot be run. Rounds take turns."""
    try:
        command = [str(cpp_benchmark()), "--blocks", str(pool_blocks), "--batch", str(BATCH)]
        command += ["--seconds", str(seconds)]
        workload = Workload(pool_blocks, events=False, batch=BATCH, reader=False)
        workload.fill(evicting=True)
        timer = BestHundredth(seconds)
        fastest = 0
        for _ in range(BOUNDARY_ROUNDS):
            # Both figures are the best of equally long parts.
            timer.add_round(workload.run, 1)
            said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
            fastest = max(fastest, int(json.loads(said)["requests_per_s"]))
    except (OSError, subprocess.CalledProcessError) as error:
        click.echo(f"C++ benchmark not run: {error}", err=True)
        return None
    rate = round(BATCH / timer.best)
    return Boundary(fastest, rate, round(1 - rate / fastest, 3))


def rivals(seconds: float) -> list[dict[str, Any]]:
    """Each rival's figures and ours between them; a row without where a rival did not run."""
    found: list[dict[str, Any]] = []
    for name in RIVALS:
        none = {"name": name, "version": None, "requests_per_s": None}
        python = interpreter(name)
        if python is None:
            found.append({**none, "what": "not run: its environment is absent (make peers)"})
            continue
        try:
            found += beside(name, python, seconds)
        except RivalFailed as failure:
            found.append({**none, "what": f"not run: {failure}"})
    return found


def beside(name: str, python: Path, seconds: float) -> list[dict[str, Any]]:
    """One rival's figures; rounds of ours and rounds of the rival take turns."""
    timers = {events: BestHundredth(seconds) for events in ("off", "on", "read")}
    ours = {
        events: Workload(RIVAL_POOL, events != "off", BATCH, events == "read") for events in timers
    }
    for workload in ours.values():
        workload.fill(evicting=True)
    options = ["--blocks", str(RIVAL_POOL), "--seconds", str(seconds)]
    with Rival(python, f"benchmarks.rival_{name.lower()}", *options) as rival:
        for _ in range(ROUNDS):
            for events, timer in timers.items():
                timer.add_round(ours[events].run, ROUNDS)
            rival.round()
    rows = []
    for row in rival.told["rows"]:
        rate = round(BATCH / timers[row["events"]].best)
        ratio = round(rate / row["requests_per_s"], 2)
        version = rival.told["version"]
        rows.append({"name": name, "version": version, **row, "ours": rate, "ratio": ratio})
    return rows


def machine() -> dict[str, Any]:
    """What the figures were taken on."""
    model = ""
    if Path("/proc/cpuinfo").exists():
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        model = next((line.split(": ", 1)[1] for line in lines if "model name" in line), "")
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else None
    return {
        "cpu": model,
        "cores": os.cpu_count(),
        "system": f"{platform.system()} {platform.release()}",
        "load_average": load,
    }


def say(row: Row) -> None:
    """One line for people."""
    state = "evicting" if row.evicting else "half full"
    events = "read" if row.reader else "on" if row.events else "off"
    click.echo(
        f"{row.pool_blocks:>11,} blocks  {state:>9}  events {events:>4}  batch {row.batch:>2}  "
        f"{row.requests_per_s:>9,.0f} requests/s  {row.ns_per_block:>6} ns a block",
        err=True,
    )


def say_rival(row: dict[str, Any]) -> None:
    """One line for people."""
    line = f"{row['name']:>6} {row['version'] or ''}  "
    if row["requests_per_s"] is not None:
        line += f"events {row['events']:>4}  {row['requests_per_s']:>9,.0f} requests/s  "
        line += f"ours {row['ours']:>9,.0f}  {row['ratio']:>6.1f}x  "
    click.echo(line + row["what"], err=True)


@click.command()
@click.option("--pool", "pools", type=int, multiple=True, default=(10_000, 100_000, 1_000_000))
@click.option("--seconds", default=2.0, help="Timed seconds a row.")
@click.option("--passes", default=1, help="How often all rows are measured; the best counts.")
@click.option("--json", "json_file", type=click.Path(path_type=Path), help="Where to write.")
def main(pools: tuple[int, ...], seconds: float, passes: int, json_file: Path | None) -> None:
    """Times the manager at several pool sizes."""
    both = (True, False)
    jobs = [
        (pool, on, evicting, BATCH, False)
        for pool in pools
        for evicting in both
        for on in (False, True)
    ]
    jobs += [(100_000, True, True, BATCH, True), (100_000, False, True, 1, False)]
    best: dict[tuple[int, bool, bool, int, bool], Row] = {}
    for _ in range(passes):
        for job in jobs:
            pool, events, evicting, batch, reader = job
            row = measure(pool, events, evicting, seconds, batch, reader)
            say(row)
            best[job] = max(row, best.get(job, row), key=lambda found: found.requests_per_s)
    others = rivals(seconds)
    for rival in others:
        say_rival(rival)
    without_python = boundary(100_000, seconds)
    click.echo(f"boundary: {without_python}", err=True)
    result = {
        "rows": [asdict(row) for row in best.values()],
        "passes": passes,
        "rivals": others,
        "cpp_requests_per_s": without_python and without_python.cpp_requests_per_s,
        "boundary": without_python and asdict(without_python),
        "machine": machine(),
        "versions": {
            "python": platform.python_version(),
            "numpy": np.__version__,
            "tensorrt-llm-independent": importlib.metadata.version("tensorrt-llm-independent"),
        },
    }
    click.echo(json.dumps(result, indent=2), file=json_file.open("w") if json_file else None)


if __name__ == "__main__":
    main()
