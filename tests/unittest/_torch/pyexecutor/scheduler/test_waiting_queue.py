# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""The order of admission."""

from __future__ import annotations

import random
from dataclasses import dataclass

import pytest

from tensorrt_llm._torch.pyexecutor.scheduler.waiting_queue import (
    PRIORITY_SECONDS,
    OrderedRequests,
    admission_order,
)


@dataclass(eq=False)
class Work:
    order: tuple[float, int]


def work(arrival: float, priority: float = 0.5, number: int = 0) -> Work:
    return Work(admission_order(arrival, priority, number))


def ordered(*requests: Work) -> list[Work]:
    queue: OrderedRequests[Work] = OrderedRequests()
    for request in requests:
        queue.add(request)
    return list(queue)


def test_equal_priorities_go_in_order_of_arrival_and_then_of_number() -> None:
    requests = [work(1.0), work(2.0, number=7), work(2.0, number=8)]
    assert ordered(*reversed(requests)) == requests


def test_a_higher_priority_goes_first_among_those_who_wait_together() -> None:
    low, high = work(0.0, 0.1), work(5.0, 0.9)
    assert ordered(low, high) == [high, low]


def test_nobody_is_overtaken_for_ever() -> None:
    low, high = work(0.0, 0.0), work(PRIORITY_SECONDS + 1.0, 1.0)
    assert ordered(low, high) == [low, high]


def test_random_additions_and_removals_keep_the_order() -> None:
    seed = random.randrange(2**32)
    rng = random.Random(seed)
    queue: OrderedRequests[Work] = OrderedRequests()
    model: list[Work] = []
    for number in range(2000):
        if model and rng.random() < 0.45:
            gone = model.pop(rng.randrange(len(model)))
            queue.remove(gone)
            with pytest.raises(ValueError, match="not in this list"):
                queue.remove(gone)
        else:
            model.append(work(rng.randrange(20), rng.choice([0.0, 0.5, 1.0]), number))
            queue.add(model[-1])
        assert list(queue) == sorted(model, key=lambda one: one.order), seed
        assert len(queue) == len(model)
