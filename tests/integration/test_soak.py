# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""The soak of ``tests/endurance/soak.py`` as a test, where it is asked for.

``TRTLLM_SOAK_REQUESTS`` says how many requests. It is no part of every run: two servers and enough
requests for every kind of client take minutes on two cores.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from endurance.soak import POLICIES, Soak, markdown, report

REQUESTS = int(os.environ.get("TRTLLM_SOAK_REQUESTS", "0"))


@pytest.mark.skipif(REQUESTS == 0, reason="minutes: TRTLLM_SOAK_REQUESTS=200 runs it")
@pytest.mark.timeout(36_000)
def test_mixed_traffic_is_answered_as_without_reuse_and_leaves_nothing(
    phi4mm_checkpoint: Path, tmp_path: Path
) -> None:
    parts = Soak(phi4mm_checkpoint, tmp_path, seed=1).run(REQUESTS, POLICIES, 36_000.0)
    print(markdown(report(parts, "a slice")))
    for part in parts:
        assert part.faults == []
        assert {"bad", "cut off", "hung up", "stream", "uploaded", "whole"} <= set(part.tally.ended)
        assert set(part.tally.right) == {"text", "image", "clip", "both", "turns"}
