# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""A reader that comes late learns what was told before it came, over the engine's own stream."""

from __future__ import annotations

import asyncio
import itertools
import json
import socket
import threading
from contextlib import suppress

import pytest
from support.block_keys import chain_names

from tensorrt_llm.llmapi.event_stream import EventStream
from tensorrt_llm.llmapi.llm_args import KvEventsConfig
from tensorrt_llm.serve.routing.block_index import key_of
from tensorrt_llm.serve.routing.event_feed import EventFeed
from tensorrt_llm.serve.routing.follow import follow
from tensorrt_llm.serve.routing.placement import Placer

EARLY = 5


def free_endpoint() -> str:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"tcp://127.0.0.1:{probe.getsockname()[1]}"


def stored(number: int) -> str:
    (name,) = chain_names(number)
    block = {
        "block_hash": name.hex(),
        "tokens": [{"token_id": 1}],
        "mm_keys": [],
        "cache_salt": None,
    }
    data = {"type": "stored", "blocks": [block], "parent_hash": None}
    return json.dumps({"event_id": number, "data": data})


@pytest.mark.parametrize("replays", [True, False])
def test_a_late_reader(replays: bool) -> None:
    numbers, early = itertools.count(), threading.Event()

    def take() -> list[str]:
        number = next(numbers)
        if number == EARLY:
            early.set()
        return [stored(number)]

    endpoint, replay = free_endpoint(), free_endpoint() if replays else None
    config = KvEventsConfig(
        enable_kv_cache_events=True, endpoint=endpoint, replay_endpoint=replay, topic=""
    )
    placer = Placer(1)
    placer.add("a")
    feed = EventFeed("a", placer)

    async def read() -> None:
        following = asyncio.create_task(follow(feed, endpoint, replay))
        while feed.next_number <= EARLY:
            await asyncio.sleep(0.01)
            assert not following.done()
        following.cancel()
        with suppress(asyncio.CancelledError):
            await following

    stream = EventStream(config, 1, take)
    try:
        assert early.wait(60)  # all that before anybody listens
        asyncio.run(asyncio.wait_for(read(), 60))
    finally:
        stream.close()
    known = [bool(placer.index.look_up([key_of(chain_names(n)[0])])) for n in range(EARLY)]
    assert known == [replays] * EARLY
    assert (feed.num_gaps, feed.num_resyncs) == (1, 0 if replays else 1)
