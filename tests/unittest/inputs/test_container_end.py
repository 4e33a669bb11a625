# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import struct

import numpy as np
import pytest
from support.av_media import sound_bytes, video_bytes

from tensorrt_llm.errors import MediaError
from tensorrt_llm.inputs.container_end import check_whole

SAMPLES = np.sin(np.arange(48_000) / 5).astype(np.float32)
FILES = {
    "mov": lambda: sound_bytes("mp4", "aac", SAMPLES),
    "matroska": lambda: sound_bytes("webm", "libopus", SAMPLES),
    "ogg": lambda: sound_bytes("ogg", "libopus", SAMPLES),
    "avi": lambda: video_bytes("avi", "mpeg4", frames=4),
    "mpegts": lambda: sound_bytes("mpegts", "aac", SAMPLES),
}


@pytest.mark.parametrize("container", FILES)
def test_a_whole_file_passes_and_every_cut_one_does_not(container) -> None:
    data = FILES[container]()
    check_whole(data, container)
    sizes = np.random.default_rng(0).integers(len(data) // 10, len(data), 60)
    for size in sizes:
        # A cut between two packets of a transport stream, or two boxes, leaves a whole file.
        if container == "mpegts" and size % 188 == 0:
            continue
        with pytest.raises(MediaError, match="truncated"):
            check_whole(data[:size], container)


@pytest.mark.parametrize("container", FILES)
def test_nothing_else_is_raised_over_noise(container) -> None:
    data = bytearray(FILES[container]()[:4000])
    rng = np.random.default_rng(1)
    for _ in range(300):
        noisy = data.copy()
        for place in rng.integers(0, 200, 4):
            noisy[place] = rng.integers(256)
        for size in (len(noisy), int(rng.integers(0, 200))):
            try:
                check_whole(bytes(noisy[:size]), container)
            except MediaError as error:
                assert "truncated" in str(error)


def test_a_box_until_the_end_and_a_segment_of_unknown_size_pass() -> None:
    check_whole(struct.pack(">I4s", 0, b"mdat") + bytes(100), "mov")
    check_whole(struct.pack(">I4sQ", 1, b"mdat", 116) + bytes(100), "mov")
    with pytest.raises(MediaError, match="100 of 116 bytes"):
        check_whole(struct.pack(">I4sQ", 1, b"mdat", 116) + bytes(84), "mov")
    segment = bytes.fromhex("1a45dfa380 18538067")
    check_whole(segment + b"\x01\xff\xff\xff\xff\xff\xff\xff" + bytes(10), "matroska")
    void = b"\xec\x88" + bytes(8)
    check_whole(segment + b"\x8a" + void, "matroska")
    with pytest.raises(MediaError, match="truncated: 19 of 20 bytes"):
        check_whole(segment + b"\x8a" + void[:-1], "matroska")


def test_an_ogg_file_ends_with_its_last_page() -> None:
    data = FILES["ogg"]()
    last = data.rindex(b"OggS")
    with pytest.raises(MediaError, match="last page is missing"):
        check_whole(data[:last], "ogg")


def test_containers_without_an_end_pass() -> None:
    check_whole(b"anything", "mp3")


def test_millions_of_empty_boxes_do_not_keep_us_busy() -> None:
    check_whole(struct.pack(">I4s", 8, b"free") * 2_000_000, "mov")
