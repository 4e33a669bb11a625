# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""The worker process alone, spoken to over its socket without a pool."""

from __future__ import annotations

import resource
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict

import psutil
import pytest
from support.media import clip, image_bytes, picture, wav_bytes

from tensorrt_llm.errors import LimitExceededError, MediaError
from tensorrt_llm.inputs.decode_wire import Wire, unpack_error, unpack_media
from tensorrt_llm.inputs.media_decode import decode_media, resolve_options
from tensorrt_llm.inputs.media_limits import MediaLimits
from tensorrt_llm.inputs.multimodal_data import MediaHasher

LIMITS = MediaLimits()


class Worker:
    """A worker process and our end of its socket."""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            command = [sys.executable, "-m", "tensorrt_llm.inputs.decode_worker"]
            self.process = subprocess.Popen(
                [*command, str(theirs.fileno())], pass_fds=[theirs.fileno()]
            )
        self.wire = Wire(ours, max_bytes=LIMITS.max_decode_bytes)
        assert self.wire.receive()[0] == {"ready": True}

    def ask(self, modality: str, data: bytes, limits: MediaLimits = LIMITS, **options):
        resolved = resolve_options(modality, None, options)
        header = {"modality": modality, "options": resolved, "limits": asdict(limits)}
        self.wire.send(header, [data])
        answer, buffers = self.wire.receive()
        error = unpack_error(answer)
        if error is not None:
            raise error
        return unpack_media(answer, buffers)


@pytest.fixture
def worker() -> Iterator[Worker]:
    worker = Worker()
    yield worker
    worker.wire.close()
    assert worker.process.wait(timeout=60) == 0


def test_one_message_after_another_is_answered(worker) -> None:
    hasher = MediaHasher()
    for modality, data in (
        ("image", image_bytes(picture(1))),
        ("audio", wav_bytes(clip(2))),
        ("image", image_bytes(picture(3), "BMP")),
    ):
        expected = decode_media(modality, data, resolve_options(modality, None, None), LIMITS)
        found = hasher.payload_digest(modality, worker.ask(modality, data))
        assert found == hasher.payload_digest(modality, expected)


def test_refusals_are_answers_and_the_next_item_is_decoded(worker) -> None:
    with pytest.raises(MediaError, match="no readable image"):
        worker.ask("image", b"nonsense")
    with pytest.raises(LimitExceededError, match=r"28000 pixels exceed max_pixels \(99 pixels\)"):
        worker.ask("image", image_bytes(picture(1)), MediaLimits(max_pixels=99))
    assert worker.ask("image", image_bytes(picture(1))).size == (200, 140)


def test_memory_files_and_dumps_are_bounded_from_the_first_item_on(worker) -> None:
    process = psutil.Process(worker.process.pid)
    limits = MediaLimits(max_decode_bytes=3 * 2**30)
    worker.ask("audio", wav_bytes(clip(1)), limits)
    assert process.rlimit(psutil.RLIMIT_DATA) == (3 * 2**30,) * 2
    assert process.rlimit(psutil.RLIMIT_NOFILE)[1] <= 64
    assert process.rlimit(psutil.RLIMIT_CORE) == (0, 0)
    # A later message cannot widen what an earlier one narrowed.
    worker.ask("audio", wav_bytes(clip(1)), MediaLimits(max_decode_bytes=4 * 2**30))
    assert process.rlimit(psutil.RLIMIT_DATA)[1] == 3 * 2**30
    assert resource.getrlimit(resource.RLIMIT_NOFILE)[1] > 64


def test_a_worker_whose_owner_is_stuck_ends_itself() -> None:
    worker = Worker()
    # The alarm is set while an item is decoded and taken back after it.
    worker.ask("image", image_bytes(picture(1)), MediaLimits(max_decode_seconds=0.001))
    assert worker.process.poll() is None
    worker.process.send_signal(signal.SIGALRM)
    assert worker.process.wait(timeout=60) == -signal.SIGALRM
    worker.wire.close()
