# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Traces: the same from the same seed, shaped as their names say, and kept in a file."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.traces import TRACES, read_trace, write_trace, zipf


@pytest.mark.parametrize("name", TRACES)
def test_a_trace_comes_from_its_seed_and_goes_through_a_file(name, tmp_path) -> None:
    trace = TRACES[name](np.random.default_rng(1), 50)
    assert len(trace) == 50
    assert trace == TRACES[name](np.random.default_rng(1), 50)
    assert trace != TRACES[name](np.random.default_rng(2), 50)
    times = [asked.at_s for asked in trace]
    assert times == sorted(times)
    beginnings = [asked.parts[0].name for asked in trace]
    assert len(set(beginnings)) < len(beginnings), "nothing in it can be reused"
    write_trace(trace, tmp_path / "trace.jsonl")
    assert read_trace(tmp_path / "trace.jsonl") == trace


def test_popularity_falls_with_rank() -> None:
    drawn = zipf(np.random.default_rng(3), 20, 1.0, 4000)
    counts = sorted(np.bincount(drawn, minlength=20).tolist(), reverse=True)
    assert counts[0] > 5 * counts[-1] > 0


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("", "no request"),
        ('{"at_s": 0, "parts": []}', "line 1"),
        ('{"at_s": 0, "parts": [{"name": "a", "tokens": 0}]}', "greater than or equal to 1"),
        (
            '{"at_s": 0, "parts": [{"name": "a", "tokens": 1}]}\n'
            '{"at_s": 1, "parts": [{"name": "a", "tokens": 2}]}',
            "line 2: .* differ",
        ),
    ],
)
def test_a_file_that_is_no_trace_is_refused(lines, message, tmp_path) -> None:
    file = tmp_path / "trace.jsonl"
    file.write_text(lines)
    with pytest.raises(ValueError, match=message):
        read_trace(file)
