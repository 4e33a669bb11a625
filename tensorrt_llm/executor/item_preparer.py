# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Makes encoder inputs that the engine turned out to need, in threads of the door.

The door may know an item without having decoded it, but never assumes what the engine still holds.
Where the engine finds rows missing it asks, and the request waits while the item is prepared here.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from tensorrt_llm.inputs.data import ProcessedItem

_THREADS = 4


class ItemPreparer:
    """Prepares items side by side. Safe to use from several threads.

    Args:
        provide: Called with request id, item and encoder inputs, from a thread of this class.
        fail: Called with request id and error if an item cannot be prepared, likewise.
        wanted: Tells whether a request still waits, likewise: an item whose turn comes when its
            request has ended is not prepared.
    """

    def __init__(
        self,
        provide: Callable[[int, int, Mapping[str, Any]], None],
        fail: Callable[[int, Exception], None],
        wanted: Callable[[int], bool],
    ) -> None:
        self._provide = provide
        self._fail = fail
        self._wanted = wanted
        self._threads = ThreadPoolExecutor(_THREADS, "items")

    def request(
        self, request_id: int, items: Sequence[ProcessedItem], indices: Collection[int]
    ) -> None:
        """Starts to prepare items of a request; does not wait.

        Args:
            request_id: The request.
            items: All of its items.
            indices: Those to prepare.
        """
        for index in indices:
            self._threads.submit(self._prepare, request_id, index, items[index])

    def close(self) -> None:
        """Gives up what has not begun; does not wait for what has."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _prepare(self, request_id: int, index: int, item: ProcessedItem) -> None:
        if not self._wanted(request_id):
            return
        try:
            # Looking at deferred inputs is what makes them.
            self._provide(request_id, index, dict(item.encoder_inputs))
        except Exception as error:
            self._fail(request_id, error)
