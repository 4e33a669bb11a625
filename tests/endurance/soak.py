# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Mixed traffic on a real server whose pool holds two requests, for as long as is asked.

    python tests/endurance/soak.py --requests 100000 --json soak.json --markdown soak.md

Both capacity policies, one after the other, host tier on. Every answer that is read to its end is
compared with that of a server without reuse, which is asked once about each distinct request. In
the first tenth and at the end traffic stops, and what the server holds must be the same both times.
Request number n of a seed is always the same one. Ends with 1 if anything was not as it should be.
"""

from __future__ import annotations

import asyncio
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path[:0] = [str(Path(__file__).resolve().parents[folder]) for folder in (1, 2)]
    # Two servers on a small machine: threads that spin would wait for each other.
    os.environ.update({"OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "passive"})
    os.environ.update({"HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"})

import click
import httpx
from support.checkpoints import build_checkpoint
from support.engine import names_left
from support.footprint import Footprint, footprint
from support.lora import write_adapter
from support.reference import ReferenceModel
from support.server import Server

from endurance.clients import CHAT, FIXED_ADAPTERS, Clients, Oracle, Tally
from endurance.traffic import Traffic

POLICIES = ("GUARANTEED_NO_EVICT", "MAX_UTILIZATION")
STORE_BYTES = 30_000
# Two of the longest requests.
POOL_TOKENS = 512
IDLE_SECONDS = 60.0
REST_SECONDS = 0.3
MOST_GROWTH = 0.03
# Eight of its own, its pools' 26, and asyncio's.
MOST_DOOR_THREADS = 8 + 26 + min(32, (os.cpu_count() or 1) + 4)
# Below so many requests caches still fill.
ENOUGH_TO_SETTLE = 2_000


@dataclass
class Part:
    """What came of one policy.

    Attributes:
        policy: The capacity policy.
        seconds: How long it took.
        tally: What the clients saw.
        distinct: Distinct requests that the server without reuse was asked.
        early: What the server held in the first tenth, while nothing ran.
        late: Likewise at the end.
        books: What must be zero at the end, and is not.
        pressure: Counters that must have moved.
    """

    policy: str
    seconds: float = 0.0
    tally: Tally = field(default_factory=Tally)
    distinct: int = 0
    early: Footprint | None = None
    late: Footprint | None = None
    books: dict[str, int] = field(default_factory=dict)
    pressure: dict[str, int] = field(default_factory=dict)

    @property
    def growth(self) -> float:
        """Resident memory of all processes, late against early, less one."""
        assert self.early is not None and self.late is not None
        return self.late.lasting_bytes / self.early.lasting_bytes - 1

    @property
    def faults(self) -> list[str]:
        """All that was not as it should be."""
        found = list(self.tally.faults)
        found += [f"{name} at rest: {count}, not 0" for name, count in self.books.items()]
        found += [f"no pressure: {name}" for name, count in self.pressure.items() if not count]
        assert self.early is not None and self.late is not None
        early, late = self.early.held, self.late.held
        # The door's pools start a thread when all they have are busy, up to their bounds.
        door = late["threads"].pop("door")
        early["threads"].pop("door")
        if door > MOST_DOOR_THREADS or early != late:
            found.append(f"at rest it held {self.early.held}, then {self.late.held}")
        if self.tally.requests >= ENOUGH_TO_SETTLE and self.growth > MOST_GROWTH:
            found.append(f"resident memory grew by {self.growth:.1%}")
        return found


class Soak:
    """Servers and what they are asked.

    Args:
        checkpoint: A tiny Phi-4-multimodal.
        folder: For adapters, configurations and logs.
        seed: Other seeds make other requests.
        most_at_once: Clients at a time.
    """

    def __init__(self, checkpoint: Path, folder: Path, seed: int, most_at_once: int = 8) -> None:
        self._checkpoint = checkpoint
        self._folder = folder
        self._seed = seed
        self._most_at_once = most_at_once
        model = ReferenceModel(checkpoint).model
        self._adapters = {
            name: str(write_adapter(folder / name, model, number))
            for number, name in enumerate(FIXED_ADAPTERS)
        }

    def run(self, requests: int, policies: Sequence[str], seconds: float) -> list[Part]:
        """Plays requests, as many with each policy.

        Args:
            requests: How many in all.
            policies: Capacity policies.
            seconds: Most seconds in all; no further request begins then.
        """
        words = [str(self._checkpoint), "--no_enable_block_reuse", "--kv_cache_max_tokens", "16384"]
        parts, share = [], requests // len(policies)
        with Server(words, self._folder / "oracle.log") as other:
            for policy in policies:
                part, names = Part(policy), names_left()
                parts.append(part)
                log = self._folder / f"{policy}.log"
                words = [str(self._checkpoint), "--config", str(self._settings(policy))]
                with Server(words, log) as server:
                    server.wait_until_ready()
                    other.wait_until_ready()
                    asyncio.run(self._play(part, server, other, share, seconds / len(policies)))
                    if "Traceback" in server.log_text():
                        part.tally.faults.append(f"a traceback in {log}")
                    if server.stop() != 0:
                        part.tally.faults.append("the server did not end well")
                left = names_left() - names
                part.tally.faults += [f"left behind: {name}" for name in sorted(left)]
            return parts

    def _settings(self, policy: str) -> Path:
        settings = {
            "max_num_tokens": 64,
            "enable_chunked_prefill": True,
            "kv_cache_config": {"max_tokens": POOL_TOKENS, "host_cache_size": "1MiB"},
            "multimodal_config": {"encoder_cache_max_bytes": STORE_BYTES},
            "scheduler_config": {"capacity_scheduler_policy": policy},
        }
        path = self._folder / f"{policy}.yaml"
        path.write_text(json.dumps(settings))  # JSON is YAML
        return path

    async def _play(
        self, part: Part, server: Server, other: Server, requests: int, seconds: float
    ) -> None:
        began = time.monotonic()
        async with _client(other) as reference:
            oracle = Oracle(reference)
            for name, folder in self._adapters.items():
                body = {"lora_name": name, "lora_path": folder}
                (await reference.post("/v1/load_lora_adapter", json=body)).raise_for_status()
            end = began + seconds
            traffic = Traffic(self._seed)
            first = max(1, requests // 10)
            for numbers in (range(first), range(first, requests)):
                async with _client(server) as client:
                    if part.early is None:
                        clients = Clients(client, oracle, traffic, self._adapters)
                        part.tally = clients.tally
                        await clients.prepare()
                    else:
                        clients.meet(client)
                    watching = asyncio.create_task(_watch(client, part))
                    await self._crowd(clients, numbers, end)
                    watching.cancel()
                    await asyncio.gather(watching, return_exceptions=True)
                    part.books = await _books(client)
                held = await asyncio.to_thread(_at_rest, server, part.early)
                part.early, part.late = part.early or held, held
            part.distinct = len(oracle)
        part.seconds = time.monotonic() - began

    async def _crowd(self, clients: Clients, numbers: range, end: float) -> None:
        """Plays requests, several at a time, each when one before it has ended."""
        left = iter(numbers)

        async def visit() -> None:
            for number in left:
                if time.monotonic() > end:
                    return
                await clients.play(number)
                if number % 100 == 50:
                    await clients.change(number // 100)

        await asyncio.gather(*(visit() for _ in range(self._most_at_once)))


def _client(server: Server) -> httpx.AsyncClient:
    return httpx.AsyncClient(base_url=server.url, trust_env=False, timeout=600)


async def _watch(client: httpx.AsyncClient, part: Part) -> None:
    """Counts what shows that the pool was too small, until it is cancelled."""
    seen = dict.fromkeys(("queued", "evicted", "offloaded"), 0)
    if part.policy == "MAX_UTILIZATION":
        seen["paused"] = 0
    part.pressure = {name: part.pressure.get(name, 0) for name in seen}
    while True:
        await asyncio.sleep(0.5)
        for record in (await client.get("/metrics")).json():
            cache = record["kvCacheStats"]
            part.pressure["queued"] += record["numQueuedRequests"]
            part.pressure["evicted"] = cache["evictedBlocks"]
            part.pressure["offloaded"] = cache["offloadedBlocks"]
            if "paused" in part.pressure:
                batch = record["inflightBatchingStats"]
                part.pressure["paused"] += batch["numPausedRequests"]


async def _books(client: httpx.AsyncClient) -> dict[str, int]:
    """What is held once all have left; asks until it is nothing, for some time."""
    deadline = time.monotonic() + IDLE_SECONDS
    while True:
        await client.get("/metrics")
        body = {"messages": [{"role": "user", "content": "Hello"}], "max_tokens": 1}
        (await client.post(CHAT, json=body)).raise_for_status()
        last = (await client.get("/metrics")).json()[-1]
        cache, store = last["kvCacheStats"], last["multimodalStats"]["embeddingStore"]
        held = {
            "other active requests": last["numActiveRequests"] - 1,
            "queued requests": last["numQueuedRequests"],
            "used blocks": cache["usedNumBlocks"],
            "pinned items": store["pinnedCount"],
            "lent bytes": store["lentBytes"],
        }
        held = {name: count for name, count in held.items() if count}
        if not held or time.monotonic() > deadline:
            return held
        await asyncio.sleep(REST_SECONDS)


def _at_rest(server: Server, before: Footprint | None) -> Footprint:
    """What the server holds once it holds no less than a moment ago, or what it held before."""
    deadline = time.monotonic() + IDLE_SECONDS
    latest = footprint(server)
    while time.monotonic() < deadline:
        time.sleep(REST_SECONDS if before is not None else 5 * REST_SECONDS)
        previous, latest = latest, footprint(server)
        if latest.held == (previous if before is None else before).held:
            break
    return latest


def report(parts: Sequence[Part], command: str) -> dict[str, Any]:
    """Everything as JSON."""
    described = ["git", "describe", "--always", "--dirty"]
    commit = subprocess.run(described, capture_output=True, text=True, cwd=Path(__file__).parent)
    return {
        "date": datetime.now(timezone.utc).date().isoformat(),
        "commit": commit.stdout.strip(),
        "command": command,
        "machine": f"{platform.machine()}, Python {platform.python_version()}",
        "parts": [{**_plain(part), "growth": part.growth, "faults": part.faults} for part in parts],
    }


def _plain(value: Any) -> Any:
    """A dataclass as JSON knows it, counters included."""
    if is_dataclass(value):
        return {one.name: _plain(getattr(value, one.name)) for one in fields(value)}
    return dict(value) if isinstance(value, dict) else value


def markdown(made: dict[str, Any]) -> str:
    """The report as a table."""
    lines = [
        f"{made['date']}, commit `{made['commit']}`, {made['machine']}:",
        "",
        f"    {made['command']}",
        "",
        "| | " + " | ".join(part["policy"] for part in made["parts"]) + " |",
        "|---|" + "---|" * len(made["parts"]),
    ]

    def row(name: str, values: Sequence[object]) -> None:
        lines.append(f"| {name} | " + " | ".join(str(value) for value in values) + " |")

    parts = made["parts"]
    row("requests", [sum(part["tally"]["ended"].values()) for part in parts])
    row("minutes", [f"{part['seconds'] / 60:.1f}" for part in parts])
    for name in ("ended", "right", "changes"):
        kinds = sorted({kind for part in parts for kind in part["tally"][name]})
        for kind in kinds:
            title = f"right answers: {kind}" if name == "right" else kind
            row(title, [part["tally"][name].get(kind, 0) for part in parts])
    row("distinct requests of the oracle", [part["distinct"] for part in parts])
    for name in sorted({name for part in parts for name in part["pressure"]}):
        row(name, [part["pressure"].get(name, "-") for part in parts])
    for name in ("descriptors", "threads"):
        row(f"{name} at rest, early", [_roles(part["early"][name]) for part in parts])
        row(f"{name} at rest, at the end", [_roles(part["late"][name]) for part in parts])
    row("resident memory, at the end against early", [f"{part['growth']:+.1%}" for part in parts])
    row("faults", [len(part["faults"]) for part in parts])
    return "\n".join(lines) + "\n"


def _roles(counts: dict[str, int]) -> str:
    return ", ".join(f"{role} {count}" for role, count in sorted(counts.items()))


@click.command()
@click.option("--requests", default=100_000, show_default=True, help="How many in all.")
@click.option("--minutes", default=600.0, show_default=True, help="Most minutes in all.")
@click.option("--seed", default=0, show_default=True, help="Others make other requests.")
@click.option("--at_once", default=8, show_default=True, help="Clients at a time.")
@click.option("--policy", type=click.Choice(POLICIES), multiple=True, default=POLICIES)
@click.option("--json", "json_file", type=click.Path(path_type=Path), help="Report as JSON.")
@click.option("--markdown", "markdown_file", type=click.Path(path_type=Path), help="As a table.")
def main(
    requests: int,
    minutes: float,
    seed: int,
    at_once: int,
    policy: Sequence[str],
    json_file: Path | None,
    markdown_file: Path | None,
) -> None:
    """Mixed traffic on a real server, compared answer by answer with one without reuse."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        soak = Soak(build_checkpoint("phi4mm", folder), folder, seed, at_once)
        parts = soak.run(requests, policy, 60 * minutes)
    made = report(parts, f"python tests/endurance/soak.py --requests {requests} --seed {seed}")
    if json_file is not None:
        json_file.write_text(json.dumps(made, indent=2) + "\n")
    if markdown_file is not None:
        markdown_file.write_text(markdown(made))
    click.echo(markdown(made))
    faults = [fault for part in parts for fault in part.faults]
    for fault in faults[:50]:
        click.echo(fault, err=True)
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
