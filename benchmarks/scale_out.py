# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""What does a router's index cost at a thousand replicas, and what does it find?

    python benchmarks/scale_out.py [--json FILE]

The index and the decision are the real ones; replicas are caches without a model: so many blocks
each, least recently used out first, that tell the router what they store and drop, late. The trace
is made up: conversations and documents, some asked about far more often than others (Zipf), all
below one of a few shared beginnings. The oracle decides by the same rule, but knows at once and
exactly what every replica has.

- ``bytes_per_block``: memory of the process that the filled index took, by the operating system.
- ``decision_us``: choosing a replica for a prompt whose block names are known.
- ``hit_rate``: tokens found cached, of all prompt tokens; beside it the oracle's, a random
  router's, and that of one cache as large as all.
"""

from __future__ import annotations

import gc
import json
import sys
import time
from collections import OrderedDict, deque
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click
import numpy as np
import psutil

if __package__ in (None, ""):  # run as a script
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.reuse_hit_rate import machine, versions
from tensorrt_llm.serve.routing.placement import Placement, Placer

SIZE = 32
SHARED_BLOCKS = 16
SHARED = 8
_MIX = 0x9E3779B97F4A7C15
_KEY = (1 << 60) - 1


@dataclass(frozen=True)
class Prompt:
    """A document's blocks below one of the shared beginnings."""

    document: int
    blocks: int

    def keys(self) -> list[int]:
        """Made anew each time: keeping ten million would be measured as the index's memory."""
        shared = (self.document % SHARED + 1) << 40
        beginning = [_mixed(shared + index) for index in range(SHARED_BLOCKS)]
        own = (self.document + SHARED + 1) << 40
        return beginning + [_mixed(own + index) for index in range(self.blocks)]

    @property
    def tokens(self) -> int:
        return (SHARED_BLOCKS + self.blocks) * SIZE + 1


def _mixed(number: int) -> int:
    number = (number * _MIX) & 0xFFFFFFFFFFFFFFFF
    number ^= number >> 29
    return ((number * 0xBF58476D1CE4E5B9) ^ (number >> 32)) & _KEY


def trace(requests: int, documents: int, seed: int) -> Iterator[Prompt]:
    """Prompts; the popularity of documents falls with their rank to the power 0.9."""
    choose = np.random.default_rng(seed)
    weights = np.arange(1, documents + 1) ** -0.9
    bounds = np.cumsum(weights / weights.sum())
    lengths = np.clip(choose.lognormal(4.2, 0.6, documents), 8, 400).astype(int)
    for rank in np.searchsorted(bounds, choose.random(requests)):
        document = min(int(rank), documents - 1)
        yield Prompt(document, int(lengths[document]))


class Cache:
    """Whole documents of one replica, least recently used out first; counts blocks."""

    def __init__(self, blocks: int) -> None:
        self.room = blocks - SHARED * SHARED_BLOCKS
        self.documents: OrderedDict[int, int] = OrderedDict()
        self.shared: set[int] = set()

    def hit(self, prompt: Prompt) -> int:
        shared = SHARED_BLOCKS if prompt.document % SHARED in self.shared else 0
        return SIZE * (shared + self.documents.get(prompt.document, 0))

    def run(self, prompt: Prompt) -> list[Prompt]:
        """Caches a prompt; gives the documents that had to go."""
        self.shared.add(prompt.document % SHARED)
        if prompt.document not in self.documents:
            self.room -= prompt.blocks
        self.documents[prompt.document] = prompt.blocks
        self.documents.move_to_end(prompt.document)
        gone = []
        while self.room < 0:
            document, blocks = self.documents.popitem(last=False)
            self.room += blocks
            gone.append(Prompt(document, blocks))
        return gone


@dataclass(frozen=True)
class Settings:
    """What is simulated.

    Attributes:
        replicas: Replicas.
        blocks: Blocks of all caches together.
        requests: Requests of the trace; the second half is measured.
        documents: Different documents.
        running: Requests that run at a time, over all replicas.
        late: Requests that are placed before what one changed is told.
        lost: Part of the drops that are never told.
        seed: Of the trace.
    """

    replicas: int
    blocks: int
    requests: int
    documents: int
    running: int
    late: int
    lost: float
    seed: int = 0


class Fleet:
    """Caches, and the hits among them."""

    def __init__(self, settings: Settings) -> None:
        each = settings.blocks // settings.replicas
        self.caches = [Cache(each) for _ in range(settings.replicas)]
        self.hits = self.total = 0
        self.sent = np.zeros(settings.replicas, int)
        self.computed = np.zeros(settings.replicas, int)

    def run(self, replica: int, prompt: Prompt, measured: bool) -> list[Prompt]:
        cache = self.caches[replica]
        hit = cache.hit(prompt)
        if measured:
            self.hits += hit
            self.total += prompt.tokens
            self.sent[replica] += 1
            self.computed[replica] += prompt.tokens - hit
        return cache.run(prompt)

    @property
    def rate(self) -> float:
        return round(self.hits / self.total, 4)

    def most_over_mean(self) -> float:
        return round(float(self.computed.max() / self.computed.mean()), 3)


def with_index(settings: Settings) -> dict[str, Any]:
    """The real index and decision, told late and not of everything."""
    gc.collect()
    process = psutil.Process()
    # Room for what is late to be told, and for shards that are fuller than others.
    placer = Placer(SIZE, settings.blocks * 3 // 2)
    names = [str(number) for number in range(settings.replicas)]
    for name in names:
        placer.add(name)
    fleet, choose = Fleet(settings), np.random.default_rng(1)
    before = process.memory_info().rss
    running: deque[Placement] = deque()
    told: deque[tuple[str, list[Prompt]]] = deque()
    decisions, events = [], []
    for number, prompt in enumerate(trace(settings.requests, settings.documents, settings.seed)):
        measured = number >= settings.requests // 2
        keys = prompt.keys()
        begin = time.perf_counter()
        placed = placer.place(keys, prompt.tokens)
        decisions.append(time.perf_counter() - begin)
        running.append(placed)
        if len(running) > settings.running:
            placer.finish(running.popleft())
        told.append((placed.replica, fleet.run(int(placed.replica), prompt, measured)))
        if len(told) > settings.late:
            replica, gone = told.popleft()
            for one in gone:
                if choose.random() >= settings.lost:
                    own = one.keys()[SHARED_BLOCKS:]
                    begin = time.perf_counter()
                    placer.removed(replica, own)
                    events.append((time.perf_counter() - begin) / len(own))
    gc.collect()
    taken = process.memory_info().rss - before
    held = len(placer.index)
    late = 1e6 * np.array(decisions[len(decisions) // 2 :])
    return {
        "hit_rate": fleet.rate,
        "busiest_over_mean": fleet.most_over_mean(),
        "index_blocks": held,
        "index_mb": round(taken / 1e6, 1),
        "bytes_per_block": round(taken / held, 1),
        "decision_us": {
            "p50": round(float(np.percentile(late, 50)), 1),
            "p99": round(float(np.percentile(late, 99)), 1),
        },
        "event_us_per_block": round(1e6 * float(np.mean(events)), 2) if events else None,
    }


def with_oracle(settings: Settings) -> dict[str, Any]:
    """The same rule over what the caches have at this moment."""
    fleet = Fleet(settings)
    busy, spent = np.zeros(settings.replicas), np.zeros(settings.replicas)
    holders: dict[int, set[int]] = {}
    sharing: list[set[int]] = [set() for _ in range(SHARED)]
    running: deque[tuple[int, int]] = deque()
    for number, prompt in enumerate(trace(settings.requests, settings.documents, settings.seed)):
        fresh = np.full(settings.replicas, prompt.tokens)
        for holder in sharing[prompt.document % SHARED]:
            fresh[holder] -= SHARED_BLOCKS * SIZE
        for holder in holders.get(prompt.document, ()):
            fresh[holder] -= prompt.blocks * SIZE
        least = fresh.min()
        cost = busy + fresh
        if least > SIZE:
            cost = cost + (spent - spent.min()) * (least / prompt.tokens)
        tied = np.flatnonzero(cost == cost.min())
        chosen = int(tied[spent[tied].argmin()])
        work = int(fresh[chosen]) + 64
        busy[chosen] += work
        spent[chosen] += fresh[chosen] if fresh[chosen] > SIZE else 1
        running.append((chosen, work))
        if len(running) > settings.running:
            done, work = running.popleft()
            busy[done] -= work
        gone = fleet.run(chosen, prompt, number >= settings.requests // 2)
        holders.setdefault(prompt.document, set()).add(chosen)
        sharing[prompt.document % SHARED].add(chosen)
        for one in gone:
            holders[one.document].discard(chosen)
    return {"hit_rate": fleet.rate, "busiest_over_mean": fleet.most_over_mean()}


def at_random(settings: Settings) -> dict[str, Any]:
    fleet, choose = Fleet(settings), np.random.default_rng(2)
    for number, prompt in enumerate(trace(settings.requests, settings.documents, settings.seed)):
        replica = int(choose.integers(settings.replicas))
        fleet.run(replica, prompt, number >= settings.requests // 2)
    return {"hit_rate": fleet.rate, "busiest_over_mean": fleet.most_over_mean()}


def one_cache(settings: Settings) -> dict[str, Any]:
    one = Fleet(Settings(**{**asdict(settings), "replicas": 1}))
    for number, prompt in enumerate(trace(settings.requests, settings.documents, settings.seed)):
        one.run(0, prompt, number >= settings.requests // 2)
    return {"hit_rate": one.rate}


def simulate(settings: Settings) -> dict[str, Any]:
    """All routers over one trace."""
    return {
        "settings": asdict(settings),
        "index": with_index(settings),
        "oracle": with_oracle(settings),
        "random": at_random(settings),
        "one_cache": one_cache(settings),
    }


@click.command(help=__doc__.split("\n\n")[0])
@click.option("--replicas", multiple=True, type=int, default=(4, 100, 1000), show_default=True)
@click.option("--blocks", default=10_000_000, show_default=True, help="Of the largest fleet.")
@click.option("--json", "json_file", type=click.Path(path_type=Path, dir_okay=False))
def main(
    replicas: tuple[int, ...],
    blocks: int,
    json_file: Path | None,
) -> None:
    results = []
    for number in replicas:
        each = blocks // max(replicas)
        documents = 3 * each * number // 200
        settings = Settings(number, each * number, 3 * documents, documents, 4 * number, 50, 0.01)
        results.append(simulate(settings))
        click.echo(json.dumps(results[-1], indent=1))
    if json_file is not None:
        report = {"simulated": results, "machine": machine(), "versions": versions()}
        json_file.write_text(json.dumps(report, indent=2) + "\n")


if __name__ == "__main__":
    main()
