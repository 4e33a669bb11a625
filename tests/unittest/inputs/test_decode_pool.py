# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Worker processes: the same media as in this process, and what happens when one goes wrong."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import psutil
import pytest
from support.av_media import video_bytes
from support.engine import wait_until
from support.media import clip, image_bytes, picture, wav_bytes

from tensorrt_llm.errors import LimitExceededError, MediaError, QueueFullError
from tensorrt_llm.inputs.decode_pool import DecodePool
from tensorrt_llm.inputs.media_decode import decode_media, resolve_options
from tensorrt_llm.inputs.media_limits import MediaLimits
from tensorrt_llm.inputs.multimodal_data import MediaHasher

LIMITS = MediaLimits()
SLOW, PATIENT = MediaLimits(max_decode_seconds=0.4), MediaLimits(max_decode_seconds=120)


@pytest.fixture
def pool() -> Iterator[DecodePool]:
    pool = DecodePool(1)
    yield pool
    pool.close()


def decode(pool, modality: str, data: bytes, limits: MediaLimits = LIMITS, **options):
    return pool(modality, data, resolve_options(modality, None, options), limits)


def decoders() -> list[psutil.Process]:
    return [p for p in psutil.Process().children() if "decode_worker" in " ".join(p.cmdline())]


@pytest.fixture
def children() -> Callable[[], list[psutil.Process]]:
    """The pool's processes. Those of servers in tests before may not have ended yet."""
    others = set(decoders())
    return lambda: [process for process in decoders() if process not in others]


def test_a_process_decodes_what_this_one_decodes(pool, children) -> None:
    hasher = MediaHasher()
    deep = np.arange(64 * 64, dtype=np.uint16).reshape(64, 64)
    from PIL import Image

    media = [
        ("image", image_bytes(picture(1))),
        ("image", image_bytes(picture(2, 900, 700), "BMP")),
        ("image", image_bytes(Image.fromarray(deep))),
        ("image", image_bytes(Image.fromarray(deep.astype(np.float32)), "TIFF")),
        ("image", image_bytes(Image.new("CMYK", (9, 5), (1, 2, 3, 4)), "TIFF")),
        ("audio", wav_bytes(clip(1))),
        ("audio", wav_bytes(np.stack([clip(1), clip(2)], axis=1))),
        ("video", video_bytes(sound=clip(3, 2.0, 48_000))),
        ("video", video_bytes(frames=3)),
    ]
    for modality, data in media:
        there, here = (decode(worker, modality, data) for worker in (pool, decode_media))
        assert hasher.payload_digest(modality, there) == hasher.payload_digest(modality, here)
    assert len(children()) == 1


def test_options_and_limits_reach_the_process(pool) -> None:
    clear = image_bytes(picture(1).convert("RGBA").copy())
    with pytest.raises(LimitExceededError, match=r"28000 pixels exceed max_pixels \(99 pixels\)"):
        decode(pool, "image", clear, MediaLimits(max_pixels=99))
    assert decode(pool, "video", video_bytes(), num_frames=3).num_frames == 3
    with pytest.raises(MediaError, match="no readable image"):
        decode(pool, "image", b"nonsense")
    with pytest.raises(MediaError, match=r"truncated: 31500 of 32000 frames"):
        decode(pool, "audio", wav_bytes(clip(1))[:-1000])


def stopped(pool, children) -> psutil.Process:
    """The pool's process, standing still: what a decoder in an endless loop looks like."""
    decode(pool, "image", image_bytes(picture(1)))
    (process,) = children()
    process.suspend()
    return process


def test_a_process_that_hangs_is_killed_in_time_and_replaced(pool, children) -> None:
    process = stopped(pool, children)
    with pytest.raises(LimitExceededError, match=r"exceed max_decode_seconds \(0\.4 seconds\)"):
        decode(pool, "image", image_bytes(picture(1)), SLOW)
    assert not process.is_running()
    assert decode(pool, "image", image_bytes(picture(1))).size == (200, 140)


def test_a_process_that_crashes_fails_its_item_alone(pool, children) -> None:
    process = stopped(pool, children)
    with ThreadPoolExecutor(1) as threads:
        failing = threads.submit(decode, pool, "image", image_bytes(picture(1)))
        wait_until(pool._slots.empty, "it has the item")
        process.send_signal(signal.SIGSEGV)
        process.resume()
        with pytest.raises(MediaError, match="the image made its decoder fail"):
            failing.result()
    assert decode(pool, "image", image_bytes(picture(1))).size == (200, 140)


def test_a_hanging_item_does_not_stop_the_others(children) -> None:
    pool = DecodePool(2)
    try:
        stopped(pool, children)
        with ThreadPoolExecutor(2) as threads:
            hanging = threads.submit(decode, pool, "image", image_bytes(picture(1)), PATIENT)
            wait_until(lambda: pool._slots.qsize() == 1, "it has the process")
            for _ in range(5):
                decode(pool, "image", image_bytes(picture(2)))
            assert not hanging.done()
            for process in children():
                process.kill()
            with pytest.raises(MediaError):
                hanging.result()
    finally:
        pool.close()


def test_waiting_for_a_free_process_ends_in_time(pool, children) -> None:
    process = stopped(pool, children)
    with ThreadPoolExecutor(1) as threads:
        hanging = threads.submit(decode, pool, "image", image_bytes(picture(1)), PATIENT)
        wait_until(pool._slots.empty, "it has the process")
        start = time.monotonic()
        with pytest.raises(QueueFullError, match="all 1 decoder processes were busy"):
            decode(pool, "image", image_bytes(picture(2)), SLOW)
        assert time.monotonic() - start > 0.3
        process.resume()
        # The one that waited took nothing with it.
        assert hanging.result().size == (200, 140)
    assert decode(pool, "image", image_bytes(picture(2))).size == (200, 140)


def test_memory_is_bounded(pool) -> None:
    noise = image_bytes(picture(1, 6000, 6000))
    with pytest.raises(MediaError, match=r"max_decode_bytes|made its decoder fail|damaged"):
        decode(pool, "image", noise, MediaLimits(max_decode_bytes=60 * 2**20))


def test_processes_end_with_the_pool(children) -> None:
    pool = DecodePool(1)
    decode(pool, "image", image_bytes(picture(1)))
    (process,) = children()
    del pool
    assert not process.is_running()


def test_a_process_ends_when_its_owner_hangs_up(pool, children) -> None:
    decode(pool, "image", image_bytes(picture(1)))
    (process,) = children()
    worker = pool._slots.queue[-1]
    worker._wire.close()
    assert process.wait(timeout=60) == 0


def test_a_process_knows_nothing_of_its_owners_secrets(pool, monkeypatch, children) -> None:
    monkeypatch.setenv("SOME_API_KEY", "secret")
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.example")
    decode(pool, "image", image_bytes(picture(1)))
    (process,) = children()
    assert not {"SOME_API_KEY", "HTTPS_PROXY"} & set(process.environ())
    assert os.environ["SOME_API_KEY"] == "secret"


def test_starting_a_process_does_not_load_torch(pool, children) -> None:
    decode(pool, "video", video_bytes(frames=3))
    (process,) = children()
    assert not any("libtorch" in m.path for m in process.memory_maps())
