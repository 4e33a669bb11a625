# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""The memory of a Pillow image, read where it lies.

Pillow's own ways to its pixels make a packed copy. Newer releases also hand out the memory itself
through the Arrow C data interface, whose two structures are a stable ABI: four bytes a pixel, rows
from the top, no gaps.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
from PIL import Image

# Modes whose pixels are four bytes in memory, hence rows without gaps.
_FOUR_BYTES = ("RGB", "CMYK", "I", "F")


class _ArrowArray(ctypes.Structure):
    """``struct ArrowArray`` of the Arrow C data interface."""


_ArrowArray._fields_ = [
    ("length", ctypes.c_int64),
    ("null_count", ctypes.c_int64),
    ("offset", ctypes.c_int64),
    ("n_buffers", ctypes.c_int64),
    ("n_children", ctypes.c_int64),
    ("buffers", ctypes.POINTER(ctypes.c_void_p)),
    ("children", ctypes.POINTER(ctypes.POINTER(_ArrowArray))),
    ("dictionary", ctypes.c_void_p),
    ("release", ctypes.c_void_p),
    ("private_data", ctypes.c_void_p),
]

# A prototype of our own: setting types on ctypes.pythonapi would set them for the whole process.
_capsule_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)


@contextmanager
def pixel_words(image: Image.Image) -> Iterator[np.ndarray | None]:
    """Lends the pixels of a loaded image, for the length of a ``with`` block.

    Args:
        image: Any loaded image. It must not change or go away inside the block.

    Yields:
        uint32 array ``[height * width]``, the four bytes of each pixel as they lie in memory; None
        where this is not to be had: other modes, an older Pillow, pixels in several pieces.
    """
    export = getattr(image, "__arrow_c_array__", None)
    if export is None or image.mode not in _FOUR_BYTES or sys.byteorder != "little":
        yield None
        return
    try:
        _, capsule = export()
    except (ValueError, MemoryError):
        # Large images lie in several blocks.
        yield None
        return
    # The capsule keeps the memory alive, and gives it back when it goes.
    array = _ArrowArray.from_address(_capsule_pointer(capsule, b"arrow_array"))
    yield _words(array, image.width * image.height)
    del array, capsule


def _words(array: _ArrowArray, pixels: int) -> np.ndarray | None:
    """The words of an array of four-byte values, or of a list of four bytes for each pixel."""
    values, expected = array, pixels
    if array.n_children == 1:
        values, expected = array.children[0].contents, pixels * 4
    whole = array.length == pixels and values.length == expected
    plain = not (array.null_count or array.offset or values.null_count or values.offset)
    if not (whole and plain and values.n_buffers == 2 and values.buffers[1]):
        return None
    memory = (ctypes.c_uint32 * pixels).from_address(values.buffers[1])
    return np.frombuffer(memoryview(memory), dtype=np.uint32)
