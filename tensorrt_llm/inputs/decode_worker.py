# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""The process that decodes what strangers send: small, bounded, and killed without regret.

Started by `DecodePool` as ``python -m tensorrt_llm.inputs.decode_worker FD``. It answers one
message after another on that socket and ends when the other side hangs up.
"""

from __future__ import annotations

import resource
import signal
import socket
import sys
from typing import Any

from PIL import Image

from tensorrt_llm.errors import RequestError
from tensorrt_llm.inputs.decode_wire import Wire, WireError, pack_error, pack_media
from tensorrt_llm.inputs.media_decode import decode_media
from tensorrt_llm.inputs.media_limits import MediaLimits

# The owner kills a process that is too slow. If the owner is gone, the alarm does, a little later.
_ALARM_SLACK = 5.0


def main() -> None:
    """Serves until the other side hangs up."""
    Image.init()
    wire = Wire(socket.socket(fileno=int(sys.argv[1])), max_bytes=2**32)
    wire.send({"ready": True})
    confined = False
    while True:
        try:
            header, buffers = wire.receive()
        except WireError:
            return
        limits = MediaLimits(**header["limits"])
        if not confined:
            _confine(limits.max_decode_bytes)
            confined = True
        signal.setitimer(signal.ITIMER_REAL, limits.max_decode_seconds + _ALARM_SLACK)
        answer, results = _answer(
            header["modality"], buffers[0].tobytes(), header["options"], limits
        )
        signal.setitimer(signal.ITIMER_REAL, 0)
        try:
            wire.send(answer, results)
        except WireError:
            return


def _answer(
    modality: str, data: bytes, options: dict[str, Any], limits: MediaLimits
) -> tuple[dict[str, Any], list[Any]]:
    try:
        return pack_media(decode_media(modality, data, options, limits))
    except RequestError as error:
        return pack_error(error), []
    except MemoryError:
        most = limits.max_decode_bytes
        return {"error": f"decoding takes more than {most} bytes of memory (max_decode_bytes)"}, []


def _confine(max_bytes: int) -> None:
    """Takes away what decoding does not need: further memory, large or many files."""
    for kind, most in (
        (resource.RLIMIT_DATA, max_bytes),
        (resource.RLIMIT_FSIZE, max_bytes),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_NOFILE, 64),
    ):
        hard = resource.getrlimit(kind)[1]
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(kind, (most, most))


if __name__ == "__main__":
    main()
