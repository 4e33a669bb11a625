# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""What stays in the server's heap, and what goes back to the system.

The libraries of a door leave a million objects that live as long as it does. The collector would
look at all of them every few thousand requests, for a third of a second in which nobody is served.

Decoding makes arrays of megabytes, and between two of them a memo keeps a few hundred bytes: the
allocator cannot shrink a heap with something at its end. Over thousands of different pictures that
leaves hundreds of megabytes which nobody uses.
"""

from __future__ import annotations

import asyncio
import ctypes
import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager

TRIM_SECONDS = 5.0
"""Most often that memory is given back."""


@contextmanager
def settled_objects() -> Iterator[None]:
    """Within it, the garbage collector leaves alone what is there now.

    What is made later is collected as ever, and what nobody refers to any more goes at once.
    """
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def trim_heap() -> bool:
    """Gives back every whole page that is free; takes some milliseconds.

    Returns:
        Whether there was any. False with other C libraries than glibc, which have no such call.
    """
    try:
        trim = ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError):
        return False
    return bool(trim(ctypes.c_size_t(0)))


async def keep_trimmed(work: Callable[[], int], seconds: float = TRIM_SECONDS) -> None:
    """Trims the heap again and again, in a thread, but not while nothing happens.

    Args:
        work: A number that grows with what makes and drops large arrays.
        seconds: Time between two looks.
    """
    done = work()
    while True:
        await asyncio.sleep(seconds)
        if work() != done:
            done = work()
            await asyncio.to_thread(trim_heap)
