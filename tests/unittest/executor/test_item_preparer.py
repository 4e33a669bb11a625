# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Items are prepared side by side, in threads of the door."""

from __future__ import annotations

import queue
import threading
from typing import Any

from tensorrt_llm.errors import MediaError
from tensorrt_llm.executor.item_preparer import ItemPreparer
from tensorrt_llm.inputs.data import DeferredInputs, PlaceholderRun, ProcessedItem


def item(load) -> ProcessedItem:
    return ProcessedItem("image", None, (PlaceholderRun(0, 1),), DeferredInputs(load))


def test_items_come_one_by_one_and_a_failure_is_told() -> None:
    told: queue.SimpleQueue[Any] = queue.SimpleQueue()
    preparer = ItemPreparer(
        lambda *given: told.put(given),
        lambda request_id, error: told.put((request_id, type(error), str(error))),
        lambda _: True,
    )
    gate = threading.Event()

    def slow() -> dict[str, int]:
        assert gate.wait(60)
        return {"x": 1}

    def broken() -> dict[str, int]:
        raise MediaError("cannot be read")

    items = [item(slow), item(lambda: {"y": 2}), item(broken)]
    preparer.request(7, items, [0, 1])
    assert told.get(timeout=60) == (7, 1, {"y": 2})
    gate.set()
    assert told.get(timeout=60) == (7, 0, {"x": 1})
    preparer.request(8, items, [2])
    assert told.get(timeout=60) == (8, MediaError, "cannot be read")
    preparer.close()


def test_what_cannot_be_provided_fails_as_well() -> None:
    failed: queue.SimpleQueue[Any] = queue.SimpleQueue()

    def refuse(*_: Any) -> None:
        raise TypeError("no")

    preparer = ItemPreparer(
        refuse, lambda request_id, error: failed.put((request_id, str(error))), lambda _: True
    )
    preparer.request(3, [item(lambda: {})], [0])
    assert failed.get(timeout=60) == (3, "no")
    preparer.close()


def test_items_of_a_request_that_has_ended_are_not_prepared() -> None:
    told: queue.SimpleQueue[Any] = queue.SimpleQueue()
    looked: list[int] = []
    preparer = ItemPreparer(
        lambda *given: told.put(given),
        lambda *given: told.put(given),
        lambda request_id: request_id == 2,
    )
    for request_id in (1, 2):
        preparer.request(
            request_id, [item(lambda number=request_id: looked.append(number) or {})], [0]
        )
    assert told.get(timeout=60) == (2, 0, {})
    preparer.close()
    assert looked == [2]
