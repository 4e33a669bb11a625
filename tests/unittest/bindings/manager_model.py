# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""A slow, obvious model of the KV cache manager: prefixes as tuples, no hashes, no trees."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field

Token = tuple[object, ...]  # (id,) for text, (id, digest, row) for media
Path = tuple[object, ...]  # the scope, then every token from the start
UNKNOWN: Token = ("?",)


@dataclass
class Live:
    """A sequence: what its tokens mean, and the name of each block (None while it is private)."""

    scope: object
    tokens: list[Token]
    slots: int
    total_blocks: int
    blocks: list[Path | None] = field(default_factory=list)
    shareable: bool = True


class PrefixModel:
    """What may be found, who holds it, and what goes first when there is no room."""

    def __init__(self, num_blocks: int, tokens_per_block: int, reuse: bool) -> None:
        self.num_blocks = num_blocks
        self.size = tokens_per_block
        self.reuse = reuse
        self.live: dict[int, Live] = {}
        self.findable: dict[Path, int] = {}  # path -> when it was last let go
        self.evicted = 0
        self.clock = itertools.count(1)

    def paths(self, live: Live, num_tokens: int) -> list[Path]:
        """Whole blocks in the first tokens, up to the first token without identity."""
        known = list(itertools.takewhile(lambda t: t != UNKNOWN, live.tokens[:num_tokens]))
        ends = range(self.size, len(known) + 1, self.size)
        return [(live.scope, *known[:end]) for end in ends] if self.reuse else []

    def holders(self, path: Path) -> int:
        return sum(live.blocks.count(path) for live in self.live.values())

    def idle(self) -> list[Path]:
        return [path for path in self.findable if not self.holders(path)]

    def used(self) -> int:
        blocks = [block for live in self.live.values() for block in live.blocks]
        return blocks.count(None) + len({block for block in blocks if block is not None})

    def reserved(self) -> int:
        return sum(live.total_blocks - len(live.blocks) for live in self.live.values())

    def matched(self, scope: object, tokens: list[Token]) -> list[Path]:
        candidate = Live(scope, tokens, 0, 0)
        return list(
            itertools.takewhile(
                lambda path: path in self.findable, self.paths(candidate, len(tokens) - 1)
            )
        )

    def need(self, prompt_length: int, max_new_tokens: int) -> tuple[int, int]:
        """Slots and blocks."""
        slots = prompt_length + max(max_new_tokens, 1) - 1
        return slots, -(-slots // self.size)

    def add(
        self, sequence_id: int, scope: object, tokens: list[Token], max_new_tokens: int
    ) -> int | None:
        slots, total = self.need(len(tokens), max_new_tokens)
        matched = self.matched(scope, tokens)
        idle = sum(not self.holders(path) for path in matched)
        if total - len(matched) + idle > self.num_blocks - self.used() - self.reserved():
            return None
        live = Live(scope, list(tokens), slots, total, list(matched))
        self.live[sequence_id] = live
        self.grow(live)
        return len(matched) * self.size

    def append(self, sequence_id: int, token: int) -> None:
        self.live[sequence_id].tokens.append((token,))
        self.grow(self.live[sequence_id])

    def grow(self, live: Live) -> None:
        while len(live.blocks) < min(-(-len(live.tokens) // self.size), live.total_blocks):
            idle = self.idle()
            if self.used() + len(idle) == self.num_blocks:
                del self.findable[min(idle, key=self.findable.__getitem__)]
                self.evicted += 1
            live.blocks.append(None)

    def commit(self, sequence_id: int, num_written: int) -> bool:
        """Whether an equal block was findable already."""
        live = self.live[sequence_id]
        changed = False
        for index, path in enumerate(self.paths(live, num_written) if live.shareable else []):
            if live.blocks[index] is None:
                changed |= path in self.findable
                self.findable.setdefault(path, 0)
                live.blocks[index] = path
        return changed

    def free(self, sequence_id: int) -> None:
        for path in reversed(self.live.pop(sequence_id).blocks):
            if path in self.findable and not self.holders(path):
                self.findable[path] = next(self.clock)

    def reset(self) -> int:
        dropped = len(self.idle())
        generation = ("dropped", next(self.clock))
        for live in self.live.values():
            live.shareable = False
            # Tables that share a block go on sharing it, under a name that no prompt has.
            live.blocks = [
                (generation, *block) if block in self.findable and block is not None else block
                for block in live.blocks
            ]
        self.findable.clear()
        return dropped
