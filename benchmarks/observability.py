# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""What does it cost to be watched?

    python benchmarks/observability.py [--json FILE] [--pairs N] [--model MODEL] [--each]

Two real servers a row, with equal options but for what is watched; one of the two is stopped
(SIGSTOP) while the other serves the same requests, in short slices that take turns. Requests are
streamed chats over HTTP, some with pictures and clips, most of which were seen before.

- all on: metrics scraped, the log at ``info``, traces to a collector, cache events to a reader over
  ZeroMQ, and the page open; against a server that counts nothing (`uncounted_server.py`), logs
  warnings only, and has none of the rest.
- stopped reader: all on with a second reader of events that reads one message and then no more;
  against the same without that reader. Messages of both are long (a topic of 50 kB), so that the
  kernel holds few of them. That messages were dropped for the stopped reader is checked.
- unread buffer: cache events for ``POST /kv_cache_events``, which nobody calls; against all off.
- with ``--each``, every part alone against all off.

``requests_per_s`` is the ratio of rates, ``cpu`` that of the processor time of all processes of the
server for a request, without those of who watches; both are medians over pairs of slices, with the
middle half of the pairs. On a machine that does other things too, ``cpu`` is the steadier one.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import click
import numpy as np
import psutil

if __package__ in (None, ""):  # run as a script
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.door import ROUTE, Connection
from benchmarks.page import content_part
from benchmarks.reuse_hit_rate import machine, versions
from benchmarks.watchers import Seen, StalledReader, Watchers
from examples.demo_server import COMMAND, LocalServer
from tensorrt_llm.bench.workloads import INSTRUCTION, clip, picture

CONNECTIONS = 8
REQUESTS, NEW_TOKENS = 40, 32
PICTURES, CLIPS, CLIP_SECONDS = 6, 3, 2.0
STARTING_SECONDS = 60.0
THREADS = {"OMP_NUM_THREADS": "1"}
FEW_MESSAGES = 2
TOPIC_BYTES = 50_000
_UNCOUNTED = (sys.executable, str(Path(__file__).with_name("uncounted_server.py")))


@dataclass(frozen=True)
class Setup:
    """What of a server is watched.

    Attributes:
        counts: Metrics are counted.
        logs: A line a request.
        traces: To a collector.
        streams: Cache events, to a reader over ZeroMQ.
        looked_at: Somebody has the page open, and Prometheus reads.
        long_messages: Those of the events are long, and few may wait for a reader.
        stalled: A second reader of cache events has stopped.
        buffers: Cache events wait for a reader over HTTP.
    """

    counts: bool = False
    logs: bool = False
    traces: bool = False
    streams: bool = False
    looked_at: bool = False
    long_messages: bool = False
    stalled: bool = False
    buffers: bool = False

    def options(self, collector: str, events: str) -> list[str]:
        """Of the server."""
        given = ["--log_level", "info" if self.logs else "warning"]
        if self.traces:
            given += ["--otlp_traces_endpoint", collector]
        if self.buffers:
            given += ["--kv_cache_event_buffer_max_size", "1024"]
        if self.streams:
            config: dict[str, Any] = {"enable_kv_cache_events": True, "endpoint": events}
            if self.long_messages:
                config["hwm"] = FEW_MESSAGES
                # So that the kernel's buffers do not hold all of them.
                config["topic"] = "x" * TOPIC_BYTES
            given += ["--kv_events_config", json.dumps(config)]
        return given


OFF = Setup()
ON = Setup(counts=True, logs=True, traces=True, streams=True, looked_at=True)
LONG = replace(ON, long_messages=True)
ROWS = {
    "all on": (ON, OFF),
    "all on, an event reader has stopped": (replace(LONG, stalled=True), LONG),
    "events over HTTP that nobody reads": (Setup(buffers=True), OFF),
}
EACH = {
    "metrics": (Setup(counts=True), OFF),
    "metrics and log": (Setup(counts=True, logs=True), OFF),
    "traces": (Setup(traces=True), OFF),
    "events over ZeroMQ": (Setup(streams=True), OFF),
    "page and Prometheus": (Setup(counts=True, looked_at=True), Setup(counts=True)),
}


@dataclass(frozen=True)
class Slice:
    """One stretch of serving: its time, and the processor time that the server took."""

    seconds: float
    cpu_seconds: float


@dataclass(frozen=True)
class Ratio:
    """A median over pairs, and the middle half of them."""

    median: float
    middle_half: tuple[float, float]

    @classmethod
    def of(cls, pairs: Sequence[tuple[float, float]]) -> Ratio:
        """The ratios of first to second."""
        ratios = [first / second for first, second in pairs]
        low, _, high = statistics.quantiles(ratios, n=4, method="inclusive")
        return cls(round(statistics.median(ratios), 4), (round(low, 4), round(high, 4)))


class Watched:
    """A server with who watches it; runs only inside `running`."""

    def __init__(self, setup: Setup, model: str, log: Path) -> None:
        self.setup = setup
        self._log = log
        self._watchers = Watchers()
        self._events = f"tcp://127.0.0.1:{_free_port()}"
        options = setup.options(self._watchers.collector, self._events)
        self._server = LocalServer(
            [model, *options, "--max_batch_size", str(CONNECTIONS)],
            log,
            program=[str(COMMAND)] if setup.counts else _UNCOUNTED,
        )
        self._stalled = StalledReader(self._events) if setup.stalled else None
        self.asked = 0

    def wait(self) -> None:
        """Until it serves, is warm and is watched."""
        self._server.wait_until_ready()
        if self.setup.looked_at or self.setup.streams:
            self._watchers.watch(self._server.url, self._events, looks=self.setup.looked_at)
        self.serve(range(REQUESTS))
        if self._stalled is not None:
            self._stalled.begin(STARTING_SECONDS)
        self._suspend()

    def serve(self, numbers: range) -> Slice:
        """Answers these requests."""
        port = int(self._server.url.rsplit(":", 1)[1])
        before, began = self._cpu(), time.perf_counter()
        asyncio.run(_ask_all(port, numbers))
        seconds, after = time.perf_counter() - began, self._cpu()
        self.asked += len(numbers)
        return Slice(seconds, sum(after.values()) - sum(before.get(pid, 0) for pid in after))

    @contextmanager
    def running(self) -> Iterator[None]:
        """Lets it go on for as long as the block lasts."""
        for process in self._all():
            process.resume()
        try:
            yield
        finally:
            self._suspend()

    def end(self) -> dict[str, Any]:
        """Ends it; tells what those who watched saw.

        Raises:
            click.ClickException: If they did not see what was asked of them.
        """
        for process in self._all():
            process.resume()
        told: dict[str, Any] = {}
        if self._stalled is not None:
            told["waiting_for_the_stopped_reader"] = self._stalled.waiting()
        lines = self._server.log_text().count("] request {")
        if self._server.stop() != 0:
            raise click.ClickException(f"the server did not end well:\n{self._server.log_tail()}")
        seen = self._watchers.end()
        told |= {"requests": self.asked, "lines_of_log": lines, **asdict(seen)}
        _check(self.setup, told, seen)
        return told

    def kill(self) -> None:
        """Ends what is left of it, suspended or not. May be called after `end`."""
        for process in self._all():
            with suppress(psutil.NoSuchProcess):
                process.kill()

    def _suspend(self) -> None:
        for process in self._all():
            process.suspend()

    def _processes(self) -> list[psutil.Process]:
        return _tree(self._server.process.pid)

    def _all(self) -> list[psutil.Process]:
        return [*self._processes(), *_tree(self._watchers.pid)]

    def _cpu(self) -> dict[int, float]:
        return {process.pid: sum(process.cpu_times()[:2]) for process in self._processes()}


def _tree(pid: int) -> list[psutil.Process]:
    """A process and all below it; none if it has ended."""
    try:
        process = psutil.Process(pid)
        return [process, *process.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def _check(setup: Setup, told: dict[str, Any], seen: Seen) -> None:
    asked = told["requests"]
    wrong = []
    if told["lines_of_log"] != (asked if setup.logs and setup.counts else 0):
        wrong.append("lines of the log")
    if seen.spans.get("engine", 0) != (asked if setup.traces else 0):
        wrong.append("traces")
    if setup.streams and (not seen.batches or seen.gaps):
        wrong.append("events")
    if setup.looked_at and not (seen.pages and seen.scrapes):
        wrong.append("reads of the page or of Prometheus")
    if setup.stalled and told["waiting_for_the_stopped_reader"] >= seen.batches / 2:
        wrong.append("the reader that has stopped: nothing was dropped for it")
    if wrong:
        raise click.ClickException(f"not as it should be: {', '.join(wrong)}: {told}")


async def _ask_all(port: int, numbers: range) -> None:
    waiting = iter(numbers)

    async def client() -> None:
        connection = await Connection.to(port)
        for number in waiting:
            status, body = await connection.ask(request(number))
            if status != 200 or b'"completion_tokens":%d' % NEW_TOKENS not in body:
                raise click.ClickException(f"answered {status}: {body[-500:]!r}")
        connection.close()

    await asyncio.gather(*(client() for _ in range(CONNECTIONS)))


def request(number: int) -> bytes:
    """A chat of its own, which begins as others do."""
    rng = np.random.default_rng(number)
    content: list[dict[str, Any]] = [{"type": "text", "text": INSTRUCTION}]
    if number % 2:
        content.append(_PICTURES[int(rng.integers(PICTURES))])
    if number % 4 == 0:
        content.append(_CLIPS[int(rng.integers(CLIPS))])
    content.append({"type": "text", "text": f"Question {number}?"})
    body = {
        "messages": [{"role": "user", "content": content}],
        "max_tokens": NEW_TOKENS,
        "ignore_eos": True,
        "temperature": 0,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    encoded = json.dumps(body).encode()
    head = f"POST {ROUTE} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {len(encoded)}\r\n\r\n".encode() + encoded


_PICTURES = [content_part(picture(number)) for number in range(PICTURES)]
_CLIPS = [content_part(clip(number, CLIP_SECONDS)) for number in range(CLIPS)]


def _free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port: int = taken.getsockname()[1]
        return port


def _take_turns(servers: Sequence[Watched], pairs: int) -> list[tuple[Slice, Slice]]:
    slices = []
    for pair in range(pairs):
        numbers = range((pair + 1) * REQUESTS, (pair + 2) * REQUESTS)
        found: dict[int, Slice] = {}
        for which in (0, 1) if pair % 2 else (1, 0):
            with servers[which].running():
                found[which] = servers[which].serve(numbers)
        slices.append((found[0], found[1]))
    return slices


def measure(model: str, setups: tuple[Setup, Setup], pairs: int, folder: Path) -> dict[str, Any]:
    """One row: two servers take turns, and neither is the first one always."""
    with ExitStack() as stack:
        servers = []
        for number, setup in enumerate(setups):
            servers.append(Watched(setup, model, folder / f"{number}.log"))
            stack.callback(servers[-1].kill)  # whatever cuts this short
        for server in servers:
            server.wait()
        slices = _take_turns(servers, pairs)
        first, second = (server.end() for server in servers)
    return {
        "pairs": pairs,
        "requests_per_s": asdict(Ratio.of([(other.seconds, one.seconds) for one, other in slices])),
        "cpu": asdict(Ratio.of([(one.cpu_seconds, other.cpu_seconds) for one, other in slices])),
        "cpu_ms_per_request": [
            round(1e3 * statistics.median(pair[n].cpu_seconds for pair in slices) / REQUESTS, 3)
            for n in (0, 1)
        ],
        "requests_per_s_each": [
            round(REQUESTS / statistics.median(pair[n].seconds for pair in slices), 2)
            for n in (0, 1)
        ],
        "watched": first,
        "against": second,
    }


@click.command(help=__doc__)
@click.option("--json", "json_file", type=click.Path(dir_okay=False, writable=True))
@click.option("--pairs", default=30, show_default=True, help="Pairs of slices a row.")
@click.option("--model", default="demo", show_default=True, help="Checkpoint that is served.")
@click.option("--each", is_flag=True, help="Every part alone, too.")
@click.option("--row", "only", multiple=True, help="These rows only.")
def main(json_file: str | None, pairs: int, model: str, each: bool, only: tuple[str, ...]) -> None:
    # Threads of Torch that wait for each other spin, and would count as work.
    os.environ.update(THREADS)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    rows: dict[str, Any] = {}
    report = {
        "rows": rows,
        "load": {
            "connections": CONNECTIONS,
            "requests_a_slice": REQUESTS,
            "generated_tokens": NEW_TOKENS,
            "model": model,
            "environment": THREADS,
        },
        "command": f"python benchmarks/observability.py --pairs {pairs}"
        + " --each" * each
        + "".join(f" --row {name!r}" for name in only),
        "machine": machine(),
        "versions": versions(),
    }
    for name, setups in {**ROWS, **(EACH if each else {})}.items():
        if only and name not in only:
            continue
        with tempfile.TemporaryDirectory() as folder:
            rows[name] = row = measure(model, setups, pairs, Path(folder))
        rate, cpu = row["requests_per_s"], row["cpu"]
        click.echo(
            f"{name}: {rate['median']} of the requests a second {rate['middle_half']}, "
            f"{cpu['median']} of the processor time {cpu['middle_half']}, "
            f"{row['cpu_ms_per_request'][0]} ms a request"
        )
        if json_file is not None:
            Path(json_file).write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
