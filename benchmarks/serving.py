# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""What does serving add, and how does it hold up when things go wrong?

    python benchmarks/serving.py [--json FILE]

Four questions; all but the first are asked over HTTP of `trtllm-serve` with tiny checkpoints:

- step: our Python in a step of eight requests, outside the model's layers (`engine_step.py`), and
  where it goes;
- burst: equal requests that arrive together against one that arrives alone: encoder runs,
  prefilled tokens, and time. `ratio` is the time of the burst over that of one request's first
  token plus a burst in which everything is found, which is the decodes and the HTTP of all;
- stuck: how long `/health` takes while the engine is stopped;
- killed: from SIGKILL of the engine to the next right answer.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click
import httpx
import psutil
import torch
from transformers.utils import logging as transformers_logging

if __package__ in (None, ""):  # run as a script
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.engine_step import PROFILE_ROWS, Cost, ProfileRow, measure
from benchmarks.reuse_hit_rate import machine, versions
from examples.demo_media import data_uri, write_picture
from examples.demo_server import LocalServer
from examples.tiny_checkpoints import build

STEP_BATCH, STEP_TOKENS = 8, 400
WORDS = "Look at the picture, take your time, and say what you see in it. " * 40
NEW_TOKENS = 16
BURST = 64
ROUNDS = 3
LOOKS = 100
LIMIT_SECONDS = 120


@dataclass(frozen=True)
class Burst:
    """Equal requests at once; times in seconds, the median round of each.

    Attributes:
        requests: How many.
        prompt_tokens: Of one.
        encoder_runs: For all of them, in the worst round.
        prefilled_tokens: For all of them, in the worst round.
        seconds: From the first sent to the last answered.
        first_token_seconds: One request that finds nothing, alone, to its first token.
        found_seconds: As many requests that find all.
        ratio: Of ``seconds`` to the other two together.
        wrong_answers: Answers that differ from that of the request alone.
    """

    requests: int
    prompt_tokens: int
    encoder_runs: int
    prefilled_tokens: int
    seconds: float
    first_token_seconds: float
    found_seconds: float
    ratio: float
    wrong_answers: int


@dataclass(frozen=True)
class Trouble:
    """An engine that is stopped or killed.

    Attributes:
        stuck_health_ms: Median time of ``/health`` while the engine is stopped.
        stuck_health_most_ms: The longest.
        recovery_seconds: From SIGKILL to the end of the next right answer.
    """

    stuck_health_ms: float
    stuck_health_most_ms: float
    recovery_seconds: float


@dataclass(frozen=True)
class Report:
    """All figures."""

    step: Cost
    step_profile: Sequence[ProfileRow]
    burst: Burst
    trouble: Trouble
    machine: dict[str, Any]
    versions: dict[str, str]


class Client:
    """Asks one server, with as many connections as there are simultaneous requests."""

    def __init__(self, url: str) -> None:
        limits = httpx.Limits(max_connections=BURST, max_keepalive_connections=BURST)
        self._http = httpx.Client(
            base_url=url, trust_env=False, timeout=LIMIT_SECONDS, limits=limits
        )
        self._threads = ThreadPoolExecutor(BURST)

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self._threads.shutdown()
        self._http.close()

    def ask(self, body: dict[str, Any]) -> dict[str, Any]:
        """The whole answer.

        Raises:
            SystemExit: If there is none.
        """
        response = self._http.post("/v1/chat/completions", json=body)
        if response.status_code != 200:
            sys.exit(f"a request was answered with {response.status_code}: {response.text}")
        return response.json()

    def ask_all(self, body: dict[str, Any], count: int) -> tuple[float, list[str]]:
        """Asks so many times at once; gives the seconds it took, and the texts."""
        began = time.perf_counter()
        answers = list(self._threads.map(self.ask, [body] * count))
        return time.perf_counter() - began, [text_of(answer) for answer in answers]

    def first_token(self, body: dict[str, Any]) -> float:
        """Seconds to the first token of a request; the rest of its answer is waited for."""
        began, first = time.perf_counter(), None
        with self._http.stream("POST", "/v1/chat/completions", json=body) as response:
            for line in response.iter_lines():
                if first is None and '"content"' in line:
                    first = time.perf_counter() - began
        if first is None:
            sys.exit("a stream ended without a token")
        return first

    def work(self) -> tuple[int, int]:
        """Encoder runs since the start, and prefilled tokens since the last call."""
        records = self._http.get("/metrics").json()
        if not records:
            return 0, 0
        runs = records[-1]["multimodalStats"]["encoderRuns"]
        tokens = sum(record["inflightBatchingStats"]["numCtxTokens"] for record in records)
        return sum(runs.values()), tokens

    def health(self) -> tuple[float, int]:
        """Seconds that ``/health`` takes, and its status."""
        began = time.perf_counter()
        status = self._http.get("/health").status_code
        return time.perf_counter() - began, status


def text_of(answer: dict[str, Any]) -> str:
    """The generated text."""
    return answer["choices"][0]["message"]["content"]


def chat(content: Any, **fields: Any) -> dict[str, Any]:
    """A greedy request for a fixed number of tokens."""
    return {
        "messages": [{"role": "user", "content": content}],
        "temperature": 0,
        "max_tokens": NEW_TOKENS,
        "ignore_eos": True,
        **fields,
    }


def measure_burst(checkpoint: Path, folder: Path) -> Burst:
    """Several rounds, each with a picture that was never seen."""

    def body(seed: int, **fields: Any) -> dict[str, Any]:
        picture = data_uri(write_picture(folder / "picture.png", seed), "image/png")
        part = {"type": "image_url", "image_url": {"url": picture}}
        return chat([part, {"type": "text", "text": WORDS}], **fields)

    cold, found, first, runs, tokens, wrong, length = [], [], [], [], [], 0, 0
    options = ["--max_batch_size", str(BURST), "--kv_cache_max_tokens", str(BURST * 2048)]
    with LocalServer([str(checkpoint), *options], folder / "burst.log") as server:
        server.wait_until_ready()
        with Client(server.url) as client:
            client.ask_all(body(0), BURST)  # the first calls pay for warming up
            for number in range(1, ROUNDS + 1):
                # The right answer is that of the same request alone, under a salt of its own.
                first.append(client.first_token(body(2 * number, stream=True)))
                alone = client.ask(body(2 * number + 1, cache_salt="alone"))
                length = alone["usage"]["prompt_tokens"]
                runs_before, _ = client.work()
                seconds, texts = client.ask_all(body(2 * number + 1), BURST)
                runs_after, prefilled = client.work()
                cold.append(seconds)
                runs.append(runs_after - runs_before)
                tokens.append(prefilled)
                wrong += sum(text != text_of(alone) for text in texts)
                found.append(client.ask_all(body(2 * number + 1), BURST)[0])
    together, lone, again = (statistics.median(times) for times in (cold, first, found))
    return Burst(
        requests=BURST,
        prompt_tokens=length,
        encoder_runs=max(runs),
        prefilled_tokens=max(tokens),
        seconds=round(together, 3),
        first_token_seconds=round(lone, 3),
        found_seconds=round(again, 3),
        ratio=round(together / (lone + again), 3),
        wrong_answers=wrong,
    )


def engine_of(server: LocalServer) -> psutil.Process:
    """The engine: what the server's host was forked to."""
    for host in psutil.Process(server.process.pid).children():
        if "engine_host" in " ".join(host.cmdline()):
            return host.children()[0]
    sys.exit("the server has no engine in a process of its own")


def measure_trouble(checkpoint: Path, folder: Path) -> Trouble:
    """Stops the engine for a while, then kills it."""
    with LocalServer([str(checkpoint)], folder / "trouble.log") as server:
        server.wait_until_ready()
        with Client(server.url) as client:
            right = text_of(client.ask(chat("Hello")))
            engine = engine_of(server)
            engine.suspend()
            try:
                looks = sorted(client.health()[0] for _ in range(LOOKS))
            finally:
                engine.resume()
            began = time.perf_counter()
            engine.kill()
            # Until its end is noticed the dead engine is still reported as healthy.
            while client.health()[1] == 200 and engine.is_running():
                time.sleep(0.001)
            while client.health()[1] != 200:
                time.sleep(0.005)
            answer = text_of(client.ask(chat("Hello")))
            recovery = time.perf_counter() - began
    if answer != right:
        sys.exit("the new engine answers otherwise than the old one")
    return Trouble(
        stuck_health_ms=round(1e3 * statistics.median(looks), 2),
        stuck_health_most_ms=round(1e3 * looks[-1], 2),
        recovery_seconds=round(recovery, 3),
    )


def measure_all(folder: Path) -> Report:
    """Builds the checkpoints and asks all questions."""
    text, media = build("llama", folder / "llama"), build("phi4mm", folder / "phi4mm")
    burst = measure_burst(media, folder)
    trouble = measure_trouble(text, folder)
    torch.set_num_threads(1)
    cost, rows = measure(text, STEP_BATCH, STEP_TOKENS)
    return Report(cost, rows[:PROFILE_ROWS], burst, trouble, machine(), versions())


def show(report: Report) -> None:
    """Prints what people look for."""
    step, burst, trouble = report.step, report.burst, report.trouble
    click.echo(f"step of {step.batch}: {step.ours_ms} ms are ours ({step.whole_ms} in all)")
    click.echo(
        f"{burst.requests} equal requests of {burst.prompt_tokens} tokens: {burst.encoder_runs} "
        f"encoder run, {burst.prefilled_tokens} tokens prefilled, {burst.seconds} s, that is "
        f"{burst.ratio} times one request and the decodes; {burst.wrong_answers} wrong answers"
    )
    click.echo(
        f"/health with a stuck engine: {trouble.stuck_health_ms} ms, at most "
        f"{trouble.stuck_health_most_ms}; back {trouble.recovery_seconds} s after SIGKILL"
    )


@click.command(help=__doc__)
@click.option("--json", "json_file", help="Write the figures to this file.")
def main(json_file: str | None) -> None:
    transformers_logging.disable_progress_bar()
    with tempfile.TemporaryDirectory() as folder:
        report = measure_all(Path(folder))
    show(report)
    if json_file is not None:
        text = json.dumps(asdict(report), indent=2)
        Path(json_file).write_text(text + "\n", encoding="utf-8")
    if report.burst.wrong_answers:
        raise click.ClickException("there are wrong answers")


if __name__ == "__main__":
    main()
