# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""What may be found: the book that a model keeps by itself, and what the manager's events say."""

from __future__ import annotations

import json
from dataclasses import dataclass

from tests.unittest.bindings.cache_prompts import Name, Prompt, Span, block_name, root_name

MAX_CANDIDATES = 16  # children that begin with the same token, looked at by a partial match


@dataclass(frozen=True)
class Block:
    """A block that somebody could have stored."""

    parent: Name
    tokens: tuple[int, ...]
    spans: tuple[Span, ...]

    def head(self, count: int) -> tuple[object, ...]:
        """Its first tokens, media cut at the same length."""
        cut = [(*span[:3], min(span[3], count - span[2])) for span in self.spans]
        return (self.tokens[:count], tuple(span for span in cut if span[3] > 0))

    def common(self, other: Block) -> int:
        """Length of the longest equal heads."""
        most = min(len(self.tokens), len(other.tokens))
        return next(n for n in range(most, -1, -1) if self.head(n) == other.head(n))


class BlockBook:
    """All blocks that were ever written, by name, and those that are findable now.

    ``exact`` is whether ``present`` is known to be right. Without events it is an upper bound from
    the first eviction on, until a reset.
    """

    def __init__(self, tokens_per_block: int) -> None:
        self.size = tokens_per_block
        self.known: dict[Name, Block] = {}
        self.present: set[Name] = set()
        self.exact = True

    def block_of(self, prompt: Prompt, parent: Name, begin: int, end: int) -> Block:
        return Block(parent, prompt.tokens[begin:end], prompt.block_spans(begin, end))

    def enter(self, block: Block) -> Name:
        name = block_name(block.parent, block.tokens, block.spans)
        self.known[name] = block
        return name

    def names(self, prompt: Prompt, num_blocks: int) -> list[Name]:
        """The names of a prompt's first whole blocks."""
        found, parent = [], root_name(prompt.scope)
        for begin in range(0, num_blocks * self.size, self.size):
            parent = self.enter(self.block_of(prompt, parent, begin, begin + self.size))
            found.append(parent)
        return found

    def shareable(self, prompt: Prompt, reuse: bool) -> int:
        """How many blocks may be shared at all."""
        unknown = prompt.first_unidentified()
        if not reuse:
            return 0
        return 1 << 40 if unknown is None else unknown // self.size

    def whole(self, prompt: Prompt, reuse: bool) -> list[Name]:
        """The findable whole blocks with which a prompt begins; its last token is left out."""
        most = min((len(prompt.tokens) - 1) // self.size, self.shareable(prompt, reuse))
        found = []
        for name in self.names(prompt, most):
            if name not in self.present:
                break
            found.append(name)
        return found

    def children(self, parent: Name) -> list[Name]:
        return [name for name in self.present if self.known[name].parent == parent]

    def partial(self, prompt: Prompt, whole: list[Name], reuse: bool) -> tuple[int, list[Name]]:
        """Most tokens that a child of the last whole block shares, and the children that do."""
        begin = len(whole) * self.size
        end = min(begin + self.size, len(prompt.tokens) - 1)
        if len(whole) >= self.shareable(prompt, reuse) or end <= begin:
            return 0, []
        parent = whole[-1] if whole else root_name(prompt.scope)
        wanted = self.block_of(prompt, parent, begin, end)
        lengths = {name: self.known[name].common(wanted) for name in self.children(parent)}
        best = max(lengths.values(), default=0)
        return best, [name for name, length in lengths.items() if length == best > 0]

    def settle(
        self, must: set[Name], may: set[Name], lost: range, seen: set[Name] | None, count: int
    ) -> set[Name]:
        """Takes what is findable after an operation; gives what it lost.

        Args:
            must: Names that are there but for those given up.
            may: Names that can be there.
            lost: How many of ``must`` can be gone.
            seen: What the events say, None where nobody listens.
            count: What the statistics say.
        """
        if seen is None:
            assert count <= len(may)
            assert not self.exact or len(must) - count < lost.stop
            self.exact &= count == len(may)
            self.present = set(may)
            return set()
        assert len(seen) == count
        assert seen <= may, "findable and never stored"
        gone = must - seen
        assert len(gone) in lost, f"{len(gone)} blocks are gone, expected {lost}"
        self.present = set(seen)
        return gone


@dataclass
class Told:
    """What an outsider knows of a block."""

    parent: str | None
    level: int
    priority: int


class EventFollower:
    """Somebody outside, who knows only the lines of JSON."""

    def __init__(self) -> None:
        self.blocks: dict[str, Told] = {}
        self.next_id = 0
        self.skipped = 0

    def follow(self, lines: list[str], whole: bool) -> None:
        """Reads lines. With ``whole`` none is missing, so they have to add up."""
        for line in lines:
            event = json.loads(line)
            self.skipped += event["event_id"] - self.next_id
            self.next_id = event["event_id"] + 1
            if whole:
                assert self.skipped == 0
                getattr(self, event["data"]["type"])(event["data"])

    def created(self, data: dict[str, object]) -> None:
        assert not self.blocks

    def stored(self, data: dict) -> None:
        parent = data["parent_hash"]
        for block in data["blocks"]:
            name = block["block_hash"]
            assert name not in self.blocks, "stored twice"
            assert parent is None or parent in self.blocks, "stored below nothing"
            self.blocks[name] = Told(parent, block["cache_level"], block["priority"])
            parent = name

    def removed(self, data: dict) -> None:
        for name in data["block_hashes"]:
            del self.blocks[name]
        # Blocks removed in one event are removed together, so their order is not looked at.
        parents = {told.parent for told in self.blocks.values()} - {None}
        assert not parents & set(data["block_hashes"]), "removed above a block that stays"

    def updated(self, data: dict) -> None:
        told = self.blocks[data["block_hash"]]
        for field in ("cache_level", "priority"):
            if (change := data[field]) is not None:
                attribute = "level" if field == "cache_level" else field
                assert getattr(told, attribute) == change["old_value"]
                setattr(told, attribute, change["new_value"])

    def check(self, known: dict[Name, Block]) -> set[Name]:
        """The names, each a block that was written and lies where its name says."""
        names = set()
        for text, told in self.blocks.items():
            name = bytes.fromhex(text)
            if told.parent is not None:
                assert known[name].parent.hex() == told.parent
            names.add(name)
        return names
