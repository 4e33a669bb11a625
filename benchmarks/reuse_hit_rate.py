# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""How much of the traffic is answered from the cache, and is every answer right?

    python benchmarks/reuse_hit_rate.py [--json FILE] [--model FOLDER] [--scale N]

Plays four workloads through the ``LLM`` API, request by request, once with block reuse and once
without. For each it reports the prompt tokens found in the cache, the most that could have been
found (brute force over all earlier requests, ``prefix_model.py``), encoder runs, and *wrong hits*:
requests whose answer differs from the one without reuse. Time to first token counts from the call
on, loading and preprocessing of media included, and is given for those requests that found
something: warm with reuse, cold without.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click
import numpy as np
from rich import box
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.table import Table
from transformers.utils import logging as transformers_logging

if __package__ in (None, ""):  # run as a script
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.prefix_model import PrefixModel, scope_of, token_keys
from benchmarks.workloads import WORKLOADS, Request
from tensorrt_llm import LLM, KvCacheConfig, SamplingParams
from tensorrt_llm.inputs.data import ProcessedPrompt

NEW_TOKENS = 8
SEED = 20_261


@dataclass(frozen=True, eq=False)
class Played:
    """One request after it was answered."""

    prompt: ProcessedPrompt
    token_ids: list[int]
    cached_tokens: int
    ttft_ms: float


@dataclass(frozen=True)
class Row:
    """One workload's figures; times in milliseconds, the median over requests."""

    name: str
    requests: int
    prompt_tokens: int
    cached_tokens: int
    max_cached_tokens: int
    wrong_hits: int
    encoder_runs: int
    encoder_runs_without_reuse: int
    ttft_cold_ms: float | None
    ttft_warm_ms: float | None


def play(
    model: str, requests: Sequence[Request], block_reuse: bool, advance: Callable[[], None]
) -> tuple[list[Played], int]:
    """Runs the requests one after the other on a fresh engine; gives also its encoder runs."""
    # Without reuse nothing at all is kept between requests, encoder rows included.
    keep = {} if block_reuse else {"encoder_cache_max_bytes": 0}
    sampling = SamplingParams(max_tokens=NEW_TOKENS, ignore_eos=True)
    played = []
    with LLM(
        model,
        kv_cache_config=KvCacheConfig(enable_block_reuse=block_reuse),
        multimodal_config=keep,
        enable_chunked_prefill=True,
    ) as llm:
        llm.generate([1, 2, 3], sampling, use_tqdm=False)  # the first call pays for warming up
        for request in requests:
            called = time.monotonic()
            ready = llm.preprocess(request.inputs, sampling)
            result = llm.generate(ready, sampling, use_tqdm=False, cache_salt=request.cache_salt)
            assert not isinstance(result, list)
            first_token = result.times.first_token
            assert first_token is not None
            played.append(
                Played(
                    prompt=ready.prompt,
                    token_ids=result.outputs[0].token_ids,
                    cached_tokens=result.cached_tokens,
                    ttft_ms=1e3 * (first_token - called),
                )
            )
            advance()
        encoder_runs = llm.snapshot()["multimodalStats"]["encoderRuns"]
    return played, sum(encoder_runs.values())


def most_cached(requests: Sequence[Request], played: Sequence[Played], block: int) -> list[int]:
    """The most that each request could have found, by brute force."""
    model, most = PrefixModel(block), []
    for request, one in zip(requests, played, strict=True):
        scope = scope_of(one.prompt, request.cache_salt)
        most.append(model.longest(token_keys(one.prompt, request.names), scope))
        # The last generated token is never written.
        model.write(token_keys(one.prompt, request.names, one.token_ids[:-1]), scope)
    return most


def measure(name: str, model: str, requests: Sequence[Request], advance: Callable[[], None]) -> Row:
    """Plays one workload with and without reuse."""
    plain, plain_runs = play(model, requests, False, advance)
    reused, reused_runs = play(model, requests, True, advance)
    pairs = list(zip(reused, plain, strict=True))
    hits = [(with_reuse, without) for with_reuse, without in pairs if with_reuse.cached_tokens]
    return Row(
        name=name,
        requests=len(requests),
        prompt_tokens=sum(len(one.prompt) for one in reused),
        cached_tokens=sum(one.cached_tokens for one in reused),
        max_cached_tokens=sum(most_cached(requests, reused, KvCacheConfig().tokens_per_block)),
        wrong_hits=sum(a.token_ids != b.token_ids for a, b in pairs),
        encoder_runs=reused_runs,
        encoder_runs_without_reuse=plain_runs,
        ttft_cold_ms=_median([without.ttft_ms for _, without in hits]),
        ttft_warm_ms=_median([with_reuse.ttft_ms for with_reuse, _ in hits]),
    )


def _median(values: Sequence[float]) -> float | None:
    return round(statistics.median(values), 3) if values else None


def machine() -> dict[str, Any]:
    """What the figures were taken on."""
    cpu = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.is_file():
        models = [line for line in info.read_text().splitlines() if line.startswith("model name")]
        cpu = models[0].split(":", 1)[1].strip() if models else cpu
    import psutil
    import torch

    return {
        "cpu": cpu,
        "cores": psutil.cpu_count(),
        "memory_gib": round(psutil.virtual_memory().total / 2**30, 1),
        "gpu": torch.cuda.get_device_name() if torch.cuda.is_available() else None,
        "system": platform.platform(),
    }


def versions() -> dict[str, str]:
    """Versions that decide the figures."""
    names = ("tensorrt-llm-independent", "torch", "transformers", "numpy", "tokenizers", "blake3")
    return {"python": platform.python_version()} | {
        name: importlib.metadata.version(name) for name in names
    }


def show(rows: Sequence[Row], console: Console) -> None:
    """Prints the table."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("workload", no_wrap=True)
    for column in ("requests", "prompt", "reused", "possible", "hit rate", "encodes saved"):
        table.add_column(column, justify="right")
    for column in ("cold ms", "warm ms", "wrong hits"):
        table.add_column(column, justify="right")
    for row in rows:
        saved = row.encoder_runs_without_reuse - row.encoder_runs
        table.add_row(
            row.name,
            str(row.requests),
            str(row.prompt_tokens),
            str(row.cached_tokens),
            str(row.max_cached_tokens),
            f"{row.cached_tokens / row.prompt_tokens:.1%}",
            f"{saved} of {row.encoder_runs_without_reuse}",
            "-" if row.ttft_cold_ms is None else f"{row.ttft_cold_ms:.1f}",
            "-" if row.ttft_warm_ms is None else f"{row.ttft_warm_ms:.1f}",
            str(row.wrong_hits),
        )
    console.print(table)


def build_tiny(out: Path) -> str:
    """Writes the tiny Phi-4-multimodal checkpoint."""
    script = Path(__file__).resolve().parents[1] / "examples" / "tiny_checkpoints.py"
    spec = importlib.util.spec_from_file_location(script.stem, script)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.build("phi4mm", out, 0)
    return str(out)


@click.command(help=__doc__.split("\n\n")[0])
@click.option(
    "--json",
    "json_file",
    type=click.Path(dir_okay=False, writable=True),
    help="Write the figures to FILE.",
)
@click.option(
    "--model",
    type=click.Path(exists=True, file_okay=False),
    help="Phi-4-multimodal checkpoint; a tiny one is made by default.",
)
@click.option(
    "--scale",
    type=click.IntRange(1, 100),
    default=1,
    show_default=True,
    help="Times as many requests.",
)
def main(json_file: str | None, model: str | None, scale: int) -> None:
    # Where the output is no terminal it has no width; the table needs about this much.
    console = Console(width=None if sys.stdout.isatty() else 120)
    transformers_logging.disable_progress_bar()
    planned = {name: make(np.random.default_rng(SEED), scale) for name, make in WORKLOADS.items()}
    total = 2 * sum(len(requests) for requests in planned.values())
    rows = []
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with (
        tempfile.TemporaryDirectory() as folder,
        Progress(*columns, console=Console(stderr=True)) as progress,
    ):
        model = model or build_tiny(Path(folder) / "phi4mm")
        task = progress.add_task("", total=total)
        for name, requests in planned.items():
            progress.update(task, description=f"{name:20}")
            rows.append(measure(name, model, requests, lambda: progress.advance(task)))
    show(rows, console)
    if json_file is not None:
        report = {
            "workloads": [asdict(row) for row in rows],
            "machine": machine(),
            "versions": versions(),
        }
        Path(json_file).write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    if any(row.wrong_hits for row in rows):
        raise click.ClickException("there are wrong hits")


if __name__ == "__main__":
    main()
