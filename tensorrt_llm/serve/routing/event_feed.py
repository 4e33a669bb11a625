# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""From one replica's stream of cache events to the index.

Messages are numbered. After a gap what is known may be wrong in both directions, so the missing
ones are asked for; if they are not kept any more, all that is known of the replica is dropped, and
the stream goes on from there.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from tensorrt_llm.llmapi.event_stream import (
    AllBlocksCleared,
    BlockRemoved,
    BlockStored,
    EventBatch,
)
from tensorrt_llm.logger import get_logger
from tensorrt_llm.serve.routing.block_index import key_of
from tensorrt_llm.serve.routing.placement import Placer

_logger = get_logger(__name__)


class EventFeed:
    """Applies the events of one replica, each once and in order.

    Attributes:
        next_number: Of the message that is applied next; asked for after a gap.
        num_gaps: Gaps that were seen.
        num_resyncs: Of these, those that no replay filled, and new beginnings of the stream.

    Args:
        replica: Whose events.
        placer: Told of them. It must know the replica.
    """

    def __init__(self, replica: str, placer: Placer) -> None:
        self.next_number = 0
        self.num_gaps = 0
        self.num_resyncs = 0
        self._replica = replica
        self._placer = placer
        self._decode = msgspec.msgpack.Decoder(EventBatch).decode

    def live(self, number: int, payload: bytes) -> bool:
        """Takes a message from the stream.

        Returns:
            False if others are missing before it: ask for them from ``next_number``, hand the
            answer to ``replayed``, and then this message here again.
        """
        if number < self.next_number:
            # On a stream numbers only grow, and a replay gives none that the stream still brings.
            self._resync("its stream began again")
            self.next_number = 0
        if number > self.next_number:
            self.num_gaps += 1
            return False
        self._apply(payload)
        return True

    def replayed(self, messages: Sequence[tuple[int, bytes]], up_to: int) -> None:
        """Takes the answer to a question for what was missing.

        Args:
            messages: Numbers and payloads, ascending; empty if there was no answer.
            up_to: Number of the message that ``live`` did not take.
        """
        for number, payload in messages:
            if number == self.next_number and number < up_to:
                self._apply(payload)
        if self.next_number < up_to:
            self._resync(f"messages {self.next_number} to {up_to - 1} are lost")
            self.next_number = up_to

    def _resync(self, why: str) -> None:
        _logger.warning("what %s has cached is unknown now: %s", self._replica, why)
        self.num_resyncs += 1
        self._placer.clear(self._replica)

    def _apply(self, payload: bytes) -> None:
        self.next_number += 1
        try:
            events = self._decode(payload).events
        except msgspec.MsgspecError as error:
            self._resync(f"a message cannot be read ({error})")
            return
        for event in events:
            if isinstance(event, BlockStored):
                self._placer.stored(self._replica, [key_of(one) for one in event.block_hashes])
            elif isinstance(event, BlockRemoved):
                self._placer.removed(self._replica, [key_of(one) for one in event.block_hashes])
            elif isinstance(event, AllBlocksCleared):
                self._placer.clear(self._replica)
