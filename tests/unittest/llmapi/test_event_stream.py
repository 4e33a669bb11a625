# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""A reader that loses messages and asks again knows what the cache has."""

from __future__ import annotations

import json
import random
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
import zmq
from support.asgi_client import CHAT, LEAD, Client, cached, chat_body, image, text
from support.block_names import block_names
from support.engine import wait_until

from tensorrt_llm.errors import ConfigurationError, EngineRestartingError, RequestError
from tensorrt_llm.llmapi.event_stream import END_OF_REPLAY, EventStream, Translator
from tensorrt_llm.llmapi.llm import LLM
from tensorrt_llm.llmapi.llm_args import KvEventsConfig
from tensorrt_llm.serve.openai_server import ServerConfig

BLOCK = 16


def free_endpoint() -> str:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"tcp://127.0.0.1:{probe.getsockname()[1]}"


def settings(**more: Any) -> KvEventsConfig:
    ends = {"endpoint": free_endpoint(), "replay_endpoint": free_endpoint()}
    return KvEventsConfig(enable_kv_cache_events=True, topic="kv", **{**ends, **more})


class Reader:
    """Reads the wire as any router would: nothing here is the engine's code."""

    def __init__(self, config: KvEventsConfig, lose: float = 0.0, block: int = BLOCK) -> None:
        self.config, self.block = config, block
        self.known: dict[bytes, bytes | None] = {}
        self.next = self.lost = self.removed = self.cleared = 0
        self.keys: list[Any] = []
        self._choose, self._lose = random.Random(5), lose
        self.connect()

    def connect(self) -> None:
        config = self.config
        self._context = zmq.Context()
        self._live = self._context.socket(zmq.SUB)
        self._live.subscribe(config.topic)
        self._live.connect(config.endpoint)
        self._again = self._context.socket(zmq.DEALER)
        self._again.connect(config.replay_endpoint)

    def close(self) -> None:
        self._context.destroy(linger=0)

    def read(self) -> None:
        while self._live.poll(5):
            topic, number, payload = self._live.recv_multipart()
            assert topic == b"kv"
            if self._choose.random() < self._lose:
                self.lost += 1
                continue
            if int.from_bytes(number, "big") > self.next:
                self.replay()
            self._take(number, payload)

    def replay(self) -> None:
        self._again.send_multipart((b"", self.next.to_bytes(8, "big")))
        while True:
            assert self._again.poll(5000), "no answer"
            empty, number, payload = self._again.recv_multipart()
            assert empty == b""
            if number == END_OF_REPLAY:
                return
            self._take(number, payload)

    def _take(self, number: bytes, payload: bytes) -> None:
        if int.from_bytes(number, "big") != self.next:
            return  # seen in a replay
        self.next += 1
        _, events = msgspec.msgpack.decode(payload)
        for kind, *fields in events:
            if kind == "BlockStored":
                names, parent, tokens, size, lora, medium, lora_name, keys = fields
                assert (size, lora, medium, lora_name) == (self.block, None, "GPU", None)
                assert len(tokens) == size * len(names) == size * len(keys)
                assert parent is None or parent in self.known
                for name in names:
                    self.known[name], parent = parent, name
                self.keys += keys
            elif kind == "BlockRemoved":
                for name in fields[0]:
                    self.removed += self.known.pop(name, self) is not self
            else:
                assert kind == "AllBlocksCleared"
                self.cleared += 1
                self.known.clear()

    def foresees(self, rendered: dict) -> int:
        names = block_names(rendered)[: (len(rendered["token_ids"]) - 1) // BLOCK]
        known = [bytes.fromhex(name) in self.known for name in names]
        return (known.index(False) if False in known else len(known)) * BLOCK


@contextmanager
def reading(config: KvEventsConfig, lose: float = 0.0) -> Iterator[Reader]:
    reader = Reader(config, lose)
    try:
        yield reader
    finally:
        reader.close()


def test_a_reader_that_loses_messages_foresees_every_match(
    phi4mm_checkpoint: Path, engine_host
) -> None:
    config = settings()
    cache = {
        "max_tokens": 30 * BLOCK,
        "tokens_per_block": BLOCK,
        "enable_partial_reuse": False,
        "kv_events_config": config,
    }
    options = {"kv_cache_config": cache, "max_seq_len": 1024, "engine_host": engine_host}
    choose = random.Random(3)
    parts = [text(LEAD), text("Once more. "), image(1), image(2), text("Why? " * 9)]
    with LLM(str(phi4mm_checkpoint), **options) as llm, reading(config, lose=0.3) as reader:
        client = Client(llm, ServerConfig("tiny"))
        with reading(config) as dead:  # connected, and never reads
            for step in range(25):
                content = [choose.choice(parts) for _ in range(choose.randint(1, 2))]
                body = chat_body([*content, text("Go.")], cache_salt=choose.choice([None, "a"]))
                rendered = client.send("POST", "/v1/chat/completions/render", json=body).json()
                now = client.send("POST", "/kv_cache/explain", json=body).json()["cached_tokens"]

                def knows(rendered: dict = rendered, now: int = now) -> bool:
                    reader.read()
                    reader.replay()
                    return reader.foresees(rendered) == now

                wait_until(knows, f"step {step}: the reader knows what is cached")
                assert cached(client.send("POST", CHAT, json=body)) == now
            assert not dead.known
        with pytest.raises(RequestError, match="kv_events_config"):
            llm.get_kv_cache_events()
    assert reader.lost > 3, "nothing was lost"
    assert reader.removed > 10, "no pressure"
    assert reader.cleared == 0
    media = [key for keys in reader.keys if keys for key in keys if isinstance(key, list)]
    identities = {identity for identity, _ in media}
    assert len(identities) == 2
    assert {row for _, row in media if row} != set()
    assert any(keys and "a" in keys for keys in reader.keys)


def line(number: int, **data: Any) -> str:
    return json.dumps({"event_id": number, "data": data, "window_size": 8})


def stored(number: int, name: str) -> str:
    tokens = [{"type": "unique_token", "token_id": 1, "token_extra_id": 0}] * 2
    block = {"block_hash": name * 32, "tokens": tokens, "mm_keys": [], "cache_salt": None}
    return line(number, type="stored", parent_hash=None, blocks=[block])


def test_what_was_lost_before_it_could_be_sent_is_announced() -> None:
    translator = Translator(2)
    kinds = [
        [type(event).__name__ for event in translator.translate(lines)]
        for lines in (
            [line(0, type="created", num_blocks_per_cache_level=[4, 0]), stored(1, "aa")],
            [stored(2, "bb")],
            [stored(7, "cc"), line(8, type="removed", block_hashes=["cc" * 32])],
            [line(0, type="created", num_blocks_per_cache_level=[4, 0])],
            [line(1, type="updated", block_hash="aa" * 32, cache_level=None, priority=None)],
        )
    ]
    assert kinds == [
        ["BlockStored"],
        ["BlockStored"],
        ["AllBlocksCleared", "BlockStored", "BlockRemoved"],
        ["AllBlocksCleared"],
        [],
    ]
    assert translator.num_lost == 4


def test_an_engine_that_is_away_is_asked_again_and_only_so_much_is_kept() -> None:
    waiting = [EngineRestartingError("away"), *([stored(number, "aa")] for number in range(6))]

    def take() -> list[str]:
        if not waiting:
            return []
        found = waiting.pop(0)
        if isinstance(found, Exception):
            raise found
        return found

    config = settings(buffer_steps=2)
    stream = EventStream(config, 2, take)
    try:
        wait_until(lambda: stream.num_batches == 6, "all is sent")
        context = zmq.Context()
        again = context.socket(zmq.DEALER)
        again.connect(config.replay_endpoint)
        for wrong in (b"x" * 100, b""):
            again.send_multipart((b"", wrong))
        again.send_multipart((b"", (0).to_bytes(8, "big")))
        numbers = []
        while numbers.count(END_OF_REPLAY) < 3:
            assert again.poll(5000)
            numbers.append(again.recv_multipart()[1])
        context.destroy(linger=0)
        assert [int.from_bytes(number, "big") for number in numbers[-3:-1]] == [4, 5]
        with pytest.raises(ConfigurationError, match="cannot be bound"):
            EventStream(config, 2, take)
    finally:
        stream.close()
        stream.close()
