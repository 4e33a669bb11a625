# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Who follows the stream from the start holds the manager's tree, whatever he misses on the way.

The tree is found out by asking the manager for each prompt that there ever was.
``TRTLLM_EVENT_OPERATIONS`` asks for more operations, ``TRTLLM_EVENT_SEED`` for others.
"""

from __future__ import annotations

import os
import random
import threading
from collections import Counter
from dataclasses import replace

import numpy as np
from support.engine import wait_until

from tensorrt_llm.bindings import KVCacheManager
from tensorrt_llm.llmapi.event_stream import EventStream
from tests.unittest.bindings.cache_prompts import Item, Prompt, Run, Scope, block_name, root_name
from tests.unittest.llmapi.test_event_stream import Reader, settings

OPERATIONS = int(os.environ.get("TRTLLM_EVENT_OPERATIONS", "10000"))
SEED = int(os.environ.get("TRTLLM_EVENT_SEED", "4"))
SIZE = 4
BLOCKS = 24
QUIET_EVERY = 200
SCOPES = [Scope(None, None, 0, ""), Scope("a", None, 0, ""), Scope(None, 1, 1, "speech")]


class Engine:
    """Random operations on a manager, whose events another thread takes."""

    def __init__(self, choose: random.Random) -> None:
        self.manager = KVCacheManager(
            BLOCKS, SIZE, host_blocks=8, event_buffer_max_size=1 << 20, max_step_tokens=0
        )
        self.choose = choose
        self.lock = threading.Lock()
        self.told_all = False
        self.live: dict[int, tuple[Prompt, int]] = {}  # what is known of each, and room for more
        self.past: dict[Prompt, None] = {}
        self.questions: dict[Prompt, tuple[tuple, list[bytes]]] = {}
        self.counts: Counter[str] = Counter()

    def take(self) -> list[str]:
        """A few events at a time, so that there are many messages to lose."""
        with self.lock:
            self.manager.flush_events()
            lines = self.manager.take_events(12)
            self.told_all = not lines
            return lines

    def step(self, number: int) -> None:
        with self.lock:
            self.told_all = False
            kind = self.choose.random()
            if kind < 0.35 or not self.live:
                self.add(number)
            elif kind < 0.65:
                self.grow(self.choose.choice(list(self.live)))
            elif kind < 0.997:
                self.free(self.choose.choice(list(self.live)))
            else:
                self.counts["reset"] += 1
                self.manager.reset_reuse_state()
            plan = self.manager.take_copy_plan()
            if plan.ticket:
                self.manager.copies_done(plan.ticket)

    def add(self, number: int) -> None:
        prompt = self.draw()
        room = self.choose.randint(1, 6)
        allocation = self.manager.add_sequence(
            number, np.array(prompt.tokens, np.int32), prompt.media(), prompt.scope.reuse_scope(), 6
        )
        self.counts["full" if allocation is None else "added"] += 1
        if allocation is not None:
            self.counts["found"] += allocation.cached_tokens > 0
            self.live[number] = (prompt, room)
            if self.choose.random() < 0.8:
                self.manager.commit(number, len(prompt.tokens))

    def grow(self, number: int) -> None:
        prompt, room = self.live[number]
        if room > 1:
            token = self.choose.choice([7, 8])
            self.manager.append_tokens(number, np.array([token], np.int32))
            prompt = replace(prompt, tokens=(*prompt.tokens, token))
            self.live[number] = (prompt, room - 1)
            self.manager.commit(number, len(prompt.tokens))

    def free(self, number: int) -> None:
        prompt, _ = self.live.pop(number)
        self.past[prompt] = None
        self.manager.free_sequence(number, keep=self.choose.random() < 0.95)

    def draw(self) -> Prompt:
        choose = self.choose
        if self.past and choose.random() < 0.5:  # goes on from an earlier one, or cuts it short
            earlier = choose.choice(list(self.past)[-30:])
            tokens = (
                *earlier.tokens,
                *(choose.choice([7, 8]) for _ in range(choose.randint(0, 5))),
            )
            return replace(earlier, tokens=tokens[:40])
        length = choose.randint(1, 26)
        tokens = tuple(choose.choice([7, 7, 8]) for _ in range(length))
        begin, count = choose.randint(0, 8), choose.randint(1, 9)
        scope = choose.choice(SCOPES)
        if begin + count > length or choose.random() < 0.5:
            return Prompt(tokens, scope)
        item = Item(choose.randint(1, 2), choose.random() < 0.9)
        return Prompt(tokens, scope, (item,), (Run(0, begin, count),))

    def tree(self) -> dict[bytes, bytes | None]:
        """Each block that a prompt finds, and what it goes on from."""
        found: dict[bytes, bytes | None] = {}
        for prompt in [*self.past, *(prompt for prompt, _ in self.live.values())]:
            question, names = self.asked(prompt)
            parent = None
            for name in names[: self.manager.probe(*question) // SIZE]:
                found[name], parent = parent, name
        return found

    def asked(self, prompt: Prompt) -> tuple[tuple, list[bytes]]:
        """What the manager is asked of a prompt, and the names of its blocks; each made once."""
        if prompt not in self.questions:
            tokens = np.array((*prompt.tokens, 0), np.int32)  # the last one is never looked for
            name, names = root_name(prompt.scope), []
            for begin in range(0, len(prompt.tokens) // SIZE * SIZE, SIZE):
                block = prompt.tokens[begin : begin + SIZE]
                name = block_name(name, block, prompt.block_spans(begin, begin + SIZE))
                names.append(name)
            question = (tokens, prompt.media(), prompt.scope.reuse_scope())
            self.questions[prompt] = question, names
        return self.questions[prompt]


def test_a_reader_that_misses_messages_holds_the_managers_tree() -> None:
    choose = random.Random(SEED)
    engine, config = Engine(choose), settings()
    stream = EventStream(config, SIZE, engine.take)
    readers = [Reader(config, lose=0.5, block=SIZE)]
    reconnects = largest = 0
    try:
        for number in range(OPERATIONS):
            engine.step(number)
            if choose.random() < 0.02:
                readers[0].read()
            if choose.random() < 0.002:  # what is sent in between is not heard
                readers[0].close()
                reconnects += 1
                readers[0].connect()
            if number % QUIET_EVERY and number != OPERATIONS - 1:
                continue

            def holds_all(reader: Reader = readers[0]) -> bool:
                reader.read()
                reader.replay()
                return engine.told_all and reader.next == stream.num_batches

            wait_until(holds_all, f"seed {SEED}, operation {number}: all is told")
            tree = engine.tree()
            assert readers[0].known == tree, f"seed {SEED}, operation {number}"
            assert len(tree) == engine.manager.stats().cached_num_blocks
            largest = max(largest, len(tree))
        # Who comes at the end and asks for all from the first on knows the same.
        readers.append(Reader(config, block=SIZE))
        readers[1].replay()
        assert readers[1].known == readers[0].known
    finally:
        for reader in readers:
            reader.close()
        stream.close()
    stats, counts = engine.manager.stats(), engine.counts
    print(dict(counts), f"{largest} blocks at most, {stream.num_batches} messages, {reconnects=}")
    assert readers[0].lost > 20, "nothing was lost"
    assert readers[0].cleared == 0
    assert reconnects > 3
    assert largest > BLOCKS, "nothing lay on the host"
    assert min(stats.evicted_blocks, stats.offloaded_blocks, stats.onboarded_blocks) > 100
    assert min(counts[name] for name in ("added", "found", "full")) > 100
    assert counts["reset"] > 3
