# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""A quick slice of the fuzzing of every decoder door; see ``tests/fuzz/fuzz_media.py``."""

from __future__ import annotations

import contextlib
import struct

import pytest
from fuzz.fuzz_media import DOORS, LIMITS, run, seeds
from support.av_media import video_bytes

from tensorrt_llm.errors import RequestError
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


@pytest.mark.parametrize("atom", [b"stsz", b"stts", b"stsc", b"stco", b"ctts", b"elst", b"avcC"])
@pytest.mark.parametrize("value", [0x7FFFFFFF, 0xFFFFFFFF, 0x10000000])
def test_absurd_counts_in_a_header_are_no_lack_of_memory(atom, value) -> None:
    data = bytearray(video_bytes(frames=8))
    for place in range(data.index(atom) + 4, data.index(atom) + 17, 4):
        absurd = bytes(data[:place]) + struct.pack(">I", value) + bytes(data[place + 4 :])
        # What FFmpeg does with a field differs; that it is media or refused does not.
        with contextlib.suppress(RequestError):
            DOORS["video"](absurd)
