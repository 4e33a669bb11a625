# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""The clock of a step's cost still fits the engine that it takes apart."""

from __future__ import annotations

from benchmarks.engine_step import WARM_UP_STEPS, measure


def test_a_step_is_timed_with_and_without_layers(llama_checkpoint) -> None:
    cost, rows = measure(llama_checkpoint, batch=3, count=60)
    assert (cost.batch, cost.steps) == (3, 60 - 1 - WARM_UP_STEPS)
    assert cost.ours_ms > 0 and cost.whole_ms > 0
    assert cost.wall_ms > 0 and cost.wall_overlap_ms > 0 and cost.prepared > 0.5
    # What was profiled is the engine's thread.
    assert "step_layout.py" in {row.function.split(":")[0] for row in rows}
