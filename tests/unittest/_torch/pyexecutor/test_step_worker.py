# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Two things at a time, and whatever goes wrong in either, both have ended."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from tensorrt_llm._torch.pyexecutor.step_worker import StepWorker


@pytest.fixture
def worker() -> Iterator[StepWorker]:
    worker = StepWorker()
    yield worker
    worker.close()


def test_they_run_at_the_same_time_in_two_threads(worker) -> None:
    met = threading.Barrier(2, timeout=60)
    threads = []

    def meet() -> str:
        threads.append(threading.current_thread().name)
        met.wait()
        return "logits"

    assert worker.run(meet, meet).result() == "logits"
    assert sorted(threads) == sorted(["trtllm-step", threading.current_thread().name])


def test_an_error_of_the_step_is_its_result(worker) -> None:
    beside = []
    future = worker.run(lambda: 1 // 0, lambda: beside.append(1))
    assert beside == [1] and isinstance(future.exception(), ZeroDivisionError)
    assert worker.run(lambda: 2, lambda: None).result() == 2


def test_an_error_beside_the_step_is_raised_when_the_step_has_ended(worker) -> None:
    begun, ended = threading.Event(), []

    def step() -> None:
        begun.set()
        ended.append(1)

    def beside() -> None:
        assert begun.wait(60)
        raise ValueError("beside")

    with pytest.raises(ValueError, match="beside"):
        worker.run(step, beside)
    assert ended == [1]
