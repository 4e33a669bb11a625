# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""What the tokens of a prompt are rows of."""

from __future__ import annotations

from collections import Counter

from tensorrt_llm.inputs.data import ProcessedPrompt


def rows_by_modality(prompt: ProcessedPrompt, end: int) -> dict[str, int]:
    """How many of the first ``end`` prompt tokens are rows of each modality, and text."""
    rows: Counter[str] = Counter()
    for item in prompt.items:
        for run in item.runs:
            if run.position < end:
                rows[item.modality] += min(run.length, end - run.position)
    return {"text": end - rows.total(), **rows}


def place_of(prompt: ProcessedPrompt, position: int) -> str:
    """What the token at a position is a row of: ``"text"``, or an item by its number of its kind.

    Items of a kind are counted from 1: ``"image 2"``.
    """
    numbers: Counter[str] = Counter()
    for item in prompt.items:
        numbers[item.modality] += 1
        if any(run.position <= position < run.position + run.length for run in item.runs):
            return f"{item.modality} {numbers[item.modality]}"
    return "text"
