# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Cache events over ZeroMQ, in the wire form of vLLM's publisher, which routers read.

A message has three parts: the topic, a sequence number (8 bytes, big endian) and a batch of events
in msgpack. Who misses a number asks the replay socket, with the first number wanted, and gets what
is still kept, then the number -1. docs/kv-cache.md has the layout.

One thread takes events from the engine and sends them. Sending never waits: for a reader that does
not read, messages are dropped by the socket.
"""

from __future__ import annotations

import json
import time
from collections import deque
from collections.abc import Callable, Sequence
from threading import Event, Thread
from typing import Any, TypeAlias

import msgspec
import zmq

from tensorrt_llm.errors import ConfigurationError, EngineError, EngineStoppedError
from tensorrt_llm.llmapi.llm_args import KvEventsConfig
from tensorrt_llm.logger import get_logger

END_OF_REPLAY = (-1).to_bytes(8, "big", signed=True)
MEDIUM = "GPU"

# Each time the engine's loop is asked: seldom enough that nobody notices.
_POLL_MS = 50
_RETRY_SECONDS = 0.5

_logger = get_logger(__name__)


class _Event(msgspec.Struct, array_like=True, omit_defaults=True, tag=True, frozen=True):
    """Base of all events: an array that begins with the event's name."""


class BlockStored(_Event, frozen=True):
    """Blocks became findable, each below the one before it.

    Attributes:
        block_hashes: Their names, 32 bytes each.
        parent_block_hash: The name of the block above the first; None if there is none.
        token_ids: Their tokens, end to end.
        block_size: Tokens of each.
        lora_id: None.
        medium: Where they are.
        lora_name: None.
        extra_keys: For each block what decides its content beside tokens: for each run of media
            the item's identity in hexadecimal and the row that the block begins with; for the
            first block of a prompt its salt. None where there is nothing.
    """

    block_hashes: list[bytes]
    parent_block_hash: bytes | None
    token_ids: list[int]
    block_size: int
    lora_id: int | None
    medium: str
    lora_name: str | None
    extra_keys: list[list[Any] | None]


class BlockRemoved(_Event, frozen=True):
    """Blocks cannot be found any more."""

    block_hashes: list[bytes]
    medium: str


class AllBlocksCleared(_Event, frozen=True):
    """Forget everything: the engine began anew, or events were lost before they could be sent."""


StreamEvent: TypeAlias = BlockStored | BlockRemoved | AllBlocksCleared


class EventBatch(msgspec.Struct, array_like=True, omit_defaults=True, frozen=True):
    """What happened since the last message.

    Attributes:
        ts: When it was sent, in seconds since 1970.
        events: In order.
    """

    ts: float
    events: list[StreamEvent]


class Translator:
    """Turns the manager's events into those of the stream.

    Attributes:
        num_lost: Events that the manager's buffer had no room for.

    Args:
        tokens_per_block: Tokens of a block.
    """

    def __init__(self, tokens_per_block: int) -> None:
        self.num_lost = 0
        self._size = tokens_per_block
        self._next_id = 0

    def translate(self, lines: Sequence[str]) -> list[StreamEvent]:
        """Events for lines of JSON; what readers of whole blocks need not know is left out."""
        result: list[StreamEvent] = []
        for line in lines:
            event = json.loads(line)
            number, data = event["event_id"], event["data"]
            if number < self._next_id:
                result.append(AllBlocksCleared())  # an engine that was started again
            elif number > self._next_id:
                self.num_lost += number - self._next_id
                _logger.warning(
                    "%d cache events were lost before they could be sent; readers are told to "
                    "forget what they know (kv_events_config.max_queue_size)",
                    number - self._next_id,
                )
                result.append(AllBlocksCleared())
            self._next_id = number + 1
            if data["type"] == "stored":
                result += self._stored(data)
            elif data["type"] == "removed":
                names = [bytes.fromhex(name) for name in data["block_hashes"]]
                result.append(BlockRemoved(names, MEDIUM))
        return result

    def _stored(self, data: dict[str, Any]) -> list[StreamEvent]:
        # An incomplete block is its chain's last one; readers count in whole blocks.
        blocks = [block for block in data["blocks"] if len(block["tokens"]) == self._size]
        if not blocks:
            return []
        parent = data["parent_hash"]
        keys = [
            [[key["hash"], key["start_offset"]] for key in block["mm_keys"]] for block in blocks
        ]
        salt = blocks[0]["cache_salt"]
        if parent is None and salt is not None:
            keys[0].append(salt)
        return [
            BlockStored(
                block_hashes=[bytes.fromhex(block["block_hash"]) for block in blocks],
                parent_block_hash=None if parent is None else bytes.fromhex(parent),
                token_ids=[token["token_id"] for block in blocks for token in block["tokens"]],
                block_size=self._size,
                lora_id=None,
                medium=MEDIUM,
                lora_name=None,
                extra_keys=[key or None for key in keys],
            )
        ]


class EventStream:
    """Publishes cache events until it is closed.

    Attributes:
        num_batches: Messages sent.

    Args:
        config: Where and how.
        tokens_per_block: Tokens of a block.
        take: Gives the events since its last call, as lines of JSON; may wait for a step.

    Raises:
        ConfigurationError: If an endpoint cannot be bound.
    """

    def __init__(
        self, config: KvEventsConfig, tokens_per_block: int, take: Callable[[], list[str]]
    ) -> None:
        self.num_batches = 0
        self._take = take
        self._translator = Translator(tokens_per_block)
        self._topic = config.topic.encode()
        self._kept: deque[tuple[int, bytes]] = deque(maxlen=config.buffer_steps)
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self._closing = Event()
        try:
            self._publisher = self._bind(zmq.PUB, config.endpoint, config.hwm)
            self._replay = (
                None
                if config.replay_endpoint is None
                else self._bind(zmq.ROUTER, config.replay_endpoint, config.hwm)
            )
        except ConfigurationError:
            self._context.destroy(linger=0)
            raise
        self._thread = Thread(target=self._run, name="trtllm-events", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Ends the stream. May be called again."""
        self._closing.set()
        self._thread.join()

    def _bind(self, kind: int, endpoint: str, hwm: int) -> zmq.Socket[bytes]:
        opened = self._context.socket(kind)
        opened.set_hwm(hwm)
        opened.linger = 0
        try:
            opened.bind(endpoint)
        except zmq.ZMQError as error:
            raise ConfigurationError(
                f"kv_events_config: {endpoint} cannot be bound: {error.strerror}"
            ) from error
        return opened

    def _run(self) -> None:
        try:
            while not self._closing.is_set():
                self._answer_replays()
                try:
                    self._publish(self._translator.translate(self._take()))
                except EngineStoppedError:
                    return
                except EngineError as error:  # it is being started again
                    _logger.debug("no cache events now: %s", error)
                    self._closing.wait(_RETRY_SECONDS)
        except Exception:
            _logger.exception("the stream of cache events ended because of a fault of ours")
        finally:
            self._context.destroy(linger=0)

    def _publish(self, events: list[StreamEvent]) -> None:
        if not events:
            return
        payload = msgspec.msgpack.encode(EventBatch(time.time(), events))
        number = self.num_batches
        self._kept.append((number, payload))
        self._publisher.send_multipart((self._topic, number.to_bytes(8, "big"), payload))
        self.num_batches = number + 1

    def _answer_replays(self) -> None:
        if self._replay is None:
            self._closing.wait(_POLL_MS / 1e3)
            return
        if not self._replay.poll(_POLL_MS):
            return
        try:
            client, *_, wanted = self._replay.recv_multipart(zmq.NOBLOCK)
            first = int.from_bytes(wanted, "big")
            for number, payload in self._kept:
                if number >= first:
                    frame = (client, b"", number.to_bytes(8, "big"), payload)
                    self._replay.send_multipart(frame, zmq.NOBLOCK)
            self._replay.send_multipart((client, b"", END_OF_REPLAY, b""), zmq.NOBLOCK)
        except (zmq.ZMQError, ValueError) as error:
            _logger.warning("a replay of cache events was not answered in full: %s", error)
