# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""A KV cache manager of which every answer is checked against a book of what is findable.

Where copies are under way, the book knows only bounds, since blocks that a copy holds are passed
over; otherwise it predicts each answer exactly.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace

import numpy as np

from tensorrt_llm.bindings import KVCacheManager, KvCacheRetentionConfig, KvCacheStats
from tests.unittest.bindings.cache_findable import Block, BlockBook, EventFollower
from tests.unittest.bindings.cache_prompts import Contents, Name, Prompt, Scope, root_name

STATISTICS = [name for name, value in vars(KvCacheStats).items() if isinstance(value, property)]
DEFAULT_PRIORITY = 35


def statistics(manager: KVCacheManager) -> dict[str, float]:
    stats = manager.stats()
    return {name: getattr(stats, name) for name in STATISTICS}


@dataclass(frozen=True)
class Settings:
    """What a manager is made with."""

    num_blocks: int
    tokens_per_block: int
    reuse: bool
    partial: bool
    copy_on_partial: bool
    host_blocks: int
    offload_min_priority: int
    event_buffer: int

    @property
    def listens(self) -> bool:
        return self.event_buffer > 1000

    def make(self) -> KVCacheManager:
        return KVCacheManager(
            self.num_blocks,
            self.tokens_per_block,
            self.reuse,
            enable_partial_reuse=self.partial,
            copy_on_partial_reuse=self.copy_on_partial,
            host_blocks=self.host_blocks,
            secondary_offload_min_priority=self.offload_min_priority,
            event_buffer_max_size=self.event_buffer,
        )


@dataclass
class Live:
    """A sequence."""

    prompt: Prompt  # with the tokens that were appended
    prompt_length: int
    max_tokens: int
    slots: int
    contents: list[int]
    shareable: int  # blocks that may be shared
    written: int  # committed tokens
    filled: int  # tokens whose KV lies in memory
    held: list[Name]  # its leading findable blocks
    retention: KvCacheRetentionConfig | None
    sure: bool = True  # whether it still makes blocks findable is known
    keep: bool = True
    priorities: dict[Name, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Outlook:
    """What the book says about a prompt before it is added."""

    whole: list[Name]
    best: int
    candidates: list[Name]
    need: int | None  # device blocks it takes, where that is known
    available: int


class CheckedManager:
    """One call at a time, each checked."""

    def __init__(self, settings: Settings, counts: Counter[str]) -> None:
        self.settings = settings
        self.size = settings.tokens_per_block
        self.counts = counts
        self.manager = settings.make()
        self.book = BlockBook(self.size)
        self.contents = Contents()
        self.follower = EventFollower()
        self.live: dict[int, Live] = {}
        self.ending: list[Live] = []  # ended while a copy was under way
        self.scopes: set[Scope] = set()  # of all that was ever added
        self.follow()

    # What is known.

    def tokens(self, prompt: Prompt) -> np.ndarray:
        return np.array(prompt.tokens, np.int32)

    def blocks_for(self, num_tokens: int) -> int:
        return -(-num_tokens // self.size)

    def slots(self, prompt_length: int, max_new_tokens: int) -> int:
        return prompt_length + max(max_new_tokens, 1) - 1

    def held(self) -> set[Name]:
        return {name for live in self.live.values() for name in live.held}

    def is_certain(self) -> bool:
        if self.manager.stats().pending_copies == 0:
            self.ending.clear()
        certain = self.book.exact and not self.ending
        return (
            certain
            and self.manager.stats().pending_copies == 0
            and all(live.sure for live in self.live.values())
        )

    def on_host(self, name: Name) -> bool | None:
        """None: nobody can tell."""
        if not self.settings.host_blocks:
            return False
        return self.follower.blocks[name.hex()].level == 1 if self.settings.listens else None

    def follow(self) -> set[Name] | None:
        """Reads the events; gives the findable names, None where not all are heard."""
        self.manager.flush_events()
        self.follower.follow(self.manager.take_events(1 << 20), self.settings.listens)
        if not self.settings.listens:
            return None
        return self.follower.check(self.book.known)

    def settle(
        self, before: dict[str, float], must: set[Name], may: set[Name], extra: range
    ) -> set[Name]:
        """Compares what is findable after an operation; ``extra`` may be lost beside evictions."""
        after = self.manager.stats()
        evicted = int(after.evicted_blocks - before["evicted_blocks"])
        priorities = {name: told.priority for name, told in self.follower.blocks.items()}
        gone = self.book.settle(
            must,
            may,
            range(extra.start + evicted, extra.stop + evicted),
            self.follow(),
            after.cached_num_blocks,
        )
        self.counts["evicted"] += evicted
        for name in ("offloaded_blocks", "onboarded_blocks", "partial_reused_blocks"):
            self.counts[name] += int(getattr(after, name) - before[name])
        if not self.settings.listens:
            return gone
        assert self.held() <= self.book.present, "a live sequence lost a block"
        if evicted == len(gone) == 1 and not self.settings.host_blocks and self.is_certain():
            self.check_victim(next(iter(gone)), priorities)
        return gone

    def check_victim(self, victim: Name, priorities: dict[str, int]) -> None:
        """No idle leaf that stayed had a lower priority; the victim's parent was no leaf yet."""
        parents = {self.book.known[name].parent for name in self.book.present | {victim}}
        for name in self.book.present - self.held():
            if name not in parents:
                assert priorities[name.hex()] >= priorities[victim.hex()]
                self.counts["victims compared"] += 1

    # Adding.

    def look_up(self, prompt: Prompt, num_blocks: int) -> Outlook:
        stats, certain = self.manager.stats(), self.is_certain()
        whole = self.book.whole(prompt, self.settings.reuse)
        best, candidates = 0, list[Name]()
        if self.settings.partial:
            best, candidates = self.book.partial(prompt, whole, self.settings.reuse)
        idle = sum(name not in self.held() for name in whole)
        need = num_blocks - len(whole) + idle if certain else None
        available = stats.free_num_blocks - stats.reserved_num_blocks
        return Outlook(whole, best, candidates, need, available)

    def can_be_taken_over(self, name: Name) -> bool:
        return name not in self.held() and not self.book.children(name) and not self.on_host(name)

    def possible(self, outlook: Outlook, need: int | None) -> set[int]:
        """The cached tokens that a look-up may give."""
        base = len(outlook.whole) * self.size
        if not self.book.exact:
            return set(range(base + outlook.best + 1))
        found = {base + outlook.best}
        for name in outlook.candidates:
            if need is None or self.on_host(name) is None:
                found.add(base)
                continue
            idle = name not in self.held() and not self.on_host(name)
            copied = self.settings.copy_on_partial and need + idle <= outlook.available
            if not copied and not self.can_be_taken_over(name):
                found.add(base)
        return found

    def probe(self, prompt: Prompt) -> int:
        outlook = self.look_up(prompt, 0)
        found = self.manager.probe(self.tokens(prompt), prompt.media(), prompt.scope.reuse_scope())
        need = 0 if outlook.need is not None else None
        assert found in self.possible(outlook, need), (found, outlook)
        return found

    def add(
        self,
        sequence_id: int,
        prompt: Prompt,
        max_new_tokens: int,
        retention: KvCacheRetentionConfig | None,
    ) -> int:
        """Gives the cached tokens, or -1."""
        length = len(prompt.tokens)
        slots = self.slots(length, max_new_tokens)
        total = self.blocks_for(slots)
        outlook, probed = self.look_up(prompt, total), self.probe(prompt)
        before = statistics(self.manager)
        self.scopes.add(prompt.scope)
        got = self.manager.add_sequence(
            sequence_id,
            self.tokens(prompt),
            prompt.media(),
            prompt.scope.reuse_scope(),
            max_new_tokens,
            retention,
        )
        refused = got is None
        if outlook.need is not None:
            assert refused == (outlook.need > outlook.available)
        if got is None:
            assert total > outlook.available
            assert statistics(self.manager) == before
            self.settle(before, self.book.present, self.book.present, range(1))
            self.counts["refused"] += 1
            return -1
        cached = got.cached_tokens
        assert cached in self.possible(outlook, outlook.need), (cached, outlook)
        assert cached < length
        assert cached == probed or outlook.available <= total
        assert got.num_blocks == self.blocks_for(length)
        self.live[sequence_id] = Live(
            prompt,
            length,
            length + max_new_tokens,
            slots,
            self.contents.of(prompt.scope, prompt.meanings(sequence_id)),
            self.book.shareable(prompt, self.settings.reuse),
            cached,
            cached,
            outlook.whole[: cached // self.size],
            retention,
        )
        part = cached % self.size
        lost = self.taken_over(outlook) if part else range(1)
        gone = self.settle(before, self.book.present, self.book.present, lost)
        self.counts["take-overs"] += (
            len(gone) > self.manager.stats().evicted_blocks - before["evicted_blocks"]
        )
        self.counts["cached tokens"] += cached
        return cached

    def taken_over(self, outlook: Outlook) -> range:
        """How many blocks a partial match may take out of the tree."""
        if outlook.need is None or not self.book.exact:
            return range(2)
        able = [self.can_be_taken_over(name) for name in outlook.candidates]
        # What was a leaf before may have got a new holder since; the new sequence holds no tail.
        least = all(able) and not self.settings.copy_on_partial
        return range(int(least), int(any(able)) + 1)

    # The life of a sequence.

    def append(self, sequence_id: int, tokens: list[int]) -> None:
        live, before = self.live[sequence_id], statistics(self.manager)
        self.manager.append_tokens(sequence_id, np.array(tokens, np.int32))
        for token in tokens:
            live.contents.append(self.contents.after(live.contents[-1], token))
        live.prompt = replace(live.prompt, tokens=live.prompt.tokens + tuple(tokens))
        self.settle(before, self.book.present, self.book.present, range(1))

    def commit(self, sequence_id: int, num_written: int) -> bool:
        live, before = self.live[sequence_id], statistics(self.manager)
        copying = self.manager.stats().pending_copies > 0
        must, changed = set(self.book.present), False
        end = min(num_written // self.size, live.shareable)
        names = self.book.names(live.prompt, end)
        for name in names[len(live.held) :] if live.sure else []:
            if name in must or not self.book.exact:
                # While a copy is under way a sequence may stop sharing rather than wait.
                live.sure = not copying and self.book.exact
                if not live.sure:
                    break
                changed = True
            must.add(name)
            live.held.append(name)
        table_changed = self.manager.commit(sequence_id, num_written)
        if live.sure and self.book.exact:
            assert table_changed == changed
        self.counts["equal block found"] += table_changed
        live.written = num_written
        new = must - self.book.present
        self.settle(before, must, must | set(names), range(1))
        for name in new & self.book.present if self.settings.listens else ():
            index = names.index(name)
            assert self.follower.blocks[name.hex()].priority == self.priority(live, index)
        return table_changed

    def priority(self, live: Live, index: int) -> int:
        """What the sequence asked for: the block belongs to the range of its first token."""
        if live.retention is None:
            return DEFAULT_PRIORITY
        position = index * self.size
        if position >= live.prompt_length:
            return live.retention.decode_retention_priority
        for part in live.retention.token_range_retention_configs:
            if part.token_start <= position and (
                part.token_end is None or position < part.token_end
            ):
                return part.priority
        return DEFAULT_PRIORITY

    def fork(self, source: int, sequence_id: int) -> int:
        """Gives the written tokens, or -1."""
        origin, before = self.live[source], statistics(self.manager)
        new = self.blocks_for(origin.slots) - origin.written // self.size
        got = self.manager.fork(source, sequence_id)
        available = before["free_num_blocks"] - before["reserved_num_blocks"]
        assert (got is None) == (new > available)
        if got is None:
            assert statistics(self.manager) == before
            self.counts["refused forks"] += 1
            return -1
        assert got.cached_tokens == origin.written
        self.live[sequence_id] = replace(
            origin,
            contents=list(origin.contents),
            held=list(origin.held),
            filled=origin.written,
        )
        self.settle(before, self.book.present, self.book.present, range(1))
        self.counts["forks"] += 1
        return got.cached_tokens

    def rewind(self, sequence_id: int, num_tokens: int) -> None:
        live, before = self.live[sequence_id], statistics(self.manager)
        self.counts["rewinds"] += num_tokens < len(live.contents)
        self.manager.rewind(sequence_id, num_tokens)
        del live.contents[num_tokens:]
        live.prompt = replace(live.prompt, tokens=live.prompt.tokens[:num_tokens])
        live.filled = min(live.filled, num_tokens)
        self.settle(before, self.book.present, self.book.present, range(1))

    def free(self, sequence_id: int, keep: bool) -> None:
        before, certain = statistics(self.manager), self.is_certain()
        copying = self.manager.stats().pending_copies > 0
        ending = self.live.pop(sequence_id)
        ending.keep = keep
        if copying:
            self.ending.append(ending)
        self.manager.free_sequence(sequence_id, keep)
        if not certain:
            self.settle_endings(before, [ending])
            return
        present = set(self.book.present)
        if keep and (tail := self.tail(ending)) is not None:
            children = self.book.children(tail.parent)
            length = len(tail.tokens)
            if all(self.book.known[name].common(tail) < length for name in children):
                present.add(self.book.enter(tail))
                self.counts["tails kept"] += 1
        for name in [] if keep else reversed(ending.held):
            self.book.present = present
            if name not in self.held() and not self.book.children(name):
                present.discard(name)
        self.settle(before, present, present, range(1))

    def tail(self, ending: Live) -> Block | None:
        """The written head of its last block, where that may be kept."""
        # What made all its blocks findable, as far as anybody can tell, may keep the rest.
        whole = len(ending.held) if ending.sure else ending.written // self.size
        begin = whole * self.size
        if not self.settings.partial or begin >= ending.written:
            return None
        if whole >= ending.shareable or ending.written - begin >= self.size:
            return None
        names = self.book.names(ending.prompt, whole)
        parent = names[-1] if names else root_name(ending.prompt.scope)
        return self.book.block_of(ending.prompt, parent, begin, ending.written)

    def settle_endings(self, before: dict[str, float], ended: list[Live]) -> None:
        """What sequences leave behind, where a copy may still hold it."""
        must, may = set(self.book.present), set(self.book.present)
        for ending in ended:
            end = min(ending.written // self.size, ending.shareable)
            if ending.keep and (tail := self.tail(ending)) is not None:
                may.add(self.book.enter(tail))
            elif not ending.keep:
                must -= set(self.book.names(ending.prompt, end)) - self.held()
        self.settle(before, must, may, range(1))

    def copies_done(self, ticket: int) -> None:
        before = statistics(self.manager)
        self.manager.copies_done(ticket)
        self.settle_endings(before, self.ending)

    def refresh(self, now: int) -> None:
        before = statistics(self.manager)
        self.manager.refresh(now)
        # A priority that falls back is an event, and may push an older one out of a small buffer.
        assert {**statistics(self.manager), "dropped_events": 0} == {**before, "dropped_events": 0}
        self.settle(before, self.book.present, self.book.present, range(1))

    def reset(self) -> int:
        before, certain = statistics(self.manager), self.is_certain()
        idle = len(self.book.present - self.held())
        dropped = self.manager.reset_reuse_state()
        assert not certain or dropped == idle
        for live in [*self.live.values(), *self.ending]:
            live.held, live.shareable, live.sure = [], 0, True
        self.settle(before, set(), set(), range(1))
        self.book.exact = True
        return dropped
