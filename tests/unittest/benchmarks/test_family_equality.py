# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""The equality table in docs/supported-models.md is the recorded one, and leaves no family out."""

from __future__ import annotations

import json

from support.checkpoints import REPOSITORY
from support.families import FAMILIES

RESULTS = REPOSITORY / "benchmarks" / "results" / "family_equality.json"
LIMIT = 1e-4


def test_the_table_is_the_recorded_one() -> None:
    measured = json.loads(RESULTS.read_text(encoding="utf-8"))["largest_difference"]
    assert list(measured) == [family.name for family in FAMILIES]
    page = (REPOSITORY / "docs" / "supported-models.md").read_text(encoding="utf-8")
    for name, modes in measured.items():
        cells = [f"{value:.0e}" for value in modes.values()]
        assert f"| {name} | {' | '.join(cells)} |" in page
        control, _ = modes.pop("control"), modes.pop("largest logit")
        assert max(modes.values()) < LIMIT < 0.05 < control
