# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Random clients over HTTP on a server whose pool holds three requests.

They arrive, stream or wait, hang up half-way, and check what they got. ``TRTLLM_LOAD_SECONDS`` says
for how long each setting runs, and has every setting run; the seed is printed, and
``TRTLLM_LOAD_SEED`` sets it. So 30 minutes in all are

    export TRTLLM_LOAD_SECONDS=450
    make test-python TESTS="-s tests/integration/test_http_load.py"
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest
from support.chat_oracle import ChatOracle, content_json
from support.engine import names_left, wait_until
from support.footprint import footprint
from support.media import clip, picture
from support.reference import ReferenceModel
from support.server import Server

ON_DEMAND = "TRTLLM_LOAD_SECONDS" in os.environ
SECONDS = float(os.environ.get("TRTLLM_LOAD_SECONDS", "30"))
SEED = int(os.environ.get("TRTLLM_LOAD_SEED", random.randrange(2**32)))
MOST_NEW = 60
MOST_AT_ONCE = 10
STORE_BYTES = 30_000
SETTINGS = [("GUARANTEED_NO_EVICT", None), ("MAX_UTILIZATION", "1MiB")]
MORE_SETTINGS = [("GUARANTEED_NO_EVICT", "1MiB"), ("MAX_UTILIZATION", None)]


@dataclass(frozen=True)
class Question:
    """A user's content, its length in tokens, and the first tokens of the right answer."""

    content: list[dict[str, Any]]
    length: int
    answer: list[int]


@pytest.fixture(scope="module")
def oracle_of_load(phi4mm_checkpoint: Path) -> ChatOracle:
    return ChatOracle(phi4mm_checkpoint)


@pytest.fixture(scope="module")
def questions(phi4mm_checkpoint: Path, oracle_of_load: ChatOracle) -> list[Question]:
    """Answered by the unmodified model."""
    reference = ReferenceModel(phi4mm_checkpoint)
    shared = "These words come first in several of the requests, then something else: "
    made = []
    for parts in (
        (shared + "one.",),
        (shared + "two, at some more length than the one before." * 2,),
        (shared, picture(1), "What is it?"),
        (shared, picture(2), "What is it?"),
        (picture(1), " and ", picture(3, 60, 90)),
        ("Listen: ", clip(1, 1.0)),
    ):
        prompt = oracle_of_load.prompt(("user", parts))
        answer = reference.greedy(prompt, MOST_NEW).tokens
        made.append(Question(content_json(*parts), len(prompt), answer))
    return made


@dataclass
class Load:
    """The clients of one run, and how they ended."""

    url: str
    questions: Sequence[Question]
    oracle: ChatOracle
    rng: random.Random
    pauses: bool
    offloads: bool
    ended: Counter[str] = field(default_factory=Counter)
    seen: Counter[str] = field(default_factory=Counter)

    def text(self, tokens: Sequence[int]) -> str:
        return self.oracle.make.tokenizer.decode(tokens, skip_special_tokens=True)

    async def run(self, seconds: float) -> None:
        """Clients at random until the time is up, and a reader of statistics."""
        limits = httpx.Limits(max_connections=2 * MOST_AT_ONCE)
        async with httpx.AsyncClient(
            base_url=self.url, trust_env=False, timeout=60, limits=limits
        ) as client:
            end, clients = time.monotonic() + seconds, set()
            # A busy machine gets more time until all that is to happen has happened.
            while time.monotonic() < end or (not self.pressed and time.monotonic() < end + 60):
                for _ in range(self.rng.choice([1, 1, 1, 4])):
                    if len(clients) < MOST_AT_ONCE:
                        clients.add(asyncio.create_task(self.visit(client)))
                await asyncio.sleep(0.2 * self.rng.random())
                clients = {one for one in clients if not one.done() or one.result()}
                await self.read_metrics(client)
            await asyncio.wait_for(asyncio.gather(*clients), 120)
            await self.read_metrics(client)

    @property
    def pressed(self) -> bool:
        """Whether each kind of client came, and all happened to them that room for three makes."""
        kinds = ("whole", "streamed", "hung up", "gave up")
        paused = self.seen["paused"] > 0 or not self.pauses
        offloaded = self.seen["offloaded"] > 0 or not self.offloads
        had_to = self.seen["queued"] > 0 and self.seen["lost"] > 0 and paused and offloaded
        return had_to and all(self.ended[kind] for kind in kinds)

    async def read_metrics(self, client: httpx.AsyncClient) -> None:
        for record in (await client.get("/metrics")).json():
            self.seen["queued"] += record["numQueuedRequests"]
            self.seen["paused"] += record["inflightBatchingStats"]["numPausedRequests"]
            self.seen["steps"] += 1
            cache, store = record["kvCacheStats"], record["multimodalStats"]["embeddingStore"]
            self.seen["offloaded"] = cache["offloadedBlocks"]
            self.seen["lost"] = cache["evictedBlocks"] + cache["offloadedBlocks"]
            assert store["currentBytes"] <= STORE_BYTES

    async def visit(self, client: httpx.AsyncClient) -> None:
        """One client with one question."""
        rng = self.rng
        question = rng.choice(self.questions)
        count = rng.choice([1, 8, 30, MOST_NEW, MOST_NEW])
        body = {
            "messages": [{"role": "user", "content": question.content}],
            **{"temperature": 0, "ignore_eos": True, "max_tokens": count},
        }
        if rng.random() < 0.25:
            body["cache_salt"] = "tenant"
        right = self.text(question.answer[:count])
        if rng.random() < 0.5:
            await self.stream(
                client, body, right, rng.randrange(12) if rng.random() < 0.4 else None
            )
        else:
            await self.whole(client, body, right, rng.random() if rng.random() < 0.4 else None)

    async def stream(
        self, client: httpx.AsyncClient, body: dict[str, Any], right: str, events: int | None
    ) -> None:
        """Reads a stream, or so many events of it and hangs up."""
        text = ""
        fields = {**body, "stream": True}
        async with client.stream("POST", "/v1/chat/completions", json=fields) as response:
            assert response.status_code == 200
            async for line in response.aiter_lines():
                if events == 0:
                    break
                if not line.startswith("data: ") or line == "data: [DONE]":
                    continue
                event = json.loads(line.removeprefix("data: "))
                assert "error" not in event, event
                text += "".join(one["delta"].get("content") or "" for one in event["choices"])
                events = None if events is None else events - 1
        if events is None:
            assert text == right
        assert right.startswith(text)
        self.ended["hung up" if events == 0 else "streamed"] += 1

    async def whole(
        self, client: httpx.AsyncClient, body: dict[str, Any], right: str, patience: float | None
    ) -> None:
        """Waits for the whole answer, or so many seconds and hangs up."""
        asked = client.post("/v1/chat/completions", json=body)
        try:
            response = await asyncio.wait_for(asked, patience)
        except asyncio.TimeoutError:
            self.ended["gave up"] += 1
            return
        assert response.status_code == 200, response.text
        assert response.json()["choices"][0]["message"]["content"] == right
        self.ended["whole"] += 1


def ask_once(server: Server) -> dict[str, Any]:
    """What an answer of one token was like for the engine."""
    assert server.chat("Hello", max_tokens=1).status == 200
    return server.metrics()[-1]


def alone(server: Server) -> bool:
    last = ask_once(server)
    return (last["numActiveRequests"], last["numQueuedRequests"]) == (1, 0)


@pytest.mark.timeout(SECONDS + 450)
@pytest.mark.parametrize(("policy", "host"), SETTINGS + (MORE_SETTINGS if ON_DEMAND else []))
def test_every_answer_is_right_and_everything_comes_back(
    phi4mm_checkpoint: Path,
    questions: list[Question],
    oracle_of_load: ChatOracle,
    tmp_path: Path,
    policy: str,
    host: str | None,
) -> None:
    print(f"TRTLLM_LOAD_SEED={SEED}")
    longest = max(question.length for question in questions) + MOST_NEW
    settings: dict[str, Any] = {
        "max_num_tokens": 64,
        "enable_chunked_prefill": True,
        "kv_cache_config": {"max_tokens": 3 * longest, "host_cache_size": host},
        "multimodal_config": {"encoder_cache_max_bytes": STORE_BYTES},
        "scheduler_config": {"capacity_scheduler_policy": policy},
    }
    config = tmp_path / "config.yaml"
    config.write_text(json.dumps(settings))  # JSON is YAML
    before = names_left()
    with Server([str(phi4mm_checkpoint), "--config", str(config)], tmp_path / "log") as server:
        server.wait_until_ready()
        pauses = policy == "MAX_UTILIZATION"
        load = Load(
            server.url, questions, oracle_of_load, random.Random(SEED), pauses, host is not None
        )
        for question in questions:  # what is opened on first use is open afterwards
            reply = server.chat(question.content, max_tokens=2, ignore_eos=True)
            assert (reply.text, reply.error) == (load.text(question.answer[:2]), None)
        idle = footprint(server).held["descriptors"]
        asyncio.run(load.run(SECONDS))
        print(f"{policy}, host {host}: {dict(load.ended)}, {dict(load.seen)}")
        # Who hung up is gone a moment later; then whoever asks is alone.
        wait_until(lambda: alone(server), "all have left")
        last = ask_once(server)
        cache, store = last["kvCacheStats"], last["multimodalStats"]["embeddingStore"]
        assert load.pressed and cache["evictedBlocks"] + cache["offloadedBlocks"] > 0, "no pressure"
        assert (load.seen["paused"] > 0) == pauses, "no pressure"
        assert (cache["offloadedBlocks"] > 0) == (host is not None), "no pressure"
        assert cache["usedNumBlocks"] == store["pinnedCount"] == store["lentBytes"] == 0
        # A closed connection is let go of a moment later.
        wait_until(
            lambda: footprint(server).held["descriptors"] == idle,
            f"descriptors are {idle} again",
        )
        # Other programs may make such names too, and take them away again.
        wait_until(lambda: names_left() <= before, "nothing with a name is left")
        assert "Traceback" not in server.log_text()
