# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Decodes in processes that can be killed.

A decoder is C code that reads a stranger's bytes: it may loop, crash, or ask for all memory, and
a thread in such a state can neither be stopped nor outlived. A process can. The price is one copy
of the decoded media through a socket, a few per cent of what decoding costs, and a repeat pays
nothing, since it is not decoded. Calls from the same process (``LLM``) are trusted and decode
where they are.
"""

from __future__ import annotations

import os
import queue
import socket
import subprocess
import sys
import time
import weakref
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tensorrt_llm.errors import EngineError, LimitExceededError, MediaError, QueueFullError
from tensorrt_llm.inputs.decode_wire import Wire, WireError, unpack_error, unpack_media
from tensorrt_llm.inputs.media_limits import MediaLimits

if TYPE_CHECKING:
    from tensorrt_llm.inputs.media_decode import CanonicalMedia

MAX_WORKERS = 4
# Starting takes well under a second; a machine that is very busy may need more.
_START_SECONDS = 60.0
# A process is replaced after so many items, so that nothing that a decoder leaks adds up.
_ITEMS_A_PROCESS = 500
# What a decoder may know of its owner's environment: no keys, no tokens, no proxies.
_KEPT_VARIABLES = ("PATH", "LD_LIBRARY_PATH", "LANG", "LC_ALL")
_PACKAGE_ROOT = Path(__file__).resolve().parents[2]


class DecodePool:
    """Decodes media in a few worker processes. Safe to use from many threads.

    Processes start when they are first needed. Call an instance like `media_decode.decode_media`.

    Args:
        workers: Most processes; by default one a CPU, at most ``MAX_WORKERS``.
    """

    def __init__(self, workers: int | None = None) -> None:
        self._count = workers or min(MAX_WORKERS, os.cpu_count() or 1)
        # Each slot is a process, or None where one may be started. The last one used is the next.
        self._slots: queue.LifoQueue[_Worker | None] = queue.LifoQueue()
        for _ in range(self._count):
            self._slots.put(None)
        # Also at the end of the program, and when the pool is garbage.
        self._finalizer = weakref.finalize(self, _stop_all, self._slots)

    def __call__(
        self, modality: str, data: bytes, options: Mapping[str, Any], limits: MediaLimits
    ) -> CanonicalMedia:
        """Decodes one item. Waits while all processes are busy, for as long as an item may take.

        Args:
            modality: As for ``decode_media``, as are the others.
            data: The encoded file.
            options: Resolved options.
            limits: How much is taken, ``max_decode_seconds`` and ``max_decode_bytes`` included.

        Raises:
            MediaError: If the item cannot be decoded, or the decoder crashed over it.
            LimitExceededError: If it is over a limit.
            QueueFullError: If no process became free in ``max_decode_seconds``.
            EngineError: If no process can be started.
        """
        most = limits.max_decode_seconds
        try:
            worker = self._slots.get(timeout=most)
        except queue.Empty:
            raise QueueFullError(
                f"all {self._count} decoder processes were busy for {most} seconds "
                "(max_decode_seconds)"
            ) from None
        try:
            if worker is None:
                worker = _Worker()
            return worker.decode(modality, data, options, limits)
        finally:
            if worker is not None and worker.is_spent:
                worker.stop()
                worker = None
            self._slots.put(worker)

    def close(self) -> None:
        """Stops all processes that are idle. Not to be used afterwards."""
        self._finalizer()


class _Worker:
    """One process and the connection to it. Used by one thread at a time."""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair()
        try:
            with theirs:
                self._process = subprocess.Popen(
                    [
                        sys.executable,
                        "-m",
                        "tensorrt_llm.inputs.decode_worker",
                        str(theirs.fileno()),
                    ],
                    pass_fds=[theirs.fileno()],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    env=_environment(),
                    # A folder with Python files in it would come before the installed packages.
                    cwd="/",
                    # Ctrl-C is for the owner, who then hangs up.
                    start_new_session=True,
                )
        except OSError as error:
            ours.close()
            raise EngineError(f"no decoder process can be started: {error.strerror}") from error
        self._wire = Wire(ours, max_bytes=0)
        self._items = 0
        self._broken = False
        try:
            self._wire.receive(end=time.monotonic() + _START_SECONDS)
        except WireError as error:
            self.stop()
            raise EngineError(f"a decoder process did not start: {error}") from error

    @property
    def is_spent(self) -> bool:
        """Whether another process should take its place."""
        return self._broken or self._items >= _ITEMS_A_PROCESS

    def decode(
        self, modality: str, data: bytes, options: Mapping[str, Any], limits: MediaLimits
    ) -> CanonicalMedia:
        """As the pool."""
        self._items += 1
        self._wire.max_bytes = limits.max_decode_bytes
        start = time.monotonic()
        end = start + limits.max_decode_seconds
        header = {"modality": modality, "options": dict(options), "limits": asdict(limits)}
        # Until the answer is complete, nobody knows where the next one would begin.
        self._broken = True
        try:
            self._wire.send(header, [data], end=end)
            answer, buffers = self._wire.receive(end=end)
            error = unpack_error(answer)
            media = None if error is not None else unpack_media(answer, buffers)
        except WireError as broken:
            seconds = time.monotonic() - start
            if seconds >= limits.max_decode_seconds:
                raise LimitExceededError(
                    "max_decode_seconds", round(seconds, 1), limits.max_decode_seconds, "seconds"
                ) from broken
            raise MediaError(f"the {modality} made its decoder fail") from broken
        self._broken = False
        if media is None:
            assert error is not None
            raise error
        return media

    def stop(self) -> None:
        """Ends the process, whatever it does. May be called twice."""
        self._broken = True
        self._wire.close()
        self._process.kill()
        self._process.wait()


def _stop_all(slots: queue.LifoQueue[_Worker | None]) -> None:
    while True:
        try:
            worker = slots.get_nowait()
        except queue.Empty:
            return
        if worker is not None:
            worker.stop()


def _environment() -> dict[str, str]:
    kept = {name: os.environ[name] for name in _KEPT_VARIABLES if name in os.environ}
    paths = [str(_PACKAGE_ROOT), os.environ.get("PYTHONPATH", "")]
    # One decoder is one thread: several of them already run side by side.
    return {**kept, "PYTHONPATH": os.pathsep.join(filter(None, paths)), "OMP_NUM_THREADS": "1"}
