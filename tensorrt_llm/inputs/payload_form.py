# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Arrays and images as a description and chunks of bytes, without a copy of the whole.

What lies in memory as it shall be hashed is handed out as it lies. Everything else (strided,
transposed or big-endian arrays, images that Pillow keeps in pieces) passes through one buffer of
bounded size, which is used again for the next chunk: read a chunk before asking for another.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from PIL import Image

from tensorrt_llm.errors import MediaError
from tensorrt_llm.inputs.pixel_memory import pixel_words

# Modes whose bytes say everything about the picture: the type of a value and values a pixel.
_IMAGE_LAYOUTS: dict[str, tuple[str, int]] = {
    # Red, green, blue and a byte that is always 255: so Pillow keeps them, and packing three
    # bytes takes longer than hashing four.
    "RGB": ("uint8", 4),
    "CMYK": ("uint8", 4),
    "I;16": ("uint16", 1),
    "I": ("int32", 1),
    "F": ("float32", 1),
}
CANONICAL_IMAGE_MODES = tuple(_IMAGE_LAYOUTS)

CHUNK_BYTES = 2**17
"""Size of a chunk that had to be copied: it stays in the cache until the hasher has read it."""

# Arrays whose last axis is not the dense one take larger chunks, so that what is dense is read in
# runs; and they are turned tile by tile, each small enough for the nearest cache.
_TURNED_BYTES = 2**21
_TILE_ROWS = 128
_TILE_ROW_BYTES = 512

# Types that NumPy lacks, and the one of equal width that carries their bits.
_CARRIERS = {
    "bfloat16": "uint16",
    "float8_e4m3fn": "uint8",
    "float8_e4m3fnuz": "uint8",
    "float8_e5m2": "uint8",
    "float8_e5m2fnuz": "uint8",
    "float8_e8m0fnu": "uint8",
}
# The padding inside these says nothing and differs from one copy to the next.
_PADDED = (np.dtype(np.longdouble).name, np.dtype(np.clongdouble).name)
_OPAQUE = np.frombuffer(b"\0\0\0\xff", dtype=np.uint32)[0]


@dataclass(frozen=True, eq=False)
class PayloadPart:
    """One buffer of a payload.

    Attributes:
        description: What the bytes mean.
        nbytes: Length of all chunks together.
        chunks: The bytes, piece by piece; can be read once.
    """

    description: dict[str, Any]
    nbytes: int
    chunks: Iterator[memoryview]


def as_numpy(array: Any) -> tuple[np.ndarray, str]:
    """An ndarray over the same memory where that is possible, and the name of the type.

    Args:
        array: ndarray, or dense tensor on any device. Its strides do not matter.

    Returns:
        The array and for example ``"float32"``. A type that NumPy lacks comes as integers that
        hold its bits, under its own name.

    Raises:
        TypeError: If it is no dense array of numbers.
    """
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(array, torch.Tensor):
        if array.layout != torch.strided or array.is_quantized:
            raise TypeError(f"expected a dense array or tensor, not one of layout {array.layout}")
        tensor = array.detach().cpu().resolve_conj().resolve_neg()
        name = str(tensor.dtype).removeprefix("torch.")
        if (carrier := _CARRIERS.get(name)) is not None:
            return tensor.view(getattr(torch, carrier)).numpy(), name
        return tensor.numpy(), name
    if not isinstance(array, np.ndarray):
        raise TypeError(f"expected an array or tensor, not {type(array).__name__}")
    name = array.dtype.name
    if (carrier := _CARRIERS.get(name)) is not None:
        return array.view(carrier), name
    if array.dtype.kind not in "biufc" or name in _PADDED:
        raise TypeError(f"expected an array of numbers, not of {array.dtype}")
    return np.asarray(array), name


def array_part(array: Any, kind: str, **more: Any) -> PayloadPart:
    """An array: its values in C order, little-endian, whatever its memory looks like.

    Args:
        array: As for ``as_numpy``.
        kind: What it is.
        more: Further parts of the description.

    Raises:
        TypeError: As ``as_numpy``.
    """
    values, dtype = as_numpy(array)
    description = {
        "kind": kind,
        **more,
        "shape": values.shape,
        "dtype": dtype,
        "byteorder": "little",
    }
    return PayloadPart(description, values.nbytes, array_chunks(values))


def array_chunks(array: np.ndarray) -> Iterator[memoryview]:
    """The values of an array in C order, little-endian."""
    if array.size == 0:
        return
    little = array.dtype.newbyteorder("<")
    if array.flags.c_contiguous and array.dtype == little:
        yield array.reshape(-1).view(np.uint8).data
        return
    most = _TURNED_BYTES if _dense_axis(array) != array.ndim - 1 else CHUNK_BYTES
    buffer = np.empty(min(array.size, max(1, most // array.itemsize)), little)
    for block in _blocks(array, buffer.size):
        chunk = buffer[: block.size]
        _copy(chunk.reshape(block.shape), block)
        yield chunk.view(np.uint8).data


def _dense_axis(array: np.ndarray) -> int:
    """The axis along which values lie closest."""
    steps = [abs(step) if length > 1 else np.inf for step, length in _axes(array)]
    return min(range(array.ndim), key=lambda axis: (steps[axis], -axis)) if steps else -1


def _axes(array: np.ndarray) -> Iterator[tuple[int, int]]:
    return zip(array.strides, array.shape, strict=True)


def _blocks(array: np.ndarray, most: int) -> Iterator[np.ndarray]:
    """Pieces of at most ``most`` values, in C order."""
    if array.size <= most:
        yield array
        return
    inner = array[0].size
    if inner > most:
        for outer in array:
            yield from _blocks(outer, most)
        return
    step = most // inner
    for begin in range(0, len(array), step):
        yield array[begin : begin + step]


def _copy(into: np.ndarray, block: np.ndarray) -> None:
    # NumPy runs its innermost loop over the last axis; over three channels it hardly gets going.
    if block.ndim > 1 and block.shape[-1] <= 4:
        for index in range(block.shape[-1]):
            _copy(into[..., index], block[..., index])
        return
    axis = _dense_axis(block)
    if axis == block.ndim - 1 or abs(block.strides[-1]) < _TILE_ROW_BYTES:
        np.copyto(into, block)
        return
    planes, sources = np.moveaxis(into, axis, -2), np.moveaxis(block, axis, -2)
    for plane in np.ndindex(sources.shape[:-2]):
        _turn(planes[plane], sources[plane])


def _turn(into: np.ndarray, plane: np.ndarray) -> None:
    """Copies a matrix whose columns are dense."""
    rows, columns = _TILE_ROWS, _TILE_ROW_BYTES // plane.itemsize
    for top in range(0, plane.shape[0], rows):
        for left in range(0, plane.shape[1], columns):
            here = np.s_[top : top + rows, left : left + columns]
            # In its own order first: that reads each cache line once.
            np.copyto(into[here], np.array(plane[here], order="K"))


def image_part(image: Image.Image) -> PayloadPart:
    """An image: rows from the top, pixels from the left, little-endian.

    Args:
        image: A loaded image in one of ``CANONICAL_IMAGE_MODES``.

    Raises:
        MediaError: If it is of another mode.
    """
    layout = _IMAGE_LAYOUTS.get(image.mode)
    if layout is None:
        known = ", ".join(CANONICAL_IMAGE_MODES)
        raise MediaError(f"an image of mode {image.mode} is not in canonical form ({known})")
    dtype, values = layout
    width, height = image.size
    description = {
        "kind": "image",
        "mode": image.mode,
        "size": (width, height),
        "shape": (height, width, values),
        "dtype": dtype,
        "byteorder": "little",
    }
    nbytes = width * height * values * np.dtype(dtype).itemsize
    return PayloadPart(description, nbytes, image_chunks(image))


def image_chunks(image: Image.Image) -> Iterator[memoryview]:
    """The bytes of an image as ``image_part`` describes them."""
    if image.width * image.height == 0:
        return
    with pixel_words(image) as words:
        if words is not None:
            yield from _whole(words, image.mode)
            return
    yield from _bands(image)


def _whole(words: np.ndarray, mode: str) -> Iterator[memoryview]:
    # Pillow nearly always keeps the fourth byte at 255 already.
    if mode != "RGB" or _all_opaque(words):
        yield words.view(np.uint8).data
        return
    for begin in range(0, words.size, CHUNK_BYTES // 4):
        yield (words[begin : begin + CHUNK_BYTES // 4] | _OPAQUE).view(np.uint8).data


def _all_opaque(words: np.ndarray) -> bool:
    # Little-endian, so the fourth byte decides how large a word is.
    return bool(words.min() >= _OPAQUE)


def _bands(image: Image.Image) -> Iterator[memoryview]:
    width, height = image.size
    rows = max(1, CHUNK_BYTES // (width * 4))
    for top in range(0, height, rows):
        band = image.crop((0, top, width, min(height, top + rows)))
        yield _band_bytes(band)


def _band_bytes(band: Image.Image) -> memoryview:
    if band.mode == "RGB":
        words = np.frombuffer(band.tobytes("raw", "RGBX"), dtype=np.uint32)
        return (words | _OPAQUE).view(np.uint8).data
    if band.mode in ("I", "F"):
        # The only modes that Pillow hands out in the machine's own byte order.
        native = np.frombuffer(band.tobytes(), dtype=_IMAGE_LAYOUTS[band.mode][0])
        return native.astype(native.dtype.newbyteorder("<"), copy=False).view(np.uint8).data
    return memoryview(band.tobytes())
