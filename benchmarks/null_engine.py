# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""An engine without a model, in a process of its own behind the real door.

It takes every request at once and gives each one token a turn. What it has instead of a model's
statistics is how long requests took to reach its queue: a request's ``seed`` is taken for the
moment at which its client sent it (``sent_now``).

    HostProcess("benchmarks.null_engine")
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any

from tensorrt_llm.executor import engine_host
from tensorrt_llm.executor.executor import ModelInfo, ResolvedRequest
from tensorrt_llm.executor.result import GenerationUpdate
from tensorrt_llm.llmapi.llm_args import LlmArgs

TURN_SECONDS = 0.002
# Above this a seed is a moment, and all of them have the same number of digits.
_EPOCH = 10**18
_IDLE_SECONDS = 0.25
_HISTORY = 1000
# What the door counts of every record of an iteration.
_NO_STEP = {
    "iterLatencyMS": 0.0,
    "inflightBatchingStats": {"numCtxTokens": 0, "numGenRequests": 0, "numPausedRequests": 0},
    "queueLatenciesMS": [],
}


def sent_now() -> int:
    """The present moment as a seed: nanoseconds of a clock that all processes share."""
    return _EPOCH + time.monotonic_ns()


class NullStats:
    """How long requests took to get here."""

    def __init__(self) -> None:
        self._arrivals: deque[dict[str, Any]] = deque(maxlen=_HISTORY)

    def note(self, seed: int | None) -> None:
        """A request is here."""
        if seed is not None and seed >= _EPOCH:
            self._arrivals.append({**_NO_STEP, "toQueueMs": (sent_now() - seed) / 1e6})

    def drain(self) -> list[dict[str, Any]]:
        """What is new."""
        return [self._arrivals.popleft() for _ in range(len(self._arrivals))]


class NullLoop:
    """Gives every request one token a turn, and tells the door after each.

    Args:
        on_turn: Called after each turn, in the loop's thread.
    """

    num_waiting = 0

    def __init__(self, on_turn: Callable[[], None]) -> None:
        self._on_turn = on_turn
        self._live: dict[int, tuple[int, Callable[[GenerationUpdate], None]]] = {}
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._open = True
        self._thread = threading.Thread(target=self._run, daemon=True)

    @property
    def alive(self) -> bool:
        """Whether it turns."""
        return self._thread.is_alive()

    def start(self) -> None:
        """Begins."""
        self._thread.start()

    def stop(self) -> None:
        """Ends after this turn."""
        self._open = False
        self._wake.set()
        self._thread.join()

    def add(self, request_id: int, tokens: int, push: Callable[[GenerationUpdate], None]) -> None:
        """Takes a request for some tokens."""
        with self._lock:
            self._live[request_id] = (tokens, push)
        self._wake.set()

    def cancel(self, request_id: int) -> None:
        """Gives a request up."""
        with self._lock:
            found = self._live.pop(request_id, None)
        if found is not None:
            found[1](GenerationUpdate(finish_reason="cancelled"))

    def _run(self) -> None:
        while self._open:
            if not self._live:
                self._wake.wait(_IDLE_SECONDS)
            self._wake.clear()
            self._turn()
            self._on_turn()
            if self._live:
                time.sleep(TURN_SECONDS)

    def _turn(self) -> None:
        with self._lock:
            for request_id, (left, push) in list(self._live.items()):
                push(GenerationUpdate((100,), finish_reason=None if left > 1 else "length"))
                self._live[request_id] = (left - 1, push)
                if left == 1:
                    del self._live[request_id]


class NullEngine:
    """Stands where ``LoadedEngine`` stands.

    Args:
        args: The configuration.
        request_items: Never called: nothing is encoded.
        on_turn: As ``NullLoop``.
        tokenizer: Not asked for: nothing guides an answer.
    """

    def __init__(
        self, args: LlmArgs, request_items: Any, on_turn: Callable[[], None], tokenizer: Any
    ) -> None:
        self.loop = NullLoop(on_turn)
        self.stats = NullStats()
        self.info = ModelInfo(
            model_type="null",
            modalities=("image", "audio"),
            bidirectional_modalities=frozenset(),
            max_seq_len=args.max_seq_len or 8192,
            vocab_size=1 << 20,
            dtype="none",
            device="cpu",
            kv_cache_blocks=1 << 20,
            kv_cache_tokens=32 << 20,
            stop_token_ids=frozenset(),
        )

    def submit(
        self, request_id: int, resolved: ResolvedRequest, push: Callable[[GenerationUpdate], None]
    ) -> None:
        """Queues a request."""
        self.stats.note(resolved.request.sampling_params.seed)
        self.loop.add(request_id, resolved.max_new_tokens, push)


if __name__ == "__main__":
    engine_host.main(NullEngine)
