# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""How much of the traffic is answered from the cache, and is every answer right?

Plays four workloads through the ``LLM`` API, request by request, once with block reuse and once
without, each time with nothing cached. For each it reports the prompt tokens found in the cache,
the most that could have been found (brute force over all earlier requests, ``prefix_model.py``),
encoder runs, and *wrong hits*: requests whose answer differs from the one without reuse. Time to
first token counts from the call on, loading and preprocessing of media included, and is given for
those requests that found something: warm with reuse, cold without.
"""

from __future__ import annotations

import importlib.metadata
import platform
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm  # type: ignore[import-untyped]

from tensorrt_llm.bench.prefix_model import PrefixModel, scope_of, token_keys
from tensorrt_llm.bench.workloads import WORKLOADS, Request
from tensorrt_llm.errors import ConfigurationError
from tensorrt_llm.inputs.data import ProcessedPrompt
from tensorrt_llm.llmapi.llm import LLM
from tensorrt_llm.llmapi.llm_args import KvCacheConfig
from tensorrt_llm.sampling_params import SamplingParams

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


def engine(model: str, block_reuse: bool) -> LLM:
    """An engine that keeps what it computed, or one that keeps nothing between requests.

    Raises:
        ConfigurationError: If the checkpoint cannot be served, or takes no images or no sounds.
    """
    keep = {} if block_reuse else {"encoder_cache_max_bytes": 0}
    llm = LLM(
        model,
        kv_cache_config=KvCacheConfig(enable_block_reuse=block_reuse),
        multimodal_config=keep,
        enable_chunked_prefill=True,
    )
    lacking = {"image", "audio"}.difference(llm.preprocessor.modalities)
    if lacking:
        llm.shutdown()
        raise ConfigurationError(
            f"the workloads are those of Phi-4-multimodal; {model!r} takes no "
            f"{' and no '.join(sorted(lacking))}"
        )
    return llm


def encoder_runs(llm: LLM) -> int:
    """How many items the engine has encoded."""
    return sum(llm.snapshot()["multimodalStats"]["encoderRuns"].values())


def play(
    llm: LLM, requests: Sequence[Request], advance: Callable[[], None]
) -> tuple[list[Played], int]:
    """Runs the requests one after the other, with nothing cached; gives also the encoder runs."""
    sampling = SamplingParams(max_tokens=NEW_TOKENS, ignore_eos=True)
    llm.generate([1, 2, 3], sampling, use_tqdm=False)  # the first call pays for warming up
    llm.flush()
    runs_before = encoder_runs(llm)
    played = []
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
    return played, encoder_runs(llm) - runs_before


def most_cached(requests: Sequence[Request], played: Sequence[Played], block: int) -> list[int]:
    """The most that each request could have found, by brute force."""
    model, most = PrefixModel(block), []
    for request, one in zip(requests, played, strict=True):
        scope = scope_of(one.prompt, request.cache_salt)
        most.append(model.longest(token_keys(one.prompt, request.names), scope))
        # The last generated token is never written.
        model.write(token_keys(one.prompt, request.names, one.token_ids[:-1]), scope)
    return most


def measure(
    name: str,
    reusing: LLM,
    plain_llm: LLM,
    requests: Sequence[Request],
    advance: Callable[[], None],
) -> Row:
    """Plays one workload with and without reuse."""
    plain, plain_runs = play(plain_llm, requests, advance)
    reused, reused_runs = play(reusing, requests, advance)
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


_COLUMNS = (
    *("workload", "requests", "prompt", "reused", "possible", "hit rate", "encodes saved"),
    *("cold ms", "warm ms", "wrong hits"),
)


def table_of(rows: Sequence[Row]) -> str:
    """The figures as a table of text."""
    lines: list[tuple[str, ...]] = [_COLUMNS]
    for row in rows:
        saved = row.encoder_runs_without_reuse - row.encoder_runs
        lines.append(
            (
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
        )
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    shown = []
    for name, *figures in lines:
        cells = [figure.rjust(width) for figure, width in zip(figures, widths[1:], strict=True)]
        shown.append("  ".join((name.ljust(widths[0]), *cells)))
    shown.insert(1, "-" * len(shown[0]))
    return "\n".join(shown)


def run(model: str, scale: int) -> list[Row]:
    """Plays all workloads.

    Args:
        model: Folder of a Phi-4-multimodal checkpoint.
        scale: Times as many requests.

    Raises:
        ConfigurationError: If the checkpoint cannot be served, or takes no images or no sounds.
    """
    planned = {name: make(np.random.default_rng(SEED), scale) for name, make in WORKLOADS.items()}
    rows = []
    with (
        engine(model, block_reuse=True) as reusing,
        engine(model, block_reuse=False) as plain,
        tqdm(total=2 * sum(map(len, planned.values()))) as bar,
    ):
        for name, requests in planned.items():
            bar.set_description(name)
            rows.append(measure(name, reusing, plain, requests, lambda: bar.update()))
    return rows


def report(rows: Sequence[Row]) -> dict[str, Any]:
    """The figures with what they were taken on, as plain data."""
    return {
        "workloads": [asdict(row) for row in rows],
        "machine": machine(),
        "versions": versions(),
    }
