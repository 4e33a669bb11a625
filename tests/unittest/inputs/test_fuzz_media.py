# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""A quick slice of the fuzzing of every decoder door; see ``tests/fuzz/fuzz_media.py``."""

from __future__ import annotations

from fuzz.fuzz_media import DOORS, LIMITS, run, seeds

from tensorrt_llm.inputs.media_decode import decode_media, resolve_options


def test_mutated_files_give_media_or_one_plain_error() -> None:
    report = run(1500, seed=1)
    assert report.inputs == 1500
    assert not report.faults
    for door in DOORS:
        assert report.taken[door] and report.refused[door], "each door is reached and can refuse"
    assert report.slowest_s < 5
    assert report.rss_at_end - report.rss_after_tenth < 100 * 2**20


def test_the_files_that_are_mutated_are_good() -> None:
    for modality in ("image", "audio", "video"):
        for data in seeds()[modality]:
            decode_media(modality, data, resolve_options(modality, None, None), LIMITS)


def test_inputs_that_once_were_faults_are_refused() -> None:
    # FFmpeg calls the absurd size in this one a lack of memory.
    report = run(1, first=30_866)
    assert not report.faults and report.refused["video"] == 1
