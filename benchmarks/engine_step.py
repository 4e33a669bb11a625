# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""How much of a step is ours, and how much of that hides behind the model?

    python benchmarks/engine_step.py [--json FILE] [--batch N]... [--tokens N]

Processor time of the engine's thread for each step in which all requests generate. It is taken
twice: with the tiny model, whose answers are compared with those of each request alone; and with
the decoder's layers left out, so that what remains is the engine: commands, scheduling, block
tables, laying out the batch, commit, sampling, statistics and telling the callers.

Beside it the time that a step takes by the clock, without and with the next step being prepared
while the current one computes (`disable_overlap_scheduler`). The two run in turns, and what counts
is the quickest turn of each, since other programs only ever make a turn slower.
"""

from __future__ import annotations

import cProfile
import json
import os
import platform
import pstats
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import click
import numpy as np
import torch
from transformers.utils import logging as transformers_logging

if __package__ in (None, ""):  # run as a script
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from examples.tiny_checkpoints import build
from tensorrt_llm.executor.request import GenerationRequest
from tensorrt_llm.executor.result import GenerationResult
from tensorrt_llm.executor.worker import GenerationExecutorWorker
from tensorrt_llm.inputs.data import ProcessedPrompt
from tensorrt_llm.llmapi.llm_args import LlmArgs
from tensorrt_llm.sampling_params import SamplingParams

PROMPT_TOKENS = 100
# As many bytes of pool as anybody's machine has.
POOL_TOKENS = 16_384
WARM_UP_STEPS = 20
PROFILE_ROWS = 20
# Many short turns: on a busy machine some of them run undisturbed.
TURNS = 20
TURN_TOKENS = 60
SEED = 7


@dataclass(frozen=True)
class Cost:
    """Milliseconds of processor time a step.

    Attributes:
        batch: Requests in a step.
        steps: Steps measured.
        whole_ms: With the tiny model.
        ours_ms: Without its layers.
        wall_ms: By the clock, with the tiny model.
        wall_overlap_ms: Likewise, where the next step is prepared beside it.
        prepared: Of the steps then, the part that ran as it was prepared.
    """

    batch: int
    steps: int
    whole_ms: float
    ours_ms: float
    wall_ms: float
    wall_overlap_ms: float
    prepared: float


@dataclass(frozen=True)
class ProfileRow:
    """One function of a step without layers.

    Attributes:
        function: Its file's name and its own.
        calls: A step.
        own_ms: Milliseconds a step in itself, under the profiler, which makes all of them slower.
    """

    function: str
    calls: float
    own_ms: float


class StepTime(NamedTuple):
    """Milliseconds a step: of the loop's thread on a processor, and by the clock."""

    processor_ms: float
    wall_ms: float


class StepClock:
    """Adds up the time of the engine's thread over the full steps, by processor and by clock."""

    def __init__(self, executor: GenerationExecutorWorker, batch: int) -> None:
        self._engine = executor._engine
        self._iterate = self._engine._iterate
        self._batch = batch
        self.steps = 0
        self.begun = 0.0
        self.clock_begun = self.clock_ended = 0.0
        self._engine._iterate = self._step  # type: ignore[method-assign]

    def _step(self) -> None:
        full = len(self._engine._live.generation) == self._batch
        self._iterate()
        if full:
            self.steps += 1
            # Looked at seldom: on some machines a look takes as long as a step.
            if self.steps == WARM_UP_STEPS:
                self.begun, self.clock_begun = time.thread_time(), time.perf_counter()
            self.clock_ended = time.perf_counter()

    def stop(self) -> StepTime:
        """Since the warm-up."""
        ended = self._engine.call(time.thread_time).result()
        self._engine._iterate = self._iterate  # type: ignore[method-assign]
        steps = self.steps - WARM_UP_STEPS
        return StepTime(
            1e3 * (ended - self.begun) / steps,
            1e3 * (self.clock_ended - self.clock_begun) / steps,
        )


def ask(executor: GenerationExecutorWorker, seed: int, count: int) -> GenerationResult:
    """Submits one greedy request."""
    ids = np.random.default_rng(seed).integers(5, 1200, PROMPT_TOKENS).astype(np.int32)
    sampling = SamplingParams(max_tokens=count, ignore_eos=True)
    return executor.submit(GenerationRequest(ProcessedPrompt(ids), sampling))


def run(
    executor: GenerationExecutorWorker, batch: int, count: int
) -> tuple[StepTime, list[list[int]]]:
    """Runs a batch; gives the time of a step and the answers."""
    clock = StepClock(executor, batch)
    results = [ask(executor, seed, count) for seed in range(batch)]
    answers = [result.result().outputs[0].token_ids for result in results]
    return clock.stop(), answers


def profile(executor: GenerationExecutorWorker, batch: int, count: int) -> list[ProfileRow]:
    """The functions that ran in the engine's thread, those that took longest first."""
    profiler = cProfile.Profile()
    executor._engine.call(profiler.enable).result()
    run(executor, batch, count)
    executor._engine.call(profiler.disable).result()
    stats: Any = pstats.Stats(profiler).get_stats_profile().func_profiles
    rows = [
        ProfileRow(
            f"{Path(entry.file_name).name}:{name}",
            round(int(str(entry.ncalls).split("/")[0]) / count, 1),
            round(1e3 * entry.tottime / count, 4),
        )
        for name, entry in stats.items()
    ]
    return sorted(rows, key=lambda row: -row.own_ms)


def measure(checkpoint: Path, batch: int, count: int) -> tuple[Cost, list[ProfileRow]]:
    """Measures with and without the model's layers, and profiles without.

    Raises:
        SystemExit: If an answer in the batch is not that of the request alone.
    """
    executor = start(checkpoint)
    try:
        whole, answers = run(executor, batch, count)
        executor.reset_reuse_state()
        alone = [ask(executor, seed, count).result().outputs[0].token_ids for seed in range(batch)]
        if answers != alone:
            sys.exit("an answer in the batch differs from that of the request alone")
        leave_out_layers(executor)
        executor.reset_reuse_state()
        ours, _ = run(executor, batch, count)
        rows = profile(executor, batch, count)
    finally:
        executor.shutdown()
    wall, overlap, prepared = in_turns(checkpoint, batch, count, answers)
    cost = Cost(
        batch=batch,
        steps=count - 1 - WARM_UP_STEPS,
        whole_ms=round(whole.processor_ms, 3),
        ours_ms=round(ours.processor_ms, 3),
        wall_ms=round(wall, 3),
        wall_overlap_ms=round(overlap, 3),
        prepared=round(prepared, 3),
    )
    return cost, rows


def start(checkpoint: Path, *, overlap: bool = False) -> GenerationExecutorWorker:
    """An engine on the CPU."""
    args = LlmArgs(
        model=str(checkpoint),
        kv_cache_config={"max_tokens": POOL_TOKENS},
        device="cpu",
        disable_overlap_scheduler=not overlap,
    )
    return GenerationExecutorWorker(args, None)


def in_turns(
    checkpoint: Path, batch: int, count: int, expected: list[list[int]]
) -> tuple[float, float, float]:
    """Milliseconds by the clock of a step without and with the next one being prepared beside it.

    Returns:
        Both, of the quickest turn, and which part of the steps ran as they were prepared.

    Raises:
        SystemExit: If an answer is not the expected one.
    """
    plain, ahead = start(checkpoint), start(checkpoint, overlap=True)
    count = min(count, TURN_TOKENS)
    quickest = [float("inf")] * 2
    try:
        for _ in range(TURNS):
            for place, executor in enumerate((plain, ahead)):
                executor.reset_reuse_state()
                taken, answers = run(executor, batch, count)
                if answers != [tokens[:count] for tokens in expected]:
                    sys.exit("an answer differs where the next step is prepared beside the last")
                quickest[place] = min(quickest[place], taken.wall_ms)
        steps: Any = ahead._engine._ahead
        return quickest[0], quickest[1], steps.num_used / steps.num_steps
    finally:
        plain.shutdown()
        ahead.shutdown()


def leave_out_layers(executor: GenerationExecutorWorker) -> None:
    """Makes the decoder give its input, and the head a fixed choice."""
    model: Any = executor._engine._engine.model
    logits = torch.zeros(1, model.vocab_size)
    model.forward = lambda embeds, *_: embeds
    model.logits = lambda hidden: logits.expand(len(hidden), -1)


@click.command(help=__doc__)
@click.option("--json", "json_file", help="Write the figures to this file.")
@click.option(
    "--batch", default=[1, 8], multiple=True, show_default=True, help="Requests in a step."
)
@click.option("--tokens", default=400, show_default=True, help="Tokens of each answer.")
def main(json_file: str | None, batch: tuple[int, ...], tokens: int) -> None:
    transformers_logging.disable_progress_bar()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        checkpoint = Path(folder) / "llama"
        build("llama", checkpoint, 0)
        measured = [measure(checkpoint, requests, tokens) for requests in batch]
    for cost, _ in measured:
        click.echo(
            f"batch {cost.batch}: {cost.ours_ms} ms of {cost.whole_ms} ms a step are ours; by the "
            f"clock {cost.wall_ms} ms, with the next step prepared beside it "
            f"{cost.wall_overlap_ms} ms ({cost.prepared:.0%} of the steps)"
        )
    if json_file is not None:
        report = {
            "steps": [
                {**asdict(cost), "profile": list(map(asdict, rows[:PROFILE_ROWS]))}
                for cost, rows in measured
            ],
            "turns": TURNS,
            "machine": platform.processor() or platform.machine(),
            "processors": os.cpu_count(),
            "load_average": os.getloadavg()[0],
            "python": platform.python_version(),
            "torch": torch.__version__,
        }
        Path(json_file).write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
