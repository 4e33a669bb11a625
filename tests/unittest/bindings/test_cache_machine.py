# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Every operation of the KV cache manager through its binding, in random order."""

from __future__ import annotations

import os
from collections import Counter

from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.unittest.bindings.cache_machine import CacheMachine

EXAMPLES = int(os.environ.get("TRTLLM_FUZZ_EXAMPLES", "150"))
# Rare situations come up in most rounds, not in all.
MOST_ROUNDS = 8
PRESSURE = [
    "evicted",
    "offloaded_blocks",
    "onboarded_blocks",
    "partial_reused_blocks",
    "copies: PARTIAL",
    "copies: FORK",
    "take-overs",
    "tails kept",
    "cached tokens",
    "equal block found",
    "forks",
    "rewinds",
    "refused",
    "resets",
    "batches",
    "errors",
    "freed without keeping",
    "named later",
    "victims compared",
]


def test_every_operation_in_any_order() -> None:
    """TRTLLM_FUZZ_EXAMPLES=5000 is a longer run. A failure prints the steps that lead to it."""
    counts: Counter[str] = Counter()
    missing = PRESSURE
    for _ in range(MOST_ROUNDS):
        run_state_machine_as_test(
            lambda: CacheMachine(counts),
            settings=settings(
                max_examples=EXAMPLES,
                stateful_step_count=50,
                deadline=None,
                suppress_health_check=list(HealthCheck),
            ),
        )
        missing = [name for name in PRESSURE if not counts[name]]
        if not missing:
            break
    print(dict(counts))
    assert not missing, f"never happened in {MOST_ROUNDS} rounds: {missing}"
