# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from support.engine import wait_until
from support.flights import waiting_for_others

from tensorrt_llm.errors import LimitExceededError
from tensorrt_llm.inputs.single_flight import SingleFlight

waiting = pytest.fixture(waiting_for_others)


class Work:
    """Counts its runs, and lasts until it is let go."""

    def __init__(self, error: Exception | None = None) -> None:
        self.runs = 0
        self.error = error
        self.go = threading.Event()

    def __call__(self) -> object:
        self.runs += 1
        assert self.go.wait(60)
        if self.error is not None:
            raise self.error
        return object()


def run_together(flight: SingleFlight, key: str, work: Work, waiting: list, count: int = 6) -> list:
    with ThreadPoolExecutor(count) as threads:
        futures = [threads.submit(flight.do, key, work) for _ in range(count)]
        wait_until(lambda: work.runs + len(waiting) == count, "all have come")
        work.go.set()
        return [future.exception() or future.result() for future in futures]


def test_equal_work_is_done_once_at_a_time_and_again_later(waiting) -> None:
    flight, work = SingleFlight(), Work()
    results = run_together(flight, "a", work, waiting)
    assert work.runs == 1 and len({id(result) for result in results}) == 1
    assert flight.do("a", work) is not results[0] and work.runs == 2


def test_other_work_is_not_waited_for() -> None:
    flight, work = SingleFlight(), Work()
    thread = threading.Thread(target=flight.do, args=("a", work))
    thread.start()
    assert flight.do("b", lambda: 5) == 5
    work.go.set()
    thread.join()


def test_results_are_kept_if_asked() -> None:
    flight, work = SingleFlight(keeps=True), Work()
    work.go.set()
    assert flight.do("a", work) is flight.do("a", work) and work.runs == 1


@pytest.mark.parametrize("keeps", [False, True])
def test_everybody_gets_an_error_of_his_own(keeps, waiting) -> None:
    flight = SingleFlight(keeps=keeps)
    work = Work(LimitExceededError("max_bytes", 5, 4, "bytes"))
    errors = run_together(flight, "a", work, waiting)
    assert work.runs == 1 and len({id(error) for error in errors}) == len(errors)
    for number, error in enumerate(errors):
        error.at(f"messages[{number}]")
    for number, error in enumerate(errors):
        assert str(error) == f"messages[{number}]: 5 bytes exceed max_bytes (4 bytes)"
        assert (error.value, error.maximum) == (5, 4)
