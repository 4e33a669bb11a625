# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""How much of a step is ours?

    python benchmarks/engine_step.py [--json FILE] [--batch N] [--tokens N]

Processor time of the engine's thread for each step in which all requests generate. It is taken
twice: with the tiny model, whose answers are compared with those of each request alone; and with
the decoder's layers left out, so that what remains is the engine: commands, scheduling, block
tables, laying out the batch, commit, sampling, statistics and telling the callers.
"""

from __future__ import annotations

import json
import platform
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

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
SEED = 7


@dataclass(frozen=True)
class Cost:
    """Milliseconds of processor time a step.

    Attributes:
        batch: Requests in a step.
        steps: Steps measured.
        whole_ms: With the tiny model.
        ours_ms: Without its layers.
    """

    batch: int
    steps: int
    whole_ms: float
    ours_ms: float


class StepClock:
    """Adds up the processor time of the engine's thread over the full steps."""

    def __init__(self, executor: GenerationExecutorWorker, batch: int) -> None:
        self._engine = executor._engine
        self._iterate = self._engine._iterate
        self._batch = batch
        self.steps = 0
        self.begun = self.ended = 0.0
        self._engine._iterate = self._step  # type: ignore[method-assign]

    def _step(self) -> None:
        full = len(self._engine._live.generation) == self._batch
        self._iterate()
        if full:
            self.steps += 1
            # Looked at seldom: on some machines a look takes as long as a step.
            if self.steps == WARM_UP_STEPS:
                self.begun = time.thread_time()

    def stop(self) -> float:
        """Milliseconds a step since the warm-up."""
        self.ended = self._engine.call(time.thread_time).result()
        return 1e3 * (self.ended - self.begun) / (self.steps - WARM_UP_STEPS)


def ask(executor: GenerationExecutorWorker, seed: int, count: int) -> GenerationResult:
    """Submits one greedy request."""
    ids = np.random.default_rng(seed).integers(5, 1200, PROMPT_TOKENS).astype(np.int32)
    sampling = SamplingParams(max_tokens=count, ignore_eos=True)
    return executor.submit(GenerationRequest(ProcessedPrompt(ids), sampling))


def run(
    executor: GenerationExecutorWorker, batch: int, count: int
) -> tuple[float, list[list[int]]]:
    """Runs a batch; gives milliseconds a step and the answers."""
    clock = StepClock(executor, batch)
    results = [ask(executor, seed, count) for seed in range(batch)]
    answers = [result.result().outputs[0].token_ids for result in results]
    return clock.stop(), answers


def measure(checkpoint: Path, batch: int, count: int) -> Cost:
    """Measures with and without the model's layers.

    Raises:
        SystemExit: If an answer in the batch is not that of the request alone.
    """
    args = LlmArgs(model=str(checkpoint), kv_cache_config={"max_tokens": POOL_TOKENS}, device="cpu")
    executor = GenerationExecutorWorker(args, None)
    try:
        whole, answers = run(executor, batch, count)
        executor.reset_reuse_state()
        alone = [ask(executor, seed, count).result().outputs[0].token_ids for seed in range(batch)]
        if answers != alone:
            sys.exit("an answer in the batch differs from that of the request alone")
        leave_out_layers(executor)
        executor.reset_reuse_state()
        ours, _ = run(executor, batch, count)
    finally:
        executor.shutdown()
    return Cost(batch, count - 1 - WARM_UP_STEPS, round(whole, 3), round(ours, 3))


def leave_out_layers(executor: GenerationExecutorWorker) -> None:
    """Makes the decoder give its input, and the head a fixed choice."""
    model: Any = executor._engine._engine.model
    logits = torch.zeros(1, model.vocab_size)
    model.forward = lambda embeds, positions, metadata: embeds
    model.logits = lambda hidden: logits.expand(len(hidden), -1)


@click.command(help=__doc__)
@click.option("--json", "json_file", help="Write the figures to this file.")
@click.option("--batch", default=8, show_default=True, help="Requests in a step.")
@click.option("--tokens", default=400, show_default=True, help="Tokens of each answer.")
def main(json_file: str | None, batch: int, tokens: int) -> None:
    transformers_logging.disable_progress_bar()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        checkpoint = Path(folder) / "llama"
        build("llama", checkpoint, 0)
        cost = measure(checkpoint, batch, tokens)
    click.echo(f"batch {cost.batch}: {cost.ours_ms} ms of {cost.whole_ms} ms a step are ours")
    if json_file is not None:
        versions = {"python": platform.python_version(), "torch": torch.__version__}
        report = {**asdict(cost), "machine": platform.processor() or platform.machine(), **versions}
        Path(json_file).write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
