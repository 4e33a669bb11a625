# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Explanations of random pairs of requests, each compared with the two laid side by side.

``TRTLLM_EXPLAIN_PAIRS`` asks for more of them, ``TRTLLM_EXPLAIN_SEED`` for others.
"""

from __future__ import annotations

import hashlib
import os
import random
from collections import Counter
from dataclasses import dataclass, replace

import numpy as np

from tensorrt_llm.bindings import KVCacheManager, MediaRuns, ReuseScope
from tensorrt_llm.executor.executor import MatchReport
from tensorrt_llm.inputs.data import Digest, PlaceholderRun, ProcessedItem, ProcessedPrompt
from tensorrt_llm.inputs.multimodal import media_run_buffers
from tensorrt_llm.serve.explanation import Pool, explain

PAIRS = int(os.environ.get("TRTLLM_EXPLAIN_PAIRS", "5000"))
SEED = int(os.environ.get("TRTLLM_EXPLAIN_SEED", "8"))
SIZE = 4
REASONS = {
    *("complete", "tokens", "media_identity", "media_offset", "media_runs", "salt", "adapter"),
    *("adapter_mode", "unidentified_media", "not_committed", "evicted", "reuse_disabled"),
    "unknown",
}


@dataclass(frozen=True)
class Item:
    """Content and options make an identity; runs go on row by row."""

    content: int
    options: str
    runs: tuple[tuple[int, int], ...]
    known: bool = True

    def identity(self) -> Digest | None:
        name = hashlib.sha256(f"{self.content}/{self.options}".encode()).digest()
        return Digest(name) if self.known else None


@dataclass(frozen=True)
class Request:
    tokens: tuple[int, ...]
    items: tuple[Item, ...] = ()
    salt: str | None = None
    adapter: tuple[int, int] | None = None
    mode: str = ""

    def scope(self) -> ReuseScope:
        number, version = self.adapter or (None, 0)
        return ReuseScope(self.salt, number, version, self.mode)

    def prompt(self) -> ProcessedPrompt:
        items = [
            ProcessedItem(
                "image",
                item.identity(),
                tuple(PlaceholderRun(*run) for run in item.runs),
                {},
                part=f"part {index}",
            )
            for index, item in enumerate(self.items)
        ]
        return ProcessedPrompt(np.array(self.tokens, np.int32), tuple(items))

    def keys(self) -> list[tuple]:
        """What decides each token's share of a block: id, identity, row, whether a run begins."""
        found: list[tuple] = [(token, None, 0, False) for token in self.tokens]
        for item in self.items:
            row = 0
            for begin, length in item.runs:
                for place in range(begin, begin + length):
                    begins = place == begin and place % SIZE != 0
                    found[place] = (self.tokens[place], item.identity(), row, begins)
                    row += 1
        return found

    def shareable(self) -> int:
        unknown = [item.runs[0][0] for item in self.items if not item.known]
        return min(unknown) // SIZE * SIZE if unknown else len(self.tokens)


def draw(choose: random.Random) -> Request:
    length = choose.randint(2, 26)
    tokens = tuple(choose.choice([7, 7, 7, 8]) for _ in range(length))
    items: list[Item] = []
    place = choose.randint(0, 8)
    while len(items) < 2 and place < length - 1:
        runs = []
        for _ in range(choose.randint(1, 2)):
            count = min(choose.randint(1, 6), length - place)
            if count > 0:
                runs.append((place, count))
                place += count + choose.randint(0, 2)
        known = choose.random() < 0.95
        items.append(Item(choose.randint(1, 2), choose.choice("ab"), tuple(runs), known))
        place += choose.randint(0, 3)
    return Request(
        tokens,
        tuple(items),
        choose.choice([None, None, "salt"]),
        choose.choice([None, None, (1, 1)]),
        choose.choice(["", "", "speech"]),
    )


def alter(choose: random.Random, request: Request) -> Request:
    """Another request that has much in common with the first."""
    kind = choose.randrange(11)
    items = list(request.items)
    if items and kind in (0, 1, 2, 3):
        at = choose.randrange(len(items))
        item = items[at]
        first = item.runs[0]
        items[at] = (
            replace(item, content=3 - item.content),
            replace(item, options="b" if item.options == "a" else "a"),
            replace(item, known=not item.known),
            # The first run falls in two, or its first row is no row any more.
            replace(item, runs=((first[0], 1), (first[0] + 1, first[1] - 1), *item.runs[1:]))
            if first[1] > 1 and choose.random() < 0.5
            else replace(item, runs=item.runs[1:] or item.runs),
        )[kind]
        return replace(request, items=tuple(items))
    if kind == 4:
        return replace(request, salt=choose.choice([None, "salt", "other"]))
    if kind == 5:
        return replace(request, adapter=choose.choice([None, (1, 1), (1, 2), (2, 1)]))
    if kind == 6:
        return replace(request, mode=choose.choice(["", "speech", "vision"]))
    if kind == 7:
        end = choose.randint(1, len(request.tokens))
        kept = tuple(item for item in items if item.runs[-1][0] + item.runs[-1][1] <= end)
        return replace(request, tokens=request.tokens[:end], items=kept)
    if kind == 8:
        more = tuple(choose.choice([7, 8]) for _ in range(choose.randint(1, 9)))
        return replace(request, tokens=request.tokens + more)
    if kind == 9 and items:
        # What were runs of one item are two items alike, each with a first row.
        item = items[0]
        parts = (replace(item, runs=item.runs[:1]), replace(item, runs=item.runs[1:]))
        return replace(request, items=(*(part for part in parts if part.runs), *items[1:]))
    at = choose.randrange(len(request.tokens))
    tokens = (*request.tokens[:at], 9, *request.tokens[at + 1 :])
    return replace(request, tokens=tokens)


@dataclass(frozen=True)
class Case:
    """A pair, and what happened to what the first left."""

    stored: Request
    asked: Request
    reuse: bool
    partial: bool
    fate: str  # "kept", "running" or "evicted"


def expected(case: Case) -> tuple[int, str, int]:
    """Cached tokens, reason and position, from the two requests side by side."""
    stored, asked = case.stored, case.asked
    if not case.reuse:
        return 0, "reuse_disabled", 0
    have, want = stored.keys(), asked.keys()
    end = len(have) if case.partial else len(have) // SIZE * SIZE
    have = have[: min(end, stored.shareable())] if case.fate == "kept" else []
    most = len(want) - 1
    limit = min(most, asked.shareable())
    same_scope = stored.scope() == asked.scope()
    common = 0
    while same_scope and common < min(len(have), limit) and have[common] == want[common]:
        common += 1
    # Of an incomplete block only its own tokens can be shared.
    cached = common if case.partial else common // SIZE * SIZE
    block = cached // SIZE
    if cached >= (most if case.partial else most // SIZE * SIZE):
        return cached, "complete", cached
    if block * SIZE >= asked.shareable():
        unknown = min(item.runs[0][0] for item in asked.items if not item.known)
        return cached, "unidentified_media", unknown
    whole = (block + 1) * SIZE
    equal = stored.keys()[:whole] == want[:whole] and whole <= min(len(want), stored.shareable())
    # The block that holds the last token is wanted whole only where it ends before it.
    equal = equal and whole <= most // SIZE * SIZE + (SIZE if len(want) % SIZE == 0 else 0)
    if case.fate != "kept":
        if same_scope and equal and whole <= len(stored.tokens):
            return cached, {"running": "not_committed", "evicted": "evicted"}[case.fate], cached
        return cached, "unknown", cached
    if not same_scope:
        if not equal:
            return cached, "unknown", cached
        if stored.salt != asked.salt:
            return cached, "salt", 0
        return cached, "adapter" if stored.adapter != asked.adapter else "adapter_mode", 0
    if common == len(have):
        return cached, "unknown", common  # what there is does not go further
    if common >= limit:
        return cached, "complete", common
    one, other = want[common], have[common]
    for index, reason in enumerate(("tokens", "media_identity", "media_offset", "media_runs")):
        if one[index] != other[index]:
            return cached, reason, common
    raise AssertionError("nothing differs")


def run_of(request: Request) -> MediaRuns | None:
    items = request.prompt().items
    if not items:
        return None
    runs = media_run_buffers(items)
    return MediaRuns(
        digests=runs.digests,
        identified=runs.identified,
        run_items=runs.run_items,
        run_positions=runs.run_positions,
        run_lengths=runs.run_lengths,
        item_rows=runs.item_rows,
    )


def left_behind(case: Case) -> KVCacheManager:
    """A manager in which the first request ran."""
    manager = KVCacheManager(16, SIZE, case.reuse, enable_partial_reuse=case.partial)
    tokens = np.array(case.stored.tokens, np.int32)
    manager.add_sequence(1, tokens, run_of(case.stored), case.stored.scope(), 1)
    if case.fate == "running":
        return manager
    manager.commit(1, len(tokens))
    manager.free_sequence(1)
    if case.fate == "evicted":
        manager.refresh(1000)
        crowd = np.full(16 * SIZE, 99, np.int32)
        manager.add_sequence(2, crowd, None, ReuseScope("crowd"), 1)
        manager.free_sequence(2)
        manager.refresh(8000)
        assert manager.stats().cached_num_blocks == 0
    return manager


def decode(tokens: list[int]) -> str:
    return " ".join(map(str, tokens))


def test_random_pairs_of_requests() -> None:
    choose = random.Random(SEED)
    reasons: Counter[str] = Counter()
    altered: Counter[bool] = Counter()
    for number in range(PAIRS):
        first = draw(choose)
        second = alter(choose, first) if choose.random() < 0.8 else draw(choose)
        fate = choose.choice(["kept"] * 6 + ["running", "evicted"])
        case = Case(first, second, choose.random() < 0.97, choose.random() < 0.5, fate)
        manager = left_behind(case)
        found = manager.explain(
            np.array(second.tokens, np.int32), run_of(second), second.scope(), True
        )
        context = f"seed {SEED}, pair {number}: {case}"
        assert (found.cached_tokens, found.reason, found.position) == expected(case), context
        assert found.block == found.cached_tokens // SIZE, context
        assert found.evicted_ms == (7000 if found.reason == "evicted" else None), context
        report = MatchReport(
            found.cached_tokens, found.reason, found.block, found.position, found.evicted_ms
        )
        told = explain(second.prompt(), report, Pool(SIZE, 64, case.partial), decode)
        assert sum(segment.cached for segment in told.segments) == found.cached_tokens, context
        assert sum(segment.length for segment in told.segments) == len(second.tokens), context
        assert f"{found.cached_tokens} of {len(second.tokens)} tokens" in told.message, context
        in_item = [
            f"image {index + 1}"
            for index, item in enumerate(second.items)
            if any(begin <= found.position < begin + count for begin, count in item.runs)
        ]
        if found.reason.startswith("media") and in_item:
            assert f"{in_item[0]} (part " in told.message, context
        reasons[found.reason] += 1
        altered[found.cached_tokens > 0] += 1
        # What was explained is what happens.
        if fate == "kept":
            allocation = manager.add_sequence(
                3, np.array(second.tokens, np.int32), run_of(second), second.scope(), 1
            )
            assert allocation.cached_tokens == found.cached_tokens, context
    print(dict(reasons))
    assert min(altered.values()) > PAIRS / 5, altered
    assert set(reasons) == REASONS, REASONS ^ set(reasons)
