# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Messages arrive whole or not at all, and nonsense is refused: the sender may be taken over."""

from __future__ import annotations

import json
import os
import socket
import struct
import threading
import time
from collections.abc import Iterator

import numpy as np
import pytest
from PIL import Image
from support.media import clip, picture

from tensorrt_llm.errors import LimitExceededError, MediaError
from tensorrt_llm.inputs.decode_wire import (
    Wire,
    WireError,
    pack_error,
    pack_media,
    unpack_error,
    unpack_media,
)
from tensorrt_llm.inputs.multimodal_data import AudioData
from tensorrt_llm.inputs.video_data import VideoClip


@pytest.fixture
def ends() -> Iterator[tuple[Wire, Wire]]:
    sockets = socket.socketpair()
    yield tuple(Wire(one, max_bytes=2**20) for one in sockets)
    for one in sockets:
        one.close()


@pytest.mark.parametrize("sizes", [(), (0,), (5, 0, 7), (2**16 - 1,), (2**16,), (2**19, 0, 2**19)])
def test_what_is_sent_arrives(ends, sizes) -> None:
    buffers = [os.urandom(size) for size in sizes]
    thread = threading.Thread(target=ends[0].send, args=({"a": [1, "x"]}, buffers))
    thread.start()
    header, received = ends[1].receive(end=time.monotonic() + 10)
    thread.join()
    assert header == {"a": [1, "x"]}
    assert [one.tobytes() for one in received] == buffers


def test_descriptors_do_not_pile_up(ends) -> None:
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(5):
        ends[0].send({}, [bytes(2**17)])
        ends[1].receive()
    assert len(os.listdir("/proc/self/fd")) == before


def raw(ends, data: bytes) -> None:
    ends[0]._socket.sendall(data)
    ends[0].close()


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\0\0",
        struct.pack(">I", 2**31),
        struct.pack(">I", 5) + b"{",
        struct.pack(">I", 2) + b"{}",
        struct.pack(">I", 2) + b"[]",
        *(
            struct.pack(">I", len(text)) + text
            for text in (
                b'{"buffers": 5}',
                b'{"buffers": [-1]}',
                b'{"buffers": ["x"]}',
                b'{"buffers": [2000000]}',
                b'{"buffers": [10]}abc',
            )
        ),
    ],
)
def test_nonsense_is_refused(ends, data) -> None:
    raw(ends, data)
    with pytest.raises(WireError):
        ends[1].receive(end=time.monotonic() + 5)


def test_a_memory_file_that_is_too_short_is_refused(ends) -> None:
    text = json.dumps({"buffers": [1000]}).encode()
    descriptor = os.memfd_create("short")
    os.write(descriptor, b"abc")
    socket.send_fds(ends[0]._socket, [struct.pack(">I", len(text)) + text], [descriptor])
    os.close(descriptor)
    with pytest.raises(WireError, match="1000"):
        ends[1].receive()


def test_waiting_ends(ends) -> None:
    with pytest.raises(WireError):
        ends[1].receive(end=time.monotonic() + 0.2)
    ends[0]._socket.sendall(struct.pack(">I", 50))
    with pytest.raises(WireError):
        ends[1].receive(end=time.monotonic() + 0.2)


def arrived(media):
    header, buffers = pack_media(media)
    copied = [np.frombuffer(memoryview(one).cast("B"), np.uint8).copy() for one in buffers]
    return unpack_media(json.loads(json.dumps(header)), copied)


@pytest.mark.parametrize("mode", ["RGB", "CMYK", "I;16", "I", "F"])
def test_images_arrive(mode) -> None:
    image = picture(1).convert("CMYK") if mode == "CMYK" else picture(1)
    if mode not in ("RGB", "CMYK"):
        values = np.arange(600).reshape(20, 30) * 70_000
        kind = {"I;16": np.uint16, "I": np.int32, "F": np.float32}[mode]
        image = Image.fromarray((values % 60_000 if mode == "I;16" else values).astype(kind))
    assert image.mode == mode
    other = arrived(image)
    assert (other.mode, other.size, other.tobytes()) == (image.mode, image.size, image.tobytes())


def test_sound_and_video_arrive() -> None:
    audio = AudioData(np.stack([clip(1), clip(2)], axis=1), 16_000)
    other = arrived(audio)
    np.testing.assert_array_equal(other.samples, audio.samples)
    assert other.sample_rate == 16_000
    frames = np.random.default_rng(0).integers(0, 256, (2, 4, 6, 3), np.uint8)
    for sound in (None, audio):
        video = VideoClip(frames, (0, 3), (0.0, 1.0), 3.0, 1.3, 4, sound)
        other = arrived(video)
        np.testing.assert_array_equal(other.frames, frames)
        for name in ("frame_indices", "timestamps", "fps", "duration", "total_num_frames"):
            assert getattr(other, name) == getattr(video, name)
        assert (other.audio is None) == (sound is None)


@pytest.mark.parametrize(
    ("header", "sizes"),
    [
        ({}, []),
        ({"kind": "image", "mode": "RGB", "size": [2, 2]}, []),
        ({"kind": "image", "mode": "RGB", "size": [2, 2]}, [11]),
        ({"kind": "image", "mode": "RGBA", "size": [2, 2]}, [16]),
        ({"kind": "image", "mode": "RGB", "size": [-2, -2]}, [12]),
        ({"kind": "image", "mode": "RGB", "size": "ab"}, [12]),
        ({"kind": "audio", "rate": 0, "shape": [4]}, [16]),
        ({"kind": "audio", "rate": 16000, "shape": [5]}, [16]),
        ({"kind": "video", "shape": [1, 2, 2, 3]}, [12]),
    ],
)
def test_media_that_is_none_is_refused(header, sizes) -> None:
    with pytest.raises((WireError, MediaError)):
        unpack_media(header, [np.zeros(size, np.uint8) for size in sizes])


def test_errors_arrive() -> None:
    for error in (MediaError("why"), LimitExceededError("max_pixels", 5, 4, "pixels")):
        other = unpack_error(json.loads(json.dumps(pack_error(error))))
        assert type(other) is type(error) and str(other) == str(error)
    assert unpack_error({"kind": "image"}) is None
    with pytest.raises(WireError):
        unpack_error({"limit": [1]})
