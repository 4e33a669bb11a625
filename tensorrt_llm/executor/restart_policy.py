# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""How often an engine that died is started again, and how soon."""

from __future__ import annotations

from collections import deque

from tensorrt_llm.llmapi.llm_args import EngineConfig

MAX_DELAY_SECONDS = 30.0


class RestartPolicy:
    """Counts restarts. Pure: the clock is passed in.

    Args:
        config: The bounds.
    """

    def __init__(self, config: EngineConfig) -> None:
        self._config = config
        self._restarts: deque[float] = deque()

    def next_delay(self, now: float) -> float | None:
        """Counts a restart and says how many seconds it has to wait.

        Args:
            now: Monotonic seconds.

        Returns:
            None if there may be no more restarts.
        """
        while self._restarts and now - self._restarts[0] >= self._config.restart_window_seconds:
            self._restarts.popleft()
        before = len(self._restarts)
        if before >= self._config.max_restarts:
            return None
        self._restarts.append(now)
        if before == 0:
            return 0.0
        return min(self._config.restart_delay_seconds * 2.0 ** (before - 1), MAX_DELAY_SECONDS)

    @property
    def count(self) -> int:
        """Restarts that count now."""
        return len(self._restarts)
