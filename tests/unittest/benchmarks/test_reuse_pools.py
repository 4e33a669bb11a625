# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""The manager against the optimum and brute force on small traces, and the script itself."""

from __future__ import annotations

import json

import numpy as np
import pytest
from click.testing import CliRunner

from benchmarks.belady import most_found
from benchmarks.reuse_pools import main, measure, most_tokens, needs_of, play, prompt_of
from benchmarks.traces import TRACES, Asked, Part, write_trace


@pytest.mark.parametrize("name", TRACES)
def test_never_more_than_possible_and_all_of_it_with_room(name) -> None:
    row = measure(name, TRACES[name](np.random.default_rng(5), 50))
    assert row.found_tokens == row.most_tokens > 0
    assert row.wrong_hits == 0
    assert all(point.found_blocks <= point.most_blocks for point in row.points)
    last = row.points[-1]
    assert (last.percent, last.found_blocks) == (200, last.most_blocks)
    assert row.points[0].most_blocks < last.most_blocks, "the smallest pool is not small"


def test_equal_names_share_and_others_do_not() -> None:
    picture, other = (Part(name=name, tokens=64, media=True) for name in ("a", "b"))
    text = Part(name="text", tokens=32)
    prompts = [prompt_of((item, text)) for item in (picture, other, picture)]
    most = most_tokens(prompts)
    assert most == [0, 0, 95]
    assert play(prompts, most, 100, partial=True).tokens == 95
    assert play(prompts, most, 100, partial=False).items == 1
    # With room for one request only, the second takes all that the first had.
    needs, working_set = needs_of(prompts)
    assert working_set == 6
    assert most_found(needs, 3) == play(prompts, most, 3, partial=False).tokens == 0


def test_more_than_brute_force_allows_is_a_wrong_hit() -> None:
    prompts = [prompt_of((Part(name="text", tokens=64),))] * 2
    assert play(prompts, [0, 0], 10, partial=True).wrong_hits == 1


def test_the_script_plays_a_recorded_trace(tmp_path) -> None:
    asked = [Asked(at_s=at, parts=(Part(name="text", tokens=65),)) for at in (0.0, 1.5)]
    trace, figures = tmp_path / "trace.jsonl", tmp_path / "figures.json"
    write_trace(asked, trace)
    result = CliRunner().invoke(main, ["--trace", str(trace), "--json", str(figures)])
    assert result.exit_code == 0, result.output
    (row,) = json.loads(figures.read_text())["traces"]
    assert (row["name"], row["found_tokens"], row["most_tokens"]) == ("trace.jsonl", 64, 64)


def test_the_script_refuses_a_file_that_is_no_trace(tmp_path) -> None:
    trace = tmp_path / "trace.jsonl"
    trace.write_text("{}\n")
    result = CliRunner().invoke(main, ["--trace", str(trace)])
    assert result.exit_code == 1
    assert "line 1" in result.output
