# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""The KV cache manager through its binding, against a brute-force model of prefixes."""

from __future__ import annotations

import hashlib
import itertools
import json
import re
import threading
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tensorrt_llm import bindings
from tensorrt_llm.bindings import (
    CapacityExceededError,
    CopyKind,
    InvalidArgumentError,
    InvalidMediaRunsError,
    KvCacheError,
    KVCacheManager,
    KvCacheRetentionConfig,
    MediaBatch,
    MediaRuns,
    ReuseScope,
    TokenRangeRetentionConfig,
    UnknownSequenceError,
)
from tests.unittest.bindings.manager_model import UNKNOWN, PrefixModel, Token


def ids(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


def places(block_map: str) -> str:
    """The letter of each place."""
    runs = re.findall(r"(\d+)([fchp])", block_map)
    assert "".join(map("".join, runs)) == block_map
    assert all(one[1] != other[1] for one, other in itertools.pairwise(runs))
    return "".join(int(count) * letter for count, letter in runs)


def tokens(*values: int) -> np.ndarray:
    return np.array(values, np.int32)


def media(
    runs: list[tuple[int, int, int]],
    digests: list[int] | None = None,
    identified: list[bool] | None = None,
) -> MediaRuns:
    """Runs are (item, position, length); an item's digest is one byte value, repeated."""
    n_items = max((item for item, _, _ in runs), default=-1) + 1
    rows = [sum(length for i, _, length in runs if i == item) for item in range(n_items)]
    values = list(range(n_items)) if digests is None else digests
    return MediaRuns(
        np.repeat(np.array(values, np.uint8)[:, None], 32, axis=1),
        np.array([True] * n_items if identified is None else identified, np.bool_),
        np.array([run[0] for run in runs], np.int32),
        np.array([run[1] for run in runs], np.int64),
        np.array([run[2] for run in runs], np.int64),
        np.array(rows, np.int64),
    )


class ManagerMachine(RuleBasedStateMachine):
    """Random operations on manager and model, compared after each."""

    @initialize(
        num_blocks=st.integers(3, 12),
        tokens_per_block=st.sampled_from([2, 4]),
        reuse=st.sampled_from([True, True, True, False]),
    )
    def start(self, num_blocks: int, tokens_per_block: int, reuse: bool) -> None:
        self.manager = KVCacheManager(num_blocks, tokens_per_block, reuse)
        self.model = PrefixModel(num_blocks, tokens_per_block, reuse)
        self.written: dict[int, int] = {}
        self.room: dict[int, int] = {}
        self.next_id = 0

    @rule(
        length=st.integers(1, 20),
        layout=st.lists(
            st.tuples(st.integers(0, 5), st.integers(1, 6), st.integers(0, 1), st.integers(0, 7)),
            max_size=3,
        ),
        changed=st.none() | st.integers(0, 19),
        salt=st.sampled_from([None, None, "a"]),
        mode=st.sampled_from(["", "", "speech"]),
        max_new_tokens=st.integers(0, 8),
    )
    def add(
        self,
        length: int,
        layout: list[tuple[int, int, int, int]],
        changed: int | None,
        salt: str | None,
        mode: str,
        max_new_tokens: int,
    ) -> None:
        prompt = [7] * length
        if changed is not None and changed < length:
            prompt[changed] = 8
        meaning: list[Token] = [(token,) for token in prompt]
        runs: list[tuple[int, int, int]] = []
        digests, identified, position = [], [], 0
        for gap, size, digest, luck in layout:
            position += gap
            size = min(size, length - position)
            if size < 1:
                break
            runs.append((len(runs), position, size))
            digests.append(digest)
            identified.append(luck != 0)
            for row in range(size):
                at = position + row
                meaning[at] = (prompt[at], digest, row) if luck else UNKNOWN
            position += size
        described = media(runs, digests, identified) if runs else None
        scope = ReuseScope(cache_salt=salt, adapter_mode=mode)
        array = np.array(prompt, np.int32)

        sequence_id, self.next_id = self.next_id, self.next_id + 1
        _, total = self.model.need(length, max_new_tokens)
        if total > self.model.num_blocks:
            with pytest.raises(CapacityExceededError, match=f"{total} .*{self.model.num_blocks}"):
                self.manager.add_sequence(sequence_id, array, described, scope, max_new_tokens)
            return
        matched = self.model.matched((salt, mode), meaning)
        assert self.manager.probe(array, described, scope) == len(matched) * self.model.size
        got = self.manager.add_sequence(sequence_id, array, described, scope, max_new_tokens)
        expected = self.model.add(sequence_id, (salt, mode), meaning, max_new_tokens)
        assert (None if got is None else got.cached_tokens) == expected
        if got is not None and expected is not None:
            assert got.num_blocks == -(-length // self.model.size)
            self.written[sequence_id] = expected
            self.room[sequence_id] = max_new_tokens

    def choose(self, data: st.DataObject) -> int:
        return data.draw(st.sampled_from(sorted(self.written)))

    def draw_written(self, data: st.DataObject, sequence_id: int) -> int:
        live = self.model.live[sequence_id]
        top = min(len(live.tokens), live.slots)
        self.written[sequence_id] = data.draw(st.integers(self.written[sequence_id], top))
        return self.written[sequence_id]

    @precondition(lambda self: self.written)
    @rule(data=st.data())
    def commit(self, data: st.DataObject) -> None:
        chosen = self.choose(data)
        written = self.draw_written(data, chosen)
        assert self.manager.commit(chosen, written) == self.model.commit(chosen, written)

    @precondition(lambda self: self.written)
    @rule(data=st.data())
    def commit_all(self, data: st.DataObject) -> None:
        chosen = data.draw(st.permutations(sorted(self.written)))
        written = [self.draw_written(data, sequence_id) for sequence_id in chosen]
        changed = self.manager.commit_batch(ids(*chosen), ids(*written))
        assert changed.dtype == np.bool_
        assert changed.tolist() == [
            self.model.commit(*pair) for pair in zip(chosen, written, strict=True)
        ]

    @precondition(lambda self: any(self.room.values()))
    @rule(data=st.data(), token=st.integers(7, 8), batch=st.booleans())
    def append(self, data: st.DataObject, token: int, batch: bool) -> None:
        open_ids = [sequence_id for sequence_id, room in self.room.items() if room]
        chosen = open_ids if batch else [data.draw(st.sampled_from(open_ids))]
        if batch:
            self.manager.append_batch(ids(*chosen), tokens(*[token] * len(chosen)))
        else:
            self.manager.append_tokens(chosen[0], tokens(token))
        for sequence_id in chosen:
            self.model.append(sequence_id, token)
            self.room[sequence_id] -= 1

    @precondition(lambda self: self.written)
    @rule(data=st.data())
    def free(self, data: st.DataObject) -> None:
        chosen = self.choose(data)
        self.manager.free_sequence(chosen)
        self.model.free(chosen)
        del self.written[chosen], self.room[chosen]

    @rule(luck=st.integers(0, 9))
    def reset(self, luck: int) -> None:
        if luck == 0:
            assert self.manager.reset_reuse_state() == self.model.reset()

    @invariant()
    def agree(self) -> None:
        if not hasattr(self, "manager"):
            return
        self.manager.check_integrity()
        stats = self.manager.stats()
        assert stats.used_num_blocks == self.model.used()
        assert stats.free_num_blocks + stats.used_num_blocks == stats.max_num_blocks
        assert stats.cached_num_blocks == len(self.model.findable)
        assert stats.reserved_num_blocks == self.model.reserved()
        assert stats.evicted_blocks == self.model.evicted
        assert stats.alloc_total_blocks == stats.alloc_new_blocks + stats.reused_blocks
        assert self.manager.num_sequences == len(self.model.live)
        names: dict[int, object] = {}
        for sequence_id, live in self.model.live.items():
            table = self.manager.block_ids(sequence_id).tolist()
            assert len(table) == len(live.blocks)
            for index, (block, path) in enumerate(zip(table, live.blocks, strict=True)):
                # One shared name is one block, and a private block is nobody else's.
                name = (sequence_id, index) if path is None else path
                assert names.setdefault(block, name) == name
        assert len(set(names.values())) == len(names)
        shown = places(self.manager.block_map())
        assert len(shown) == stats.max_num_blocks
        for block, name in names.items():
            assert shown[block] == ("h" if name in self.model.findable else "p")
        assert shown.count("h") + shown.count("p") == len(names)
        assert shown.count("h") + shown.count("c") == len(self.model.findable)


ManagerMachine.TestCase.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)
TestManagerMachine = ManagerMachine.TestCase


def run(
    manager: KVCacheManager,
    prompt: np.ndarray,
    described: MediaRuns | None = None,
    scope: ReuseScope | None = None,
) -> int:
    """Runs a prompt to its end; gives its cached tokens."""
    allocation = manager.add_sequence(0, prompt, described, scope or ReuseScope(), 1)
    assert allocation is not None
    manager.commit(0, len(prompt))
    manager.free_sequence(0)
    return allocation.cached_tokens


def test_equal_media_share_and_others_do_not() -> None:
    prompt = tokens(*[7] * 13)
    first, second = media([(0, 5, 6)], [1]), media([(0, 5, 6)], [2])
    manager = KVCacheManager(32, 4)
    assert run(manager, prompt, first) == 0
    assert run(manager, prompt, second) == 4
    assert run(manager, prompt, first) == 12
    assert run(manager, prompt, second) == 12
    assert run(manager, prompt) == 4


def test_media_without_items_is_text() -> None:
    empty = media([])
    assert (empty.num_items, empty.num_runs) == (0, 0)
    manager = KVCacheManager(8, 4)
    assert run(manager, tokens(*range(9)), empty) == 0
    assert run(manager, tokens(*range(9))) == 8


def test_block_tables_are_padded_int32() -> None:
    manager = KVCacheManager(8, 2)
    manager.add_sequence(3, tokens(1, 2, 3), None, ReuseScope(), 1)
    manager.add_sequence(4, tokens(9), None, ReuseScope(), 1)
    tables = manager.block_tables(ids(4, 3))
    assert tables.dtype == np.int32
    assert tables.shape == (2, 2)
    assert tables[1].tolist() == manager.block_ids(3).tolist()
    assert tables[0].tolist() == [manager.block_ids(4)[0], -1]
    assert manager.block_tables(ids()).shape == (0, 0)
    # The arrays are copies: writing to one changes no table.
    manager.block_ids(3)[:] = 5
    assert manager.block_tables(ids(3)).tolist() == [tables[1].tolist()]


def test_batches_do_what_single_calls_do() -> None:
    manager = KVCacheManager(16, 4)
    described = MediaBatch(
        MediaRuns(
            np.repeat(np.array([1, 2], np.uint8)[:, None], 32, axis=1),
            np.ones(2, np.bool_),
            np.zeros(2, np.int32),
            ids(5, 5),
            ids(6, 6),
            ids(6, 6),
        ),
        ids(0, 1, 1, 2),
        ids(0, 1, 1, 2),
    )
    assert described.num_prompts == 3
    scopes = [ReuseScope()] * 3
    prompts = tokens(*[7] * 39)

    def add() -> list[int]:
        offsets = ids(0, 13, 26, 39)
        added = manager.add_sequence_batch(
            ids(1, 2, 3), prompts, offsets, described, scopes, ids(1, 1, 1)
        )
        assert added.dtype == np.int64
        manager.commit_batch(ids(1, 2, 3), ids(13, 13, 13))
        manager.free_batch(ids(1, 2, 3))
        return added.tolist()

    assert add() == [0, 0, 0]
    assert add() == [12, 12, 12]
    assert run(manager, prompts[:13], media([(0, 5, 6)], [1])) == 12
    assert run(manager, prompts[:13], media([(0, 5, 6)], [2])) == 12
    assert run(manager, prompts[:13]) == 12


def test_malformed_batches_are_refused_whole() -> None:
    manager = KVCacheManager(8, 4)
    scope = [ReuseScope()]

    def add(offsets: np.ndarray, scopes: list[ReuseScope], described: MediaBatch | None) -> None:
        manager.add_sequence_batch(ids(1), tokens(1, 2), offsets, described, scopes, ids(1))

    for offsets in (ids(0, 1), ids(0), ids(1, 2), ids(0, 3)):
        with pytest.raises(InvalidArgumentError, match="token_offsets"):
            add(offsets, scope, None)
    with pytest.raises(InvalidArgumentError, match=r"scopes .* 2 .* 1"):
        add(ids(0, 2), scope * 2, None)
    with pytest.raises(InvalidArgumentError, match=r"media has 3 .* 2"):
        add(ids(0, 2), scope, MediaBatch(media([]), ids(0, 0, 0), ids(0, 0, 0)))
    with pytest.raises(InvalidArgumentError, match=r"item_offsets .* 1"):
        MediaBatch(media([(0, 0, 1)]), ids(0, 0), ids(0, 1))
    assert manager.num_sequences == 0


def test_each_request_of_a_batch_has_its_own_retention() -> None:
    manager = KVCacheManager(4, 2)
    kept = KvCacheRetentionConfig([TokenRangeRetentionConfig(0, None, 80)])
    scopes, one = [ReuseScope()] * 2, ids(1, 1)

    def add(first: int, retention: list[KvCacheRetentionConfig | None] | None) -> None:
        prompts = tokens(first, 1, 2, first + 1, 1, 2)
        manager.add_sequence_batch(ids(1, 2), prompts, ids(0, 3, 6), None, scopes, one, retention)
        manager.commit_batch(ids(1, 2), ids(3, 3))
        manager.free_batch(ids(1, 2))

    # The first prompt is older, so without a priority it is the first to go.
    for retention, found in (([kept, None], [2, 0]), ([None, kept], [0, 2]), (None, [0, 2])):
        manager.reset_reuse_state()
        add(10, retention)
        assert run(manager, tokens(50, 51, 52, 53, 54)) == 0
        left = [manager.probe(tokens(first, 1, 2), None, ReuseScope()) for first in (10, 11)]
        assert left == found
    with pytest.raises(InvalidArgumentError, match=r"retention has 1 .* 2"):
        add(20, [kept])
    assert manager.num_sequences == 0


def test_events_are_lines_of_json() -> None:
    manager = KVCacheManager(8, 2, event_buffer_max_size=100)
    described = MediaRuns(
        np.full((1, 32), 0xAB, np.uint8),
        np.ones(1, np.bool_),
        np.zeros(1, np.int32),
        ids(1),
        ids(2),
        ids(2),
        ['a "cat"'],
    )
    manager.add_sequence(1, tokens(1, 2, 3, 4), described, ReuseScope("tenant"), 1)
    manager.commit(1, 4)
    manager.flush_events()
    created, stored = (json.loads(line) for line in manager.take_events(10))
    assert created == {
        "event_id": 0,
        "data": {"type": "created", "num_blocks_per_cache_level": [8, 0]},
        "window_size": 16,
        "hash_algo": "v2_sha256",
    }
    assert stored["data"]["parent_hash"] is None
    first, second = stored["data"]["blocks"]
    key = {"type": "mm_key", "hash": "ab" * 32, "uuid": 'a "cat"'}
    assert first["mm_keys"] == [key | {"start_offset": 0}]
    assert second["mm_keys"] == [key | {"start_offset": 1}]
    assert second["cache_salt"] == "tenant"
    assert [token["token_id"] for token in second["tokens"]] == [3, 4]
    # The name, worked out from the layout in docs/kv-cache.md.
    root = hashlib.sha256(
        b"KVR\x01\x01" + (6).to_bytes(8, "little") + b"tenant" + bytes(1 + 8 + 8 + 8)
    ).digest()
    span = b"\xab" * 32 + np.array([0], "<i8").tobytes() + np.array([1, 1], "<i4").tobytes()
    layout = b"KVB\x01" + root + np.array([2, 1, 1, 2], "<i4").tobytes() + span
    assert first["block_hash"] == hashlib.sha256(layout).hexdigest()
    assert manager.stats().dropped_events == 0


def test_explain_names_the_reason() -> None:
    manager = KVCacheManager(8, 4)
    prompt = tokens(*range(9))
    assert manager.explain(prompt, None, ReuseScope()).reason == "unknown"
    run(manager, prompt)
    other = prompt.copy()
    other[6] = 99
    found = manager.explain(other, None, ReuseScope())
    assert (found.cached_tokens, found.reason, found.block, found.position) == (4, "tokens", 1, 6)
    assert manager.explain(prompt, None, ReuseScope("x")).reason == "salt"
    assert manager.explain(prompt, None, ReuseScope("x"), other_salts=False).reason == "unknown"
    # What one's own salt has is told all the same, and so is another mode under it.
    run(manager, other, scope=ReuseScope("x"))
    found = manager.explain(prompt, None, ReuseScope("x"), other_salts=False)
    assert (found.reason, found.cached_tokens, found.position) == ("tokens", 4, 6)
    mode = ReuseScope(adapter_mode="speech")
    assert manager.explain(prompt, None, mode, other_salts=False).reason == "adapter_mode"


def test_copy_plans_and_forks() -> None:
    manager = KVCacheManager(8, 4, enable_partial_reuse=True)
    manager.add_sequence(1, tokens(*range(6)), None, ReuseScope(), 4)
    manager.commit(1, 6)
    forked = manager.fork(1, 2)
    assert forked is not None
    assert forked.cached_tokens == 6
    plan = manager.take_copy_plan()
    assert plan.ticket == forked.ticket == 1
    assert plan.entries.dtype == np.int32
    source, destination = manager.block_ids(1)[1], manager.block_ids(2)[1]
    assert plan.entries.tolist() == [[CopyKind.FORK, source, destination, 2, 0]]
    assert manager.stats().pending_copies == 1
    manager.copies_done(plan.ticket)
    assert manager.stats().pending_copies == 0
    with pytest.raises(InvalidArgumentError, match="ticket 1"):
        manager.copies_done(1)
    assert manager.take_copy_plan().ticket == 0
    manager.append_tokens(2, tokens(50, 51))
    manager.rewind(2, 7)
    manager.free_batch(ids(1, 2), keep=False)
    assert manager.stats().cached_num_blocks == 0


def test_retention_and_host_pool() -> None:
    manager = KVCacheManager(2, 2, host_blocks=2, secondary_offload_min_priority=50)
    keep = KvCacheRetentionConfig([TokenRangeRetentionConfig(0, None, 80, duration_ms=100)])
    assert keep.token_range_retention_configs[0].priority == 80
    assert (keep.decode_retention_priority, keep.decode_duration_ms) == (35, None)
    manager.add_sequence(1, tokens(1, 2, 3), None, ReuseScope(), 1, retention=keep)
    manager.commit(1, 3)
    manager.free_sequence(1)
    assert run(manager, tokens(*range(50, 53))) == 0
    plan = manager.take_copy_plan()
    assert [CopyKind(row[0]) for row in plan.entries] == [CopyKind.OFFLOAD]
    manager.copies_done(plan.ticket)
    assert manager.stats().host_cached_num_blocks == 1
    assert sorted(places(manager.block_map())[2:]) == ["c", "f"], "those on the host are last"
    assert manager.probe(tokens(1, 2, 3), None, ReuseScope()) == 2
    manager.refresh(100)
    with pytest.raises(InvalidArgumentError, match="101"):
        KvCacheRetentionConfig([TokenRangeRetentionConfig(0, None, 101)])


def test_scope_values() -> None:
    scope = ReuseScope("salt", 3, 1, "vision")
    assert (scope.cache_salt, scope.adapter_id) == ("salt", 3)
    assert (scope.adapter_version, scope.adapter_mode) == (1, "vision")
    assert scope == ReuseScope("salt", 3, 1, "vision")
    assert scope != ReuseScope("salt", 3, 1)
    assert scope != "salt"
    assert ReuseScope().cache_salt is None


ERRORS = {
    "CapacityExceededError": (KvCacheError,),
    "InternalStateError": (KvCacheError,),
    "InvalidArgumentError": (KvCacheError, ValueError),
    "InvalidMediaRunsError": (InvalidArgumentError,),
    "KvCacheError": (RuntimeError,),
    "UnknownSequenceError": (KvCacheError,),
}


def test_every_error_is_listed_with_its_bases() -> None:
    found = {name for name in bindings.__all__ if name.endswith("Error")}
    assert found == set(ERRORS)
    for name, bases in ERRORS.items():
        assert getattr(bindings, name).__bases__ == bases
        assert getattr(bindings, name).__module__ == "tensorrt_llm.bindings"


def broken_media() -> MediaRuns:
    return MediaRuns(
        np.zeros((1, 32), np.uint8),
        np.ones(1, np.bool_),
        np.zeros(1, np.int32),
        ids(2),
        ids(3),
        ids(4),
    )


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda m: KVCacheManager(0, 4), InvalidArgumentError, "num_blocks is 0"),
        (lambda m: KVCacheManager(4, 3), InvalidArgumentError, "tokens_per_block is 3"),
        (lambda m: ReuseScope(""), InvalidArgumentError, "cache_salt has length 0"),
        (lambda m: m.commit(1, 9), InvalidArgumentError, "commit of 9 tokens, expected 0 to 5"),
        (lambda m: m.commit(2, 1), UnknownSequenceError, "sequence 2 .* 1 live"),
        (lambda m: m.block_tables(ids(1, 2)), UnknownSequenceError, "sequence 2"),
        (lambda m: m.append_tokens(1, tokens(1, 2)), CapacityExceededError, "2 .* 5.* 6"),
        (lambda m: m.append_batch(ids(1), tokens()), InvalidArgumentError, "1 ids with 0 values"),
        (
            lambda m: m.add_sequence(2, tokens(*range(99)), None, ReuseScope(), 1),
            CapacityExceededError,
            "25 blocks for 99 tokens, the pool has 8",
        ),
        (
            lambda m: m.probe(tokens(*range(9)), broken_media(), ReuseScope()),
            InvalidMediaRunsError,
            "runs cover 3 rows, the item has 4",
        ),
        (
            lambda m: m.probe(np.zeros((2, 2), np.int32), None, ReuseScope()),
            InvalidArgumentError,
            "tokens has 2 dimensions, expected 1",
        ),
        (
            lambda m: MediaRuns(
                np.zeros((1, 16), np.uint8),
                np.ones(1, np.bool_),
                np.zeros(1, np.int32),
                ids(0),
                ids(1),
                ids(1),
            ),
            InvalidMediaRunsError,
            "16 bytes each, expected 32",
        ),
        (lambda m: m.probe(ids(1), None, ReuseScope()), TypeError, "int32"),
        (lambda m: m.probe(tokens(1, 2)[::2], None, ReuseScope()), None, ""),
        (lambda m: m.probe(tokens(1, 2, 3)[::2], None, ReuseScope()), TypeError, "int32"),
        (lambda m: m.probe(tokens(1), None, None), TypeError, "scope"),
    ],
)
def test_errors_are_typed_and_change_nothing(
    call: Callable[[KVCacheManager], object], error: type[Exception] | None, message: str
) -> None:
    manager = KVCacheManager(8, 4)
    manager.add_sequence(1, tokens(*range(5)), None, ReuseScope(), 1)
    if error is None:
        call(manager)
    else:
        with pytest.raises(error, match=message) as caught:
            call(manager)
        assert type(caught.value) is error
    assert manager.stats().free_num_blocks == 6
    assert manager.num_sequences == 1
    manager.check_integrity()


def test_managers_on_several_threads_do_not_disturb_each_other() -> None:
    prompts = [np.arange(4000, dtype=np.int32) + offset for offset in range(20)]
    results: dict[int, list[int]] = {}
    barrier = threading.Barrier(3)

    def work(worker: int) -> None:
        manager = KVCacheManager(2048, 4)
        barrier.wait()
        results[worker] = [run(manager, prompt) for prompt in prompts for _ in range(2)]
        manager.check_integrity()

    threads = [threading.Thread(target=work, args=(worker,)) for worker in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == {worker: [0, 3996] * 20 for worker in range(3)}
