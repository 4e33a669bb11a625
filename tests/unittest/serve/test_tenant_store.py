# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""What is kept: bounded, expiring, and no one else's."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from tensorrt_llm.serve.tenant_store import TenantStore

OWNERS, NAMES = st.sampled_from([None, "a", "b"]), st.sampled_from(["x", "y", "z"])


class Model(RuleBasedStateMachine):
    """A slow, obvious store beside the real one."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.store = TenantStore[int](100, 4, 10, clock=lambda: self.now)
        self.kept: dict[tuple, tuple[int, int, float]] = {}  # used last at the end

    def alive(self) -> None:
        self.kept = {k: v for k, v in self.kept.items() if v[2] > self.now}

    @rule(owner=OWNERS, name=NAMES, value=st.integers(), size=st.integers(0, 120))
    def put(self, owner, name, value, size) -> None:
        self.alive()
        before = dict(self.kept)
        share = 100 // len({owner, *(k[0] for k in before)})
        others = {k[0]: self.held(k[0]) for k in before if k[0] != owner}
        fits = size <= 100 - sum(min(n, share) for n in others.values())
        assert self.store.put(owner, name, value, size) == fits
        if not fits:
            return
        self.kept.pop((owner, name), None)
        # What is gone is told by the store, and checked by the rules.
        left = [(k, v) for k, v in self.kept.items() if self.is_there(*k)]
        gone = [k for k in self.kept if not self.is_there(*k)]
        self.kept = dict(left)
        for whose in {k[0] for k in gone}:
            mine = [k for k in before if k[0] == whose and k != (owner, name)]
            lost = [k for k in mine if k in gone]
            assert lost == mine[: len(lost)], "not those that were not used for longest"
            if whose != owner:
                by_bytes = sum(before[k][1] for k in mine) > share
                by_count = len(mine) > 4 // len({owner, *(k[0] for k in before)})
                assert by_bytes or by_count, "was within its share"
        self.kept[owner, name] = (value, size, self.now + 10)
        if gone:
            room = 100 - sum(v[1] for v in self.kept.values())
            last = min(before[k][1] for k in gone)
            assert room < max(before[k][1] for k in gone) or len(self.kept) == 4 or last == 0

    def is_there(self, owner, name) -> bool:
        # The look must not count as a use.
        return (owner, name) in self.store._entries

    def held(self, owner) -> int:
        return sum(v[1] for k, v in self.kept.items() if k[0] == owner)

    @rule(owner=OWNERS, name=NAMES)
    def get(self, owner, name) -> None:
        self.alive()
        found = self.kept.pop((owner, name), None)
        if found:
            self.kept[owner, name] = found
        assert self.store.get(owner, name) == (found[0] if found else None)

    @rule(owner=OWNERS, name=NAMES)
    def delete(self, owner, name) -> None:
        self.alive()
        assert self.store.delete(owner, name) == (self.kept.pop((owner, name), None) is not None)
        assert self.store.get(owner, name) is None

    @rule(owner=OWNERS)
    def list(self, owner) -> None:
        self.alive()
        assert self.store.list(owner) == [v[0] for k, v in self.kept.items() if k[0] == owner]

    @rule(seconds=st.floats(0, 6))
    def wait(self, seconds) -> None:
        self.now += seconds

    @invariant()
    def bounded(self) -> None:
        assert self.store.nbytes <= 100 and len(self.store) <= 4


TestStore = Model.TestCase
TestStore.settings = settings(max_examples=40, stateful_step_count=30)


def test_nothing_is_kept_where_nothing_may_be() -> None:
    assert not TenantStore[int](0, 4, 10).put(None, "x", 1, 1)
    assert not TenantStore[int](9, 0, 10).put(None, "x", 1, 1)


def test_no_tenant_takes_the_place_of_another() -> None:
    store = TenantStore[int](100, 8, 10)
    assert store.put("small", "x", 1, 20)
    for index in range(20):
        assert store.put("large", str(index), index, 30), "only its own make room"
    assert store.get("small", "x") == 1
    assert (store.room("large"), store.room("small")) == (80, 50)
    assert not store.put("large", "all", 1, 81) and len(store.list("large")) == 2
    # What the large one has beyond its share is there for others.
    assert store.put("small", "y", 2, 30)
    assert len(store.list("large")) == 1 and len(store.list("small")) == 2
    for index in range(20):
        assert store.put("many", str(index), index, 0)
    assert store.get("small", "x") == 1 and len(store) <= 8
