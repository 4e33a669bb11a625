# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""What does the HTTP door cost?

    python benchmarks/door.py [--json FILE] [--seconds S] [--connections N]

The server as ``trtllm-serve`` runs it, one process, with an engine that computes nothing in its
own process. Clients speak over loopback sockets, and every answer is checked for its status.

- ``to_queue_ms``: from the client's first byte to the engine's queue, one request at a time; half
  of them, and 99 of 100, take no longer.
- ``door_cpu_ms``: processor time of the server for a request, one at a time.
- ``requests_per_s``: with many connections that each send the next request at once. Clients and
  engine share the machine.
- ``cpu_us_per_token``: processor time of the server for a streamed token, an event each.
"""

from __future__ import annotations

import asyncio
import json
import re
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import click
import numpy as np
import psutil
from rich import box
from rich.console import Console
from rich.table import Table

if __package__ in (None, ""):  # run as a script
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.media_hash import bodies
from benchmarks.null_engine import sent_now
from benchmarks.reuse_hit_rate import build_tiny, machine, versions

ROUTE = "/v1/chat/completions"
WARM_UP = 20
ALONE = 200
STREAMS, STREAM_TOKENS = 16, 250
START_SECONDS = 120
MOST_ANSWER_BYTES = 2**24


class Connection:
    """One connection that is kept, and asks one thing after the other."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    @classmethod
    async def to(cls, port: int) -> Connection:
        return cls(*await asyncio.open_connection("127.0.0.1", port, limit=MOST_ANSWER_BYTES))

    async def ask(self, request: bytes) -> tuple[int, bytes]:
        """Status and body of the answer, chunked or not."""
        self._writer.write(request)
        head = (await self._reader.readuntil(b"\r\n\r\n")).lower()
        status = int(head[9:12])
        length = re.search(rb"content-length: (\d+)", head)
        if length is not None:
            return status, await self._reader.readexactly(int(length[1]))
        return status, await self._reader.readuntil(b"0\r\n\r\n")

    def close(self) -> None:
        self._writer.close()


@dataclass
class Workload:
    """Requests that differ in when they are sent only."""

    name: str
    body: dict[str, Any]

    @cached_property
    def _around_seed(self) -> tuple[bytes, bytes]:
        before, after = json.dumps({"seed": 0, **self.body}).encode().split(b"0", 1)
        length = len(before) + len(str(sent_now())) + len(after)
        head = f"POST {ROUTE} HTTP/1.1\r\nHost: door\r\nContent-Type: application/json\r\n"
        return f"{head}Content-Length: {length}\r\n\r\n".encode() + before, after

    def request(self) -> bytes:
        """The next one."""
        before, after = self._around_seed
        return b"%b%d%b" % (before, sent_now(), after)


class Door:
    """A running server."""

    def __init__(self, port: int, process: subprocess.Popen[bytes]) -> None:
        self.port = port
        self._process = psutil.Process(process.pid)

    def cpu_seconds(self) -> float:
        """Processor time of the server itself; the engine and decoders are other processes."""
        times = self._process.cpu_times()
        return times.user + times.system

    async def arrivals(self, connection: Connection) -> list[float]:
        """Milliseconds that the requests since the last call took to the engine's queue."""
        status, body = await connection.ask(b"GET /metrics HTTP/1.1\r\nHost: door\r\n\r\n")
        if status != 200:
            raise click.ClickException(f"/metrics answered {status}")
        return [row["toQueueMs"] for row in json.loads(body)]


@contextmanager
def running_door(model: str) -> Iterator[Door]:
    """Starts a server and ends it."""
    with socket.socket() as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(("127.0.0.1", 0))
        port = listening.getsockname()[1]
        script = Path(__file__).with_name("null_server.py")
        process = subprocess.Popen(
            [sys.executable, str(script), model, str(listening.fileno())],
            pass_fds=[listening.fileno()],
        )
    try:
        _wait_for(port, process)
        yield Door(port, process)
    finally:
        process.terminate()
        process.wait()


def _wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + START_SECONDS
    while time.monotonic() < end and process.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.1)
    raise click.ClickException("the server does not start")


async def _checked(connection: Connection, workload: Workload) -> bytes:
    status, body = await connection.ask(workload.request())
    if status != 200:
        raise click.ClickException(f"{workload.name}: answered {status}: {body[:300]!r}")
    return body


async def alone(door: Door, workload: Workload) -> dict[str, Any]:
    """One request at a time."""
    connection = await Connection.to(door.port)
    for _ in range(WARM_UP):
        await _checked(connection, workload)
    await door.arrivals(connection)
    before = door.cpu_seconds()
    for _ in range(ALONE):
        await _checked(connection, workload)
    spent = door.cpu_seconds() - before
    arrivals = await door.arrivals(connection)
    connection.close()
    if len(arrivals) != ALONE:
        raise click.ClickException(f"{len(arrivals)} of {ALONE} requests reached the queue")
    half, most = np.percentile(arrivals, (50, 99))
    return {
        "what": workload.name,
        "to_queue_ms": round(float(half), 3),
        "to_queue_ms_99": round(float(most), 3),
        "door_cpu_ms": round(1e3 * spent / ALONE, 3),
    }


async def together(
    door: Door, workload: Workload, connections: int, seconds: float
) -> dict[str, float]:
    """As many as the door takes."""
    end = time.monotonic() + seconds

    async def client() -> int:
        connection = await Connection.to(door.port)
        count = 0
        while time.monotonic() < end:
            await _checked(connection, workload)
            count += 1
        connection.close()
        return count

    start = time.monotonic()
    counts = await asyncio.gather(*(client() for _ in range(connections)))
    return {"requests_per_s": round(sum(counts) / (time.monotonic() - start), 1)}


async def streamed(door: Door, workload: Workload) -> dict[str, Any]:
    """What a token more costs: long streams less short ones."""

    async def stream(tokens: int) -> int:
        body = {**workload.body, "stream": True, "max_tokens": tokens}
        connection = await Connection.to(door.port)
        answer = await _checked(connection, Workload(workload.name, body))
        connection.close()
        return answer.count(b'"delta"')

    async def all_of(tokens: int) -> tuple[float, int]:
        before = door.cpu_seconds()
        events = await asyncio.gather(*(stream(tokens) for _ in range(STREAMS)))
        return door.cpu_seconds() - before, sum(events)

    await all_of(STREAM_TOKENS)
    short, few = await all_of(1)
    long, many = await all_of(1 + STREAM_TOKENS)
    return {
        "streams": STREAMS,
        "tokens": STREAMS * STREAM_TOKENS,
        "events": many - few,
        "cpu_us_per_token": round(1e6 * (long - short) / (STREAMS * STREAM_TOKENS), 1),
    }


def measure(door: Door, workloads: list[Workload], connections: int, seconds: float) -> dict:
    """All rows."""
    rows = []
    for workload in workloads:
        row = asyncio.run(alone(door, workload))
        rows.append(row | asyncio.run(together(door, workload, connections, seconds)))
    return {"rows": rows, "streaming": asyncio.run(streamed(door, workloads[-1]))}


def show(report: dict[str, Any], print_: Callable[..., None]) -> None:
    """Prints the figures."""
    table = Table(box=box.SIMPLE)
    for column in report["rows"][0]:
        table.add_column(column.replace("_", " "))
    for row in report["rows"]:
        table.add_row(*map(str, row.values()))
    print_(table)
    streaming = report["streaming"]
    print_(
        f"{streaming['tokens']} tokens in {streaming['streams']} streams at once, "
        f"{streaming['events']} events: {streaming['cpu_us_per_token']} us of processor a token"
    )


@click.command(help=__doc__)
@click.option("--json", "json_file", type=click.Path(dir_okay=False, writable=True))
@click.option("--seconds", default=5.0, show_default=True, help="Time for each rate.")
@click.option("--connections", default=32, show_default=True, help="Clients for each rate.")
def main(json_file: str | None, seconds: float, connections: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        model = build_tiny(Path(folder) / "phi4mm")
        workloads = [
            Workload(name, json.loads(body) | {"ignore_eos": True})
            for name, body in bodies(Path(model))
        ]
        with running_door(model) as door:
            report = measure(door, workloads, connections, seconds)
    report |= {"machine": machine(), "versions": versions(), "connections": connections}
    report["command"] = "python benchmarks/door.py"
    console = Console(width=None if sys.stdout.isatty() else 120)
    show(report, console.print)
    if json_file is not None:
        Path(json_file).write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
