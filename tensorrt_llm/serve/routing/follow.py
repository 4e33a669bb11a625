# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Reads one replica's stream of cache events for as long as it is wanted."""

from __future__ import annotations

import asyncio

import zmq
import zmq.asyncio

from tensorrt_llm.llmapi.event_stream import END_OF_REPLAY
from tensorrt_llm.serve.routing.event_feed import EventFeed

REPLAY_SECONDS = 5.0
"""What an answer to a question for missing messages may take, in all."""


async def follow(
    feed: EventFeed, endpoint: str, replay_endpoint: str | None, topic: str = ""
) -> None:
    """Feeds a stream until it is cancelled.

    Begins with what the replica still keeps of the past, if it answers such questions.

    Args:
        feed: Told of each message.
        endpoint: Where the stream is published.
        replay_endpoint: Where missing messages are asked for; None: they stay missing.
        topic: The stream's.
    """
    with zmq.asyncio.Context() as context:
        stream = context.socket(zmq.SUB)
        stream.linger = 0
        stream.subscribe(topic)
        stream.connect(endpoint)
        try:
            while True:
                _, raw, payload = await stream.recv_multipart()
                number = int.from_bytes(raw, "big")
                if not feed.live(number, payload):
                    missing = await _ask(context, replay_endpoint, feed.next_number, number)
                    feed.replayed(missing, number)
                    feed.live(number, payload)
        finally:
            stream.close()


async def _ask(
    context: zmq.asyncio.Context, endpoint: str | None, first: int, end: int
) -> list[tuple[int, bytes]]:
    """Messages from ``first`` on and before ``end``, as many as are kept and come in time."""
    found: list[tuple[int, bytes]] = []
    if endpoint is None:
        return found
    # A socket for each question: a late answer to another one cannot be taken for its own.
    asked = context.socket(zmq.DEALER)
    asked.linger = 0
    asked.connect(endpoint)
    try:
        await asyncio.wait_for(_collect(asked, first, end, found), REPLAY_SECONDS)
    except asyncio.TimeoutError:
        pass
    finally:
        asked.close()
    return found


async def _collect(
    asked: zmq.asyncio.Socket, first: int, end: int, found: list[tuple[int, bytes]]
) -> None:
    await asked.send_multipart((b"", first.to_bytes(8, "big")))
    while True:
        _, raw, payload = await asked.recv_multipart()
        if raw == END_OF_REPLAY:
            return
        number = int.from_bytes(raw, "big")
        if number < end:
            found.append((number, payload))
