# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Who waits for work that another thread is at: what tests of work in flight wait for."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any

import pytest

from tensorrt_llm.inputs import single_flight


def waiting_for_others(monkeypatch: pytest.MonkeyPatch) -> list[Future[Any]]:
    """A fixture: gets an entry for each thread that has joined work instead of doing it."""
    joined: list[Future[Any]] = []
    wait = single_flight._wait

    def note(flight: Future[Any]) -> Any:
        joined.append(flight)
        return wait(flight)

    monkeypatch.setattr(single_flight, "_wait", note)
    return joined
