# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Every operation of the KV cache manager in any order, on two managers and a memory.

One manager is given single calls, each checked against a book of what is findable; the other the
same work in batch calls, and has to stay equal. The memory holds a number for the KV of each token,
written where the block tables say and copied as the plans say, at any time that the rules of copy
plans allow.
"""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tensorrt_llm.bindings import (
    CapacityExceededError,
    CopyKind,
    InvalidArgumentError,
    InvalidMediaRunsError,
    KvCacheError,
    KVCacheManager,
    KvCacheRetentionConfig,
    UnknownSequenceError,
)
from tests.unittest.bindings.cache_checked import (
    CheckedManager,
    EventFollower,
    Live,
    Settings,
    statistics,
)
from tests.unittest.bindings.cache_explanations import check_explanation
from tests.unittest.bindings.cache_memory import CacheMemory
from tests.unittest.bindings.cache_prompts import Item, Prompt, Run, media_batch
from tests.unittest.bindings.cache_strategies import REQUESTS, SCOPES, TEXT, retentions, settings


def ids(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


class CacheMachine(RuleBasedStateMachine):
    """See the module; ``counts`` gathers over all examples what happened."""

    def __init__(self, counts: Counter[str]) -> None:
        super().__init__()
        self.counts = counts

    @initialize(chosen=settings(), prompt_copies=st.booleans())
    def start(self, chosen: Settings, prompt_copies: bool) -> None:
        self.settings = chosen
        self.size = chosen.tokens_per_block
        self.checked = CheckedManager(chosen, self.counts)
        self.batched = chosen.make()
        self.outside = EventFollower()
        self.memory = CacheMemory(chosen.num_blocks, chosen.host_blocks, self.size)
        self.prompt_copies = prompt_copies  # copies are done at once, so that all is certain
        self.past: list[Prompt] = []
        self.next_id = 0
        self.now = 0

    # Helpers.

    @property
    def live(self) -> dict[int, Live]:
        return self.checked.live

    def new_id(self) -> int:
        self.next_id += 1
        return self.next_id

    def pick(self, places: list[int]) -> list[int]:
        """Different live sequences."""
        known = sorted(self.live)
        return list(dict.fromkeys(known[place % len(known)] for place in places))

    def table(self, sequence_id: int) -> list[int]:
        return self.checked.manager.block_ids(sequence_id).tolist()

    def take(self) -> None:
        plan, other = self.checked.manager.take_copy_plan(), self.batched.take_copy_plan()
        assert plan.ticket == other.ticket
        assert plan.entries.tolist() == other.entries.tolist()
        self.memory.receive(plan)

    def tell_done(self, ticket: int) -> None:
        self.checked.copies_done(ticket)
        self.batched.copies_done(ticket)
        self.memory.done = ticket

    # Operations.

    def add_all(
        self, requests: list[tuple[Prompt, int, KvCacheRetentionConfig | None]]
    ) -> list[int]:
        """Adds those that the pool can ever hold, and sees that the others are refused."""
        admissible = []
        for prompt, max_new_tokens, retention in requests:
            slots = self.checked.slots(len(prompt.tokens), max_new_tokens)
            if self.checked.blocks_for(slots) <= self.settings.num_blocks:
                admissible.append((self.new_id(), prompt, max_new_tokens, retention))
            else:
                self.refuse(
                    CapacityExceededError,
                    lambda m, p=prompt, n=max_new_tokens: self.add_batch(
                        m, [(1 << 40, Prompt((1,), SCOPES[0]), 0, None), (1 << 41, p, n, None)]
                    ),
                )
        if not admissible:
            return []
        for _, prompt, _, _ in admissible:
            self.past.append(prompt)
            reason = check_explanation(self.checked, prompt, self.checked.probe(prompt))
            self.counts[f"explained: {reason}"] += 1
        cached = [self.checked.add(*request) for request in admissible]
        assert self.add_batch(self.batched, admissible) == cached
        self.counts["batches"] += len(admissible) > 1
        added = zip(admissible, cached, strict=True)
        return [request[0] for request, tokens in added if tokens >= 0]

    def add_batch(
        self,
        manager: KVCacheManager,
        requests: list[tuple[int, Prompt, int, KvCacheRetentionConfig | None]],
    ) -> list[int]:
        chosen = [prompt for _, prompt, _, _ in requests]
        lengths = [0, *(len(prompt.tokens) for prompt in chosen)]
        retention = [request[3] for request in requests]
        return manager.add_sequence_batch(
            ids(*(request[0] for request in requests)),
            np.concatenate([self.checked.tokens(prompt) for prompt in chosen]),
            np.cumsum(ids(*lengths)),
            media_batch(chosen) if any(prompt.runs for prompt in chosen) else None,
            [prompt.scope.reuse_scope() for prompt in chosen],
            ids(*(request[2] for request in requests)),
            retention if any(retention) else None,
        ).tolist()

    def write(self, sequence_id: int, end: int) -> None:
        """A step of the engine: the KV of all tokens up to ``end``, after all plans."""
        live = self.live[sequence_id]
        if end <= live.filled:
            return
        self.take()
        self.memory.write(self.table(sequence_id), live.filled, live.contents[live.filled : end])
        live.filled = end

    def top(self, sequence_id: int) -> int:
        live = self.live[sequence_id]
        return min(len(live.contents), live.slots)

    def commit_all(self, targets: dict[int, int]) -> None:
        for sequence_id, target in targets.items():
            self.write(sequence_id, target)
        changed = [self.checked.commit(*target) for target in targets.items()]
        found = self.batched.commit_batch(ids(*targets), ids(*targets.values()))
        assert found.tolist() == changed

    def append_all(
        self, sequence_ids: list[int], tokens: list[int], *, early: bool = False
    ) -> None:
        for token in tokens:
            for sequence_id in sequence_ids:
                self.checked.append(sequence_id, [token])
            named = np.full(len(sequence_ids), token, np.int32)
            if early:
                self.batched.grow_batch(ids(*sequence_ids))
                self.batched.name_batch(ids(*sequence_ids), named)
                self.counts["named later"] += 1
            else:
                self.batched.append_batch(ids(*sequence_ids), named)

    def free_all(self, sequence_ids: list[int], keep: bool) -> None:
        for sequence_id in sequence_ids:
            self.past.append(self.live[sequence_id].prompt)
            self.checked.free(sequence_id, keep)
        self.batched.free_batch(ids(*sequence_ids), keep)
        self.counts["freed without keeping"] += not keep

    # Rules.

    @rule(requests=st.lists(REQUESTS, min_size=1, max_size=3))
    def add(self, requests: list[tuple[Prompt, int, KvCacheRetentionConfig | None]]) -> None:
        self.add_all(requests)

    @rule(
        requests=st.lists(REQUESTS, min_size=1, max_size=3),
        tokens=st.lists(st.integers(TEXT, TEXT + 1), max_size=3),
        keep=st.integers(0, 5),
    )
    def run_whole(
        self,
        requests: list[tuple[Prompt, int, KvCacheRetentionConfig | None]],
        tokens: list[int],
        keep: int,
    ) -> None:
        """Requests from their first step to their last."""
        added = self.add_all(requests)
        if not added:
            return
        self.commit_all({sequence_id: self.top(sequence_id) for sequence_id in added})
        room = min(self.live[s].max_tokens - len(self.live[s].contents) for s in added)
        self.append_all(added, tokens[:room])
        self.commit_all({sequence_id: self.top(sequence_id) for sequence_id in added})
        self.free_all(added, keep > 0)

    @precondition(lambda self: self.past)
    @rule(
        place=st.integers(0, 99),
        cut=st.integers(1, 24),
        more=st.lists(st.integers(TEXT, TEXT + 1), max_size=4),
        max_new_tokens=st.integers(0, 8),
        retention=retentions(),
    )
    def add_again(
        self,
        place: int,
        cut: int,
        more: list[int],
        max_new_tokens: int,
        retention: KvCacheRetentionConfig | None,
    ) -> None:
        """What was there before, cut or gone on with."""
        old = self.past[-1 - place % len(self.past)]
        end = max((run.position + run.length for run in old.runs), default=0)
        tokens = old.tokens[: max(end, cut)] + tuple(more)
        self.add_all([(Prompt(tokens, old.scope, old.items, old.runs), max_new_tokens, retention)])

    @precondition(lambda self: self.live)
    @rule(places=st.lists(st.integers(0, 99), min_size=1, max_size=3), parts=st.integers(0, 4))
    def commit(self, places: list[int], parts: int) -> None:
        """Commits a part of what could be, and sometimes writes more than that."""
        targets = {}
        for sequence_id in self.pick(places):
            written, top = self.live[sequence_id].written, self.top(sequence_id)
            self.write(sequence_id, top if parts % 2 else written)
            targets[sequence_id] = written + (top - written) * parts // 4
        self.commit_all(targets)

    @precondition(lambda self: self.live)
    @rule(
        places=st.lists(st.integers(0, 99), min_size=1, max_size=3),
        tokens=st.lists(st.integers(TEXT, TEXT + 1), min_size=1, max_size=3),
        early=st.booleans(),
    )
    def append(self, places: list[int], tokens: list[int], early: bool) -> None:
        chosen = self.pick(places)
        room = min(self.live[s].max_tokens - len(self.live[s].contents) for s in chosen)
        self.append_all(chosen, tokens[:room], early=early)

    @precondition(lambda self: self.live)
    @rule(place=st.integers(0, 99))
    def fork(self, place: int) -> None:
        (source,) = self.pick([place])
        sequence_id = self.new_id()
        self.checked.fork(source, sequence_id)
        self.batched.fork(source, sequence_id)

    @precondition(lambda self: self.live)
    @rule(place=st.integers(0, 99), back=st.integers(0, 4))
    def rewind(self, place: int, back: int) -> None:
        (chosen,) = self.pick([place])
        live = self.live[chosen]
        target = max(live.prompt_length, live.written, len(live.contents) - back)
        self.checked.rewind(chosen, target)
        self.batched.rewind(chosen, target)

    @precondition(lambda self: self.live)
    @rule(places=st.lists(st.integers(0, 99), min_size=1, max_size=3), keep=st.integers(0, 3))
    def free(self, places: list[int], keep: int) -> None:
        self.free_all(self.pick(places), keep > 0)

    @rule(elapsed=st.integers(0, 12))
    def refresh(self, elapsed: int) -> None:
        self.now += elapsed
        self.checked.refresh(self.now)
        self.batched.refresh(self.now)

    @rule(luck=st.integers(0, 5))
    def reset(self, luck: int) -> None:
        if luck == 0:
            assert self.checked.reset() == self.batched.reset_reuse_state()
            self.counts["resets"] += 1

    @rule(plans=st.integers(0, 3), told=st.integers(0, 3))
    def copy(self, plans: int, told: int) -> None:
        """Some plans run, and some that ran are said to be done."""
        self.take()
        for _ in range(min(plans, len(self.memory.plans))):
            self.memory.run_next()
        if ticket := min(told, self.memory.ran - self.memory.done):
            self.tell_done(self.memory.done + ticket)

    def refuse(self, error: type[KvCacheError], call: object) -> None:
        """A call that fails changes nothing."""
        for manager in (self.checked.manager, self.batched):
            before = statistics(manager), manager.block_tables(ids(*self.live)).tolist()
            with pytest.raises(error):
                call(manager)
            assert before == (statistics(manager), manager.block_tables(ids(*self.live)).tolist())
            manager.flush_events()
        self.counts["errors"] += 1

    @precondition(lambda self: self.live)
    @rule(place=st.integers(0, 99), which=st.integers(0, 12))
    def fail(self, place: int, which: int) -> None:
        (chosen,) = self.pick([place])
        live = self.live[chosen]
        most, known = live.max_tokens - len(live.contents), len(live.contents)
        least = max(live.prompt_length, live.written)
        one, none = Prompt((TEXT,), SCOPES[0]), self.next_id + 1
        broken = Prompt((TEXT,) * 3, SCOPES[0], (Item(1, True),), (Run(0, 1, 5),))
        token = np.full(2, TEXT, np.int32)
        calls = [
            (InvalidArgumentError, lambda m: m.commit(chosen, self.top(chosen) + 1)),
            (InvalidArgumentError, lambda m: m.commit(chosen, live.written - 1)),
            (InvalidArgumentError, lambda m: m.commit_batch(ids(chosen, chosen), ids(0, 0))),
            (CapacityExceededError, lambda m: m.append_tokens(chosen, np.ones(most + 1, np.int32))),
            (InvalidArgumentError, lambda m: m.append_batch(ids(chosen, chosen), token)),
            (UnknownSequenceError, lambda m: m.append_batch(ids(chosen, none), token)),
            (UnknownSequenceError, lambda m: m.free_batch(ids(chosen, none))),
            (InvalidArgumentError, lambda m: m.rewind(chosen, least - 1)),
            (InvalidArgumentError, lambda m: m.rewind(chosen, known + 1)),
            (InvalidArgumentError, lambda m: m.fork(chosen, chosen)),
            (InvalidArgumentError, lambda m: m.copies_done(1 << 40)),
            (
                InvalidArgumentError,
                lambda m: self.add_batch(m, [(none, one, 0, None), (chosen, one, 0, None)]),
            ),
            (
                InvalidMediaRunsError,
                lambda m: self.add_batch(m, [(none, one, 0, None), (none + 1, broken, 0, None)]),
            ),
        ]
        if which == 4 and not most:
            return
        self.refuse(*calls[which])

    # What always holds.

    @invariant()
    def agree(self) -> None:
        if not hasattr(self, "settings"):
            return
        if self.prompt_copies:
            self.take()
            self.memory.run_all()
            if self.memory.ran > self.memory.done:
                self.tell_done(self.memory.ran)
        self.check_equal()
        self.check_statistics()
        self.check_memory()

    def check_equal(self) -> None:
        """Single calls and batch calls have come to the same."""
        one, many = self.checked.manager, self.batched
        one.check_integrity()
        many.check_integrity()
        apart = {"dropped_events"}  # flushed at other moments
        assert {k: v for k, v in statistics(one).items() if k not in apart} == {
            k: v for k, v in statistics(many).items() if k not in apart
        }
        order = ids(*self.live)
        assert one.block_tables(order).tolist() == many.block_tables(order).tolist()
        many.flush_events()
        lines = many.take_events(1 << 20)
        self.outside.follow(lines, self.settings.listens)
        assert self.outside.blocks == self.checked.follower.blocks
        # A gap shows with the next event, and all that came after it may have been taken back.
        skipped, dropped = self.outside.skipped, many.stats().dropped_events
        assert skipped == dropped if lines else skipped <= dropped

    def check_statistics(self) -> None:
        stats = self.checked.manager.stats()
        tables = {sequence_id: self.table(sequence_id) for sequence_id in self.live}
        used = {block for table in tables.values() for block in table}
        assert stats.free_num_blocks + stats.used_num_blocks == stats.max_num_blocks
        assert stats.used_num_blocks >= len(used)
        if not stats.pending_copies:
            assert stats.used_num_blocks == len(used)
        assert stats.reserved_num_blocks == sum(
            self.checked.blocks_for(live.slots) - len(tables[sequence_id])
            for sequence_id, live in self.live.items()
        )
        assert stats.reserved_num_blocks <= stats.free_num_blocks
        assert stats.alloc_total_blocks == stats.alloc_new_blocks + stats.reused_blocks
        assert stats.partial_reused_blocks <= stats.missed_blocks
        assert self.checked.manager.num_sequences == len(self.live)
        if self.settings.listens and not stats.pending_copies:
            levels = [told.level for told in self.checked.follower.blocks.values()]
            assert sum(levels) == stats.host_cached_num_blocks
        entries = Counter(block for table in tables.values() for block in table)
        for sequence_id, live in self.live.items():
            assert len(tables[sequence_id]) >= self.checked.blocks_for(self.top(sequence_id))
            own = tables[sequence_id][live.written // self.size :]
            assert all(entries[block] == 1 for block in own), "a block to be written is shared"

    def check_memory(self) -> None:
        """Every token that is said to be written is, once the plans taken so far have run."""
        if (
            sum(len(plan.entries) for plan in self.memory.plans)
            > self.checked.manager.stats().pending_copies
        ):
            raise AssertionError("more copies to run than are pending")
        self.take()
        ahead = self.memory.after_all_plans()
        for sequence_id, live in self.live.items():
            found = ahead.read(self.table(sequence_id), live.written)
            assert found == live.contents[: live.written], f"wrong KV in sequence {sequence_id}"

    def teardown(self) -> None:
        """Ends all, then looks at all that is still findable."""
        if not hasattr(self, "settings"):
            return
        if self.live:
            self.free_all(sorted(self.live), keep=True)
        self.prompt_copies = True
        self.agree()
        stats = self.checked.manager.stats()
        assert (stats.used_num_blocks, stats.reserved_num_blocks, stats.pending_copies) == (0, 0, 0)
        for prompt in self.past[-8:]:
            for sequence_id in self.add_all([(prompt, 0, None)]):
                self.agree()
                self.free_all([sequence_id], keep=True)
                self.agree()
        for kind, number in self.memory.copies.items():
            self.counts[f"copies: {CopyKind(kind).name}"] += number
