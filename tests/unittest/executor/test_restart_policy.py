# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""When an engine may be started again."""

from __future__ import annotations

import pytest

from tensorrt_llm.executor.restart_policy import MAX_DELAY_SECONDS, RestartPolicy
from tensorrt_llm.llmapi.llm_args import EngineConfig


def policy(**config: float) -> RestartPolicy:
    return RestartPolicy(EngineConfig(**config))


def test_the_first_restart_is_at_once_and_later_ones_wait_longer_and_longer() -> None:
    restarts = policy(max_restarts=9, restart_delay_seconds=1)
    delays = [restarts.next_delay(float(second)) for second in range(9)]
    assert delays == [0, 1, 2, 4, 8, 16, 30, 30, 30]
    assert max(delays) == MAX_DELAY_SECONDS


@pytest.mark.parametrize("most", [0, 1, 3])
def test_the_number_of_restarts_is_bounded(most: int) -> None:
    restarts = policy(max_restarts=most)
    delays = [restarts.next_delay(0.0) for _ in range(most + 2)]
    assert [delay is None for delay in delays] == [False] * most + [True, True]
    assert restarts.count == most


def test_what_lies_before_the_window_no_longer_counts() -> None:
    restarts = policy(max_restarts=2, restart_window_seconds=100, restart_delay_seconds=3)
    assert [restarts.next_delay(now) for now in (0.0, 50.0, 99.9)] == [0, 3, None]
    # The first is forgotten, the second is not.
    assert [restarts.next_delay(now) for now in (100.0, 149.0)] == [3, None]
    assert restarts.next_delay(300.0) == 0
