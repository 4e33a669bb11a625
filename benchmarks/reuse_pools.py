# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""How much of what a pool of each size could find does the KV cache manager find?

    python benchmarks/reuse_pools.py [--requests N] [--seed N] [--trace FILE]... [--json FILE]

Plays the traces of ``traces.py``, or recorded ones, through the manager alone: no model runs. Pools
are given as a share of the working set, which is all distinct whole blocks of a trace. Beside the
blocks found stand the most that any cache of that size could have found, knowing what comes
(``belady.py``), and, for a pool without bounds, brute force over all earlier requests, token by
token (``prefix_model.py``). A *wrong hit* is a request that found more than brute force allows.
Requests come one at a time, in the order of arrival; their answers are not kept.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click
import numpy as np
from rich.console import Console
from rich.table import Table

if __package__ in (None, ""):  # run as a script
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.belady import Need, most_found
from benchmarks.traces import TRACES, Part, Trace, read_trace
from tensorrt_llm.bench.prefix_model import PrefixModel, TokenKey
from tensorrt_llm.bindings import KVCacheManager, MediaRuns, ReuseScope

TOKENS_PER_BLOCK = 32
VOCABULARY = 150_000
PLACEHOLDER = VOCABULARY
WIDTH = 120  # of the table in a file
PERCENTS = (5, 10, 25, 50, 100, 200)


@dataclass(frozen=True, eq=False)
class Prompt:
    """A request as the manager takes it, and as brute force sees it.

    Attributes:
        tokens: int32, (length,).
        media: Its media items, if any.
        item_ends: Where each media item ends.
        keys: A key a token.
    """

    tokens: np.ndarray
    media: MediaRuns | None
    item_ends: tuple[int, ...]
    keys: tuple[TokenKey, ...]


@dataclass(frozen=True)
class Played:
    """What a manager found in one pass over a trace."""

    tokens: int
    items: int
    wrong_hits: int


@dataclass(frozen=True)
class Point:
    """One pool. Tokens and media items found whole are those with parts of blocks reused too."""

    percent: int
    pool_blocks: int
    found_blocks: int
    most_blocks: int
    found_tokens: int
    found_items: int
    wrong_hits: int


@dataclass(frozen=True)
class Row:
    """One trace. Tokens are those without bounds on the pool, parts of blocks included."""

    name: str
    requests: int
    items: int
    prompt_tokens: int
    working_set_blocks: int
    found_tokens: int
    most_tokens: int
    wrong_hits: int
    points: list[Point]


def _digest(name: str) -> bytes:
    return hashlib.blake2b(name.encode(), digest_size=32).digest()


def _token_ids(part: Part) -> list[int]:
    if part.media:
        return [PLACEHOLDER] * part.tokens
    rng = np.random.default_rng(list(_digest(part.name)))
    ids: list[int] = rng.integers(0, VOCABULARY, part.tokens).tolist()
    return ids


def prompt_of(parts: Sequence[Part]) -> Prompt:
    """Writes a request's parts out as tokens and media items."""
    ids: list[int] = []
    keys: list[TokenKey] = []
    items: list[tuple[bytes, int, int]] = []
    for part in parts:
        added = _token_ids(part)
        if part.media:
            items.append((_digest(part.name), len(ids), part.tokens))
            keys += [(PLACEHOLDER, part.name, row) for row in range(part.tokens)]
        else:
            keys += [(token,) for token in added]
        ids += added
    media = None
    if items:
        rows = np.asarray([length for _, _, length in items], np.int64)
        media = MediaRuns(
            np.frombuffer(b"".join(digest for digest, _, _ in items), np.uint8).reshape(-1, 32),
            np.ones(len(items), np.bool_),
            np.arange(len(items), dtype=np.int32),
            np.asarray([position for _, position, _ in items], np.int64),
            rows,
            rows,
        )
    ends = tuple(position + length for _, position, length in items)
    return Prompt(np.asarray(ids, np.int32), media, ends, tuple(keys))


def needs_of(prompts: Sequence[Prompt]) -> tuple[list[Need], int]:
    """Every request's blocks by number, and how many distinct whole ones there are.

    The block after the last whole one is its request's own.
    """
    numbers: dict[Any, int] = {}
    needs: list[Need] = []
    for prompt in prompts:
        length = len(prompt.keys)
        before, blocks = -1, []
        for start in range(0, length - TOKENS_PER_BLOCK + 1, TOKENS_PER_BLOCK):
            content = (before, prompt.keys[start : start + TOKENS_PER_BLOCK])
            before = numbers.setdefault(content, len(numbers))
            blocks.append(before)
        if length % TOKENS_PER_BLOCK:
            blocks.append(-1 - len(needs))
        needs.append(Need(tuple(blocks), (length - 1) // TOKENS_PER_BLOCK))
    return needs, len(numbers)


def most_tokens(prompts: Sequence[Prompt]) -> list[int]:
    """The most tokens that each request could find with nothing ever given up."""
    model, most = PrefixModel(TOKENS_PER_BLOCK), []
    for prompt in prompts:
        most.append(model.longest(prompt.keys))
        model.write(prompt.keys)
    return most


def play(prompts: Sequence[Prompt], most: Sequence[int], pool_blocks: int, partial: bool) -> Played:
    """Sends the requests through a manager one by one.

    Raises:
        RuntimeError: If the pool has no room although nothing else runs.
    """
    manager = KVCacheManager(pool_blocks, TOKENS_PER_BLOCK, enable_partial_reuse=partial)
    tokens = items = wrong = 0
    for number, (prompt, bound) in enumerate(zip(prompts, most, strict=True)):
        taken = manager.add_sequence(number, prompt.tokens, prompt.media, ReuseScope(), 1)
        if taken is None:
            raise RuntimeError(f"no room for request {number} in {pool_blocks} blocks")
        plan = manager.take_copy_plan()
        if len(plan.entries):
            manager.copies_done(plan.ticket)
        manager.commit(number, len(prompt.tokens))
        manager.free_sequence(number)
        tokens += taken.cached_tokens
        items += sum(end <= taken.cached_tokens for end in prompt.item_ends)
        wrong += taken.cached_tokens > bound
    manager.check_integrity()
    return Played(tokens, items, wrong)


def measure(name: str, trace: Trace) -> Row:
    """Plays one trace with every pool, and without bounds."""
    prompts = [prompt_of(asked.parts) for asked in trace]
    needs, working_set = needs_of(prompts)
    most = most_tokens(prompts)
    largest = max(len(need.blocks) for need in needs)
    unbounded = working_set + 2 * len(needs) + largest
    free = play(prompts, most, unbounded, partial=True)
    points = []
    for percent in PERCENTS:
        pool = max(working_set * percent // 100, largest)
        whole = play(prompts, most, pool, partial=False)
        parts = play(prompts, most, pool, partial=True)
        points.append(
            Point(
                percent=percent,
                pool_blocks=pool,
                found_blocks=whole.tokens // TOKENS_PER_BLOCK,
                most_blocks=most_found(needs, pool),
                found_tokens=parts.tokens,
                found_items=parts.items,
                wrong_hits=whole.wrong_hits + parts.wrong_hits,
            )
        )
    return Row(
        name=name,
        requests=len(prompts),
        items=sum(len(prompt.item_ends) for prompt in prompts),
        prompt_tokens=sum(len(prompt.tokens) for prompt in prompts),
        working_set_blocks=working_set,
        found_tokens=free.tokens,
        most_tokens=sum(most),
        wrong_hits=free.wrong_hits + sum(point.wrong_hits for point in points),
        points=points,
    )


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.1%}" if whole else "-"


def table_of(rows: Sequence[Row]) -> Table:
    """The figures as a table: of each pool, the share of the optimum that was found."""
    table = Table()
    for heading in ("trace", "requests", "hit rate", "of brute force"):
        table.add_column(heading, no_wrap=True)
    for percent in PERCENTS:
        table.add_column(f"{percent} %", justify="right")
    table.add_column("wrong hits", justify="right", no_wrap=True)
    for row in rows:
        table.add_row(
            row.name,
            str(row.requests),
            _share(row.found_tokens, row.prompt_tokens),
            _share(row.found_tokens, row.most_tokens),
            *(_share(point.found_blocks, point.most_blocks) for point in row.points),
            str(row.wrong_hits),
        )
    return table


@click.command(help=__doc__.split("\n\n")[0])
@click.option("--requests", type=click.IntRange(50), default=400, show_default=True)
@click.option("--seed", type=click.IntRange(0), default=1, show_default=True)
@click.option(
    "--trace",
    "files",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    multiple=True,
    help="Play this trace of JSON lines instead; may be given again.",
)
@click.option("--json", "json_file", type=click.Path(dir_okay=False, path_type=Path))
def main(requests: int, seed: int, files: tuple[Path, ...], json_file: Path | None) -> None:
    if files:
        try:
            traces = {file.name: read_trace(file) for file in files}
        except ValueError as error:
            raise click.ClickException(str(error)) from None
    else:
        traces = {
            name: make(np.random.default_rng(seed), requests) for name, make in TRACES.items()
        }
    rows = [measure(name, trace) for name, trace in traces.items()]
    console = Console()
    if not console.is_terminal:
        console.width = WIDTH
    console.print(table_of(rows))
    console.print("Percent of the working set: blocks found, as a share of Belady's optimum.")
    if json_file is not None:
        # Imported here: torch takes seconds, and nothing else needs it.
        from tensorrt_llm.bench.reuse import machine, versions

        figures = {
            "seed": None if files else seed,
            "traces": [asdict(row) for row in rows],
            "machine": machine(),
            "versions": versions(),
        }
        json_file.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")
    if any(row.wrong_hits for row in rows):
        raise click.ClickException("there are wrong hits")


if __name__ == "__main__":
    main()
