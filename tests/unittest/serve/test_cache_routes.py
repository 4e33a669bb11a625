# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""What a reader of events believes, and what the cache then does, are the same."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from support.asgi_client import CHAT, LEAD, Client, audio, cached, chat_body, image, text
from support.block_names import block_names

from tensorrt_llm.errors import RequestError
from tensorrt_llm.executor.retention import KvCacheRetentionConfig, TokenRangeRetentionConfig
from tensorrt_llm.llmapi.llm import LLM
from tensorrt_llm.sampling_params import SamplingParams
from tensorrt_llm.serve.openai_server import ServerConfig

EVENTS, RENDER = "/kv_cache_events", "/v1/chat/completions/render"
FLUSH = "/kv_cache/flush"
BLOCK = 16


@pytest.fixture(scope="module", name="small")
def client_with_a_small_pool(phi4mm_checkpoint: Path, engine_host) -> Iterator[Client]:
    cache = {
        "max_tokens": 40 * BLOCK,
        "tokens_per_block": BLOCK,
        "enable_partial_reuse": False,
        "event_buffer_max_size": 512,
    }
    with LLM(
        str(phi4mm_checkpoint),
        kv_cache_config=cache,
        enable_chunked_prefill=True,
        max_seq_len=2048,
        engine_host=engine_host,
    ) as llm:
        yield Client(llm, ServerConfig("tiny"))


def asked(client: Client, path: str, **options: Any) -> Any:
    response = client.send("POST", path, **options)
    assert response.status_code == 200, response.text
    return response.json()


class Follower:
    """A reader that knows of the cache what events say."""

    def __init__(self) -> None:
        self.known: dict[str, str | None] = {}
        self.next_id = self.removed = 0

    def read(self, events: list[dict]) -> None:
        for event in events:
            assert event["event_id"] == self.next_id, "nothing was dropped"
            self.next_id += 1
            data = event["data"]
            if data["type"] == "stored":
                parent = data["parent_hash"]
                assert parent is None or parent in self.known
                for block in data["blocks"]:
                    assert len(block["tokens"]) <= BLOCK
                    self.known[block["block_hash"]] = parent
                    parent = block["block_hash"]
            elif data["type"] == "removed":
                for name in data["block_hashes"]:
                    del self.known[name]
                    self.removed += 1

    def foresees(self, rendered: dict) -> int:
        """Cached tokens of a prompt: whole blocks, and never the prompt's last token."""
        names = block_names(rendered)[: (len(rendered["token_ids"]) - 1) // BLOCK]
        count = next((i for i, name in enumerate(names) if name not in self.known), len(names))
        return count * BLOCK


def test_who_follows_the_events_foresees_every_match(small: Client) -> None:
    choose = random.Random(7)
    follower = Follower()
    parts = [text(LEAD), text("Once more. "), image(1), image(2), audio(3), text("Why? " * 9)]
    hits = 0
    for step in range(40):
        content = [choose.choice(parts) for _ in range(choose.randint(1, 2))]
        body = chat_body([*content, text("Go on.")], cache_salt=choose.choice([None, "other"]))
        rendered = asked(small, RENDER, json=body)
        follower.read(asked(small, EVENTS))
        foreseen = follower.foresees(rendered)
        reply = small.send("POST", "/v1/chat/completions", json=body)
        assert cached(reply) == foreseen, f"step {step}"
        hits += foreseen > 0
    assert hits > 5, "few matches: nothing was shown"
    assert follower.removed > 20, "no pressure"
    assert asked(small, EVENTS), "those of the last request"
    assert asked(small, EVENTS) == [], "reading drains"
    assert small.llm.snapshot()["kvCacheStats"]["droppedEvents"] == 0


def test_events_name_media_and_the_callers_ids(small: Client) -> None:
    asked(small, EVENTS)
    body = chat_body([text(LEAD), image(9, uuid="my picture")])
    small.send("POST", "/v1/chat/completions", json=body)
    keys = [
        key
        for event in small.llm.get_kv_cache_events()
        if event["data"]["type"] == "stored"
        for block in event["data"]["blocks"]
        for key in block["mm_keys"]
    ]
    ((identity,),) = asked(small, RENDER, json=body)["features"]["mm_hashes"].values()
    assert {key["hash"] for key in keys} == {identity}
    assert {key["uuid"] for key in keys} == {"my picture"}
    assert keys[0]["start_offset"] == 0


def test_a_reader_that_stops_costs_the_oldest_events_and_they_are_counted(
    phi4mm_checkpoint: Path, engine_host
) -> None:
    cache = {"max_tokens": 20 * BLOCK, "tokens_per_block": BLOCK, "event_buffer_max_size": 3}
    options = {"kv_cache_config": cache, "max_seq_len": 1024, "engine_host": engine_host}
    with LLM(str(phi4mm_checkpoint), **options) as llm:
        client = Client(llm, ServerConfig("tiny"))
        for number in range(6):
            reply = client.chat(f"{number} is a number. {LEAD}")
            assert reply.status_code == 200
        dropped = llm.snapshot()["kvCacheStats"]["droppedEvents"]
        events = asked(client, EVENTS)
        assert dropped > 0
        assert 0 < len(events) <= 3
        # What is void by the time it is told has no number either.
        assert events[-1]["event_id"] >= dropped


def test_what_was_evicted_is_told_with_the_size_of_the_pool(small: Client) -> None:
    body = chat_body([text("What was here before? "), image(77)])
    small.send("POST", "/v1/chat/completions", json=body)
    for number in range(9):
        small.send("POST", "/v1/chat/completions", json=chat_body(f"{number} {LEAD * 2}"))
    found = asked(small, "/kv_cache/explain", json=body)
    assert (found["reason"], found["cached_tokens"]) == ("evicted", 0)
    assert f"{40 * BLOCK} tokens" in found["advice"][0]


def test_events_as_they_come(small: Client) -> None:
    asked(small, EVENTS)
    assert small.llm.get_kv_cache_events(timeout=0) == []

    async def follow() -> None:
        asking = asyncio.create_task(asyncio.to_thread(small.llm.generate, [300] * 40))
        async for event in small.llm.get_kv_cache_events_async(timeout=60):
            if event["data"]["type"] == "stored":
                break
        else:
            raise AssertionError("nothing was told")
        await asking

    asyncio.run(follow())


def test_without_a_buffer_the_refusal_names_the_option(client: Client) -> None:
    response = client.send("POST", EVENTS)
    assert response.status_code == 400
    assert "kv_cache_config.event_buffer_max_size" in response.json()["message"]


def test_flush_forgets_all_and_disturbs_nobody(small: Client) -> None:
    asked(small, FLUSH)
    body = chat_body([text(LEAD), image(61), audio(62)], cache_salt="flush")
    first = small.send("POST", CHAT, json=body)
    decodes = small.server.media_loader.decodes
    assert cached(small.send("POST", CHAT, json=body)) > 0
    assert small.server.media_loader.decodes == decodes
    params = SamplingParams(max_tokens=150, ignore_eos=True)
    running = small.llm.generate_async([300] * 40, params)
    next(iter(running))
    dropped = asked(small, FLUSH)
    assert running.times.finished is None, "the flush came too late to show anything"
    assert dropped["blocks"] > 0
    assert dropped["embeddings"] == 2
    assert dropped["memo_entries"] >= 2
    assert small.llm.media_memo.stats.entries == 0
    state = small.llm.snapshot()
    assert state["multimodalStats"]["embeddingStore"]["currentBytes"] == 0
    assert state["kvCacheStats"]["cachedNumBlocks"] == 0
    runs = state["multimodalStats"]["encoderRuns"]
    again = small.send("POST", CHAT, json=body)
    assert cached(again) == 0
    assert again.json()["choices"] == first.json()["choices"]
    assert small.server.media_loader.decodes == decodes + 2
    now = small.llm.snapshot()["multimodalStats"]["encoderRuns"]
    assert now == {kind: count + (kind in ("image", "audio")) for kind, count in runs.items()}
    running.result()
    alone = small.llm.generate([300] * 40, params, use_tqdm=False)
    assert running.outputs[0].token_ids == alone.outputs[0].token_ids
    small.send("POST", CHAT, json=body)
    assert cached(small.send("POST", CHAT, json=body)) > 0, "what comes later is kept again"


def test_what_was_warmed_outlives_what_came_later(small: Client) -> None:
    def survives(**retention: Any) -> tuple[int, int]:
        asked(small, FLUSH)
        body = chat_body([text(f"Keep this. {LEAD}"), image(63)], cache_salt="warm")
        warmed = asked(small, "/kv_cache/warm", json=body | retention)
        assert warmed["cached_tokens"] == 0
        evicted = small.llm.snapshot()["kvCacheStats"]["evictedBlocks"]
        for number in range(9):
            small.send("POST", CHAT, json=chat_body(f"{number} {LEAD * 2}"))
        assert small.llm.snapshot()["kvCacheStats"]["evictedBlocks"] > evicted, "no pressure"
        return cached(small.send("POST", CHAT, json=body)), warmed["prompt_tokens"]

    kept, length = survives()
    assert kept == (length - 1) // BLOCK * BLOCK
    # The twins: what is like all others, and what was to be kept only for a moment, goes.
    assert survives(retention_priority=35)[0] == 0
    assert survives(retention_seconds=0.001)[0] == 0
    again = chat_body([text(f"Twice. {LEAD}")], cache_salt="warm")
    for found in (0, None):
        cached_before = asked(small, "/kv_cache/warm", json=again)["cached_tokens"]
        assert (cached_before > 0) == (found is None)


def test_retention_is_taken_in_python_too(small: Client) -> None:
    asked(small, FLUSH)
    keep = KvCacheRetentionConfig([TokenRangeRetentionConfig(0, None, 90)])
    params = SamplingParams(max_tokens=1)
    for first, config in ((301, keep), (302, None)):
        small.llm.generate([first] * 65, params, use_tqdm=False, kv_cache_retention_config=config)
    for number in range(9):
        small.send("POST", CHAT, json=chat_body(f"{number} {LEAD * 2}"))
    left = [
        small.llm.generate([first] * 65, params, use_tqdm=False).cached_tokens
        for first in (301, 302)
    ]
    assert left == [64, 0]
    with pytest.raises(RequestError, match="kv_cache_retention_config"):
        KvCacheRetentionConfig([TokenRangeRetentionConfig(0, None, 101)])


def test_server_info(small: Client) -> None:
    response = small.send("GET", "/server_info")
    assert response.status_code == 200, response.text
    info = response.json()
    assert info["configuration"]["kv_cache_config"]["event_buffer_max_size"] == 512
    assert info["model"]["kv_cache_blocks"] == 40
    assert info["engine"] == {"problem": None, "restarts": 0}


@pytest.mark.parametrize("path", [EVENTS, "/kv_cache/explain", FLUSH, "/kv_cache/warm"])
def test_other_machines_are_refused(small: Client, path: str) -> None:
    async def ask(host: str) -> httpx.Response:
        transport = httpx.ASGITransport(small.app, client=(host, 5))
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            return await client.post(path, json=chat_body("Hi."))

    for host in ("192.0.2.7", "2001:db8::1", "::ffff:192.0.2.7", "testclient"):
        refused = asyncio.run(ask(host))
        assert refused.status_code == 403, host
        assert refused.json()["type"] == "PermissionDeniedError"
    for host in ("127.0.0.1", "::1", "127.9.9.9"):
        assert asyncio.run(ask(host)).status_code == 200, host
