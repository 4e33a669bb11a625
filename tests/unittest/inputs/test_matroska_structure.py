# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import av
import numpy as np
import pytest
from support.av_media import all_frames, sound_bytes, video_bytes

from tensorrt_llm.errors import MediaError
from tensorrt_llm.inputs.matroska_structure import check_segment

FRAMES = 60
SAMPLES = np.sin(np.arange(48_000) / 5).astype(np.float32)
HEADER = bytes.fromhex("1a45dfa380")
# Track 1 in its entry, as every file needs one that its blocks can name.
TRACKS = bytes.fromhex("1654ae6b 85 ae 83 d7 81 01")
CLUSTER, UNKNOWN = bytes.fromhex("1f43b675"), bytes.fromhex("01ffffffffffffff")
BLOCK = bytes.fromhex("a3 85 81 0000 80 00")
GROUP = bytes.fromhex("a0 87 a1 85 81 0000 00 00")
CUES = bytes.fromhex("1c53bb6b 80")


def segment(*parts: bytes) -> bytes:
    body = b"".join(parts)
    return HEADER + bytes.fromhex("18538067") + bytes([0x80 | len(body)]) + body


def cluster(*parts: bytes) -> bytes:
    body = b"".join(parts)
    return CLUSTER + bytes([0x80 | len(body)]) + body


@pytest.mark.parametrize(
    "data",
    [
        video_bytes("matroska", frames=FRAMES),
        video_bytes("matroska", "mjpeg", frames=4, sound=SAMPLES),
        video_bytes("webm", "libvpx", frames=FRAMES, sound=SAMPLES),
        sound_bytes("webm", "libopus", SAMPLES),
        sound_bytes("matroska", "flac", SAMPLES),
        segment(TRACKS, cluster(BLOCK, GROUP), cluster(BLOCK), CUES),
        # A recording that was still going on: a cluster ends where the next part begins.
        segment(TRACKS, CLUSTER + UNKNOWN, BLOCK, GROUP, CLUSTER + UNKNOWN, BLOCK, CUES),
        segment(TRACKS, CLUSTER + UNKNOWN, BLOCK),
    ],
)
def test_whole_files_pass(data: bytes) -> None:
    check_segment(data)


@pytest.mark.parametrize(
    "data",
    [
        segment(TRACKS, cluster(BLOCK), b"\x00\x00\x00"),
        segment(TRACKS, cluster(BLOCK), BLOCK),  # a block outside every cluster
        segment(TRACKS, cluster(BLOCK, CUES)),
        segment(TRACKS, cluster(BLOCK[:1] + b"\xff" + BLOCK[2:])),  # a block of unknown size
        segment(TRACKS, cluster(BLOCK[:1] + b"\x86" + BLOCK[2:])),  # one that outgrows its cluster
        segment(TRACKS, cluster(BLOCK.replace(b"\x81", b"\x82"))),  # one of a track that is not
        segment(TRACKS, cluster(GROUP.replace(b"\x85\x81", b"\x85\x82"))),
        segment(TRACKS, cluster(GROUP.replace(b"\xa1\x85", b"\xa1\x88"))),
        segment(TRACKS.replace(b"\x83\xd7", b"\x89\xd7"), cluster(BLOCK)),
    ],
)
def test_elements_where_they_cannot_be_are_damage(data: bytes) -> None:
    with pytest.raises(MediaError, match=r"truncated or damaged at byte \d+$"):
        check_segment(data)


def test_half_a_video_never_passes_for_the_whole() -> None:
    """FFmpeg alone decodes some of these, with 27 of their 60 frames, and says nothing."""
    whole = video_bytes("matroska", frames=FRAMES)
    silent = 0
    for shift in range(20):
        data = bytearray(whole)
        for place in range(len(data) // 3 + shift, 2 * len(data) // 3, 7):
            data[place] ^= 0x55
        with pytest.raises(MediaError):
            check_segment(bytes(data))
        silent += not fails_in_ffmpeg(bytes(data))
    assert silent


def fails_in_ffmpeg(data: bytes) -> bool:
    try:
        return not all_frames(data)
    except av.FFmpegError:
        return True


def test_millions_of_empty_elements_do_not_keep_us_busy() -> None:
    body = bytes.fromhex("ec80") * 2_000_000
    check_segment(
        HEADER + bytes.fromhex("18538067") + b"\x08" + len(body).to_bytes(4, "big") + body
    )
