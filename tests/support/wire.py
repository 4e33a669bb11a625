# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""The connection between door and engine with both ends in one process."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tensorrt_llm.executor.ipc import Channel, Listener, connect


@contextmanager
def connected() -> Iterator[tuple[Channel, Channel]]:
    """The door's end and the engine's."""
    listener = Listener()
    door = listener.channel()
    engine = connect(listener.folder, listener.theirs)
    assert door.wait_for_peer(20)
    try:
        yield door, engine
    finally:
        listener.remove_folder()
        engine.close()
        door.close()


def receive(channel: Channel, seconds: float = 20) -> Any:
    """The next message that comes in at this end."""
    assert channel.receiver.poll(1e3 * seconds), "nothing came"
    return channel.receive()
