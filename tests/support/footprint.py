# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""What a server holds of the machine: descriptors, threads and memory of each of its processes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass

import psutil

from support.server import Server


@dataclass(frozen=True)
class Footprint:
    """A moment's look at a server.

    Attributes:
        descriptors: Open ones by role: door, host, engine, decoder.
        threads: Likewise.
        resident_bytes: Likewise. Host and engine share most of their pages.
        decoders: How many decoders there are.
    """

    descriptors: Mapping[str, int]
    threads: Mapping[str, int]
    resident_bytes: Mapping[str, int]
    decoders: int

    @property
    def lasting_bytes(self) -> int:
        """Resident memory without decoders, which come and go."""
        return sum(size for role, size in self.resident_bytes.items() if role != "decoder")

    @property
    def held(self) -> dict[str, dict[str, int]]:
        """Descriptors and threads that must be the same whenever nothing runs.

        Decoders come and go, and the door holds a socket to each.
        """
        lasting = ("door", "host", "engine")
        descriptors = {role: self.descriptors[role] for role in lasting}
        descriptors["door"] -= self.decoders
        return {
            "descriptors": descriptors,
            "threads": {role: self.threads[role] for role in lasting},
        }


def footprint(server: Server) -> Footprint:
    """Looks at every process of a running server. One that ends meanwhile is left out."""
    descriptors, threads, resident = Counter[str](), Counter[str](), Counter[str]()
    decoders = 0
    for role, process in _family(server):
        with suppress(psutil.NoSuchProcess), process.oneshot():
            resident[role] += process.memory_info().rss
            threads[role] += process.num_threads()
            descriptors[role] += process.num_fds()
            decoders += role == "decoder"
    return Footprint(dict(descriptors), dict(threads), dict(resident), decoders)


def _family(server: Server) -> Iterator[tuple[str, psutil.Process]]:
    for pid in server.processes():
        with suppress(psutil.NoSuchProcess):
            process = psutil.Process(pid)
            yield _role(server, process), process


def _role(server: Server, process: psutil.Process) -> str:
    if process.pid == server.process.pid:
        return "door"
    if "decode_worker" in " ".join(process.cmdline()):
        return "decoder"
    return "host" if process.ppid() == server.process.pid else "engine"
