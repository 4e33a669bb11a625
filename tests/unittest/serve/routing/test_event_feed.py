# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""A stream with gaps, lost messages and new beginnings leaves the index right or empty."""

from __future__ import annotations

import random

import msgspec
import pytest
from support.block_keys import chain_names

from tensorrt_llm.llmapi.event_stream import (
    AllBlocksCleared,
    BlockRemoved,
    BlockStored,
    EventBatch,
    StreamEvent,
)
from tensorrt_llm.serve.routing.block_index import key_of
from tensorrt_llm.serve.routing.event_feed import EventFeed
from tensorrt_llm.serve.routing.placement import Placer

SIZE = 16


def stored(names: list[bytes]) -> BlockStored:
    return BlockStored(names, None, [], SIZE, None, "GPU", None, [None] * len(names))


def message(*events: StreamEvent) -> bytes:
    return msgspec.msgpack.encode(EventBatch(0.0, list(events)))


def known(placer: Placer, names: list[bytes]) -> int:
    found = placer.index.look_up([key_of(name) for name in names])
    return found[0].blocks if found else 0


def feed() -> tuple[EventFeed, Placer]:
    placer = Placer(SIZE)
    placer.add("a")
    return EventFeed("a", placer), placer


def test_events_in_order() -> None:
    one, placer = feed()
    names = chain_names(1, 2, 3)
    assert one.live(0, message(stored(names)))
    assert known(placer, names) == 3
    assert one.live(1, message(BlockRemoved(names[2:], "GPU")))
    assert known(placer, names) == 2
    assert one.live(2, message(AllBlocksCleared(), stored(names[:1])))
    assert known(placer, names) == 1
    assert (one.num_gaps, one.num_resyncs) == (0, 0)


def test_a_gap_is_filled_by_a_replay() -> None:
    one, placer = feed()
    names = chain_names(1, 2, 3)
    sent = [message(stored(names)), message(BlockRemoved(names[1:], "GPU")), message()]
    assert one.live(0, sent[0])
    assert not one.live(2, sent[2])
    # What was asked for, with more at both ends than was wanted.
    one.replayed([(0, sent[0]), (1, sent[1]), (2, sent[2])], 2)
    assert one.live(2, sent[2])
    assert known(placer, names) == 1
    assert (one.num_gaps, one.num_resyncs) == (1, 0)


def test_a_gap_that_nobody_fills_drops_what_is_known() -> None:
    one, placer = feed()
    names, later = chain_names(1, 2, 3), chain_names(4, 5)
    assert one.live(0, message(stored(names)))
    assert not one.live(5, message(stored(later)))
    one.replayed([(4, message())], 5)
    assert known(placer, names) == 0
    assert one.live(5, message(stored(later)))
    assert known(placer, later) == 2
    assert (one.num_gaps, one.num_resyncs) == (1, 1)


@pytest.mark.parametrize("number", [0, 1])
def test_a_stream_that_begins_again_drops_what_is_known(number: int) -> None:
    one, placer = feed()
    names, later = chain_names(1, 2), chain_names(3)
    for sent in range(4):
        assert one.live(sent, message(stored(names)))
    taken = one.live(number, message(stored(later)))
    assert taken == (number == 0)
    if not taken:
        assert one.next_number == 0
        one.replayed([(0, message(stored(later)))], 1)
        assert one.live(1, message())
    assert (known(placer, names), known(placer, later)) == (0, 1)
    assert one.next_number == number + 1


def test_a_message_that_cannot_be_read_drops_what_is_known() -> None:
    one, placer = feed()
    names = chain_names(1, 2)
    assert one.live(0, message(stored(names)))
    assert one.live(1, b"\xff no msgpack")
    assert known(placer, names) == 0
    assert one.live(2, message(stored(names)))
    assert known(placer, names) == 2


def test_loss_at_random_never_leaves_a_block_that_is_gone() -> None:
    choose = random.Random(7)
    one, placer = feed()
    chains = [chain_names(number, 1, 2, 3) for number in range(12)]
    has: dict[int, int] = dict.fromkeys(range(12), 0)
    kept: list[tuple[int, bytes]] = []
    for number in range(2000):
        which = choose.randrange(12)
        before, has[which] = has[which], choose.randrange(5)
        names = chains[which]
        if has[which] > before:
            payload = message(stored(names[before : has[which]]))
        else:
            payload = message(BlockRemoved(names[has[which] : before], "GPU"))
        kept = [*kept, (number, payload)][-8:]
        if choose.random() < 0.2:
            continue
        if not one.live(number, payload):
            answered = choose.random() < 0.9
            one.replayed(kept if answered else [], number)
            assert one.live(number, payload)
        for index, depth in has.items():
            assert known(placer, chains[index]) <= depth
    assert one.num_gaps > 200 and 10 < one.num_resyncs < one.num_gaps
