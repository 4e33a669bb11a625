# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Arrays and images as a description and chunks of bytes, without a copy of the whole.

What lies in memory as it shall be hashed is handed out as it lies. Everything else (strided,
transposed or big-endian arrays, images that Pillow keeps in pieces) passes through one buffer of
bounded size, which is used again for the next chunk: read a chunk before asking for another.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from PIL import Image

from tensorrt_llm.bindings import pack_strided
from tensorrt_llm.errors import MediaError
from tensorrt_llm.inputs.canonical_value import canonical_value, u64
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

# As large as stays near while it is made and then hashed. Smaller pieces would read
# an array whose first axis is the dense one in runs that are too short.
_NEAR_BYTES = 2**21
# A picture is looked at and hashed in pieces of this size, large enough for several processors.
_WHOLE_BYTES = 2**23
# Shapes of pictures and clips whose descriptions are kept.
_KNOWN_SHAPES = 256

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


class Description(NamedTuple):
    """What a buffer means.

    Attributes:
        values: As a dict, not to be changed.
        nbytes: Length of the buffer.
        encoded: Both as bytes.
    """

    values: dict[str, Any]
    nbytes: int
    encoded: bytes

    @classmethod
    def of(cls, nbytes: int, /, **values: Any) -> Description:
        """Describes a buffer; how its bytes are ordered is always said."""
        values["byteorder"] = "little"
        return cls(values, nbytes, canonical_value(values) + u64(nbytes))


class PayloadPart(NamedTuple):
    """One buffer of a payload.

    Attributes:
        description: What the bytes mean, and how many there are.
        longest_chunk: Most bytes that a chunk may have.
        chunks: The bytes, piece by piece; to be read once.
    """

    description: Description
    longest_chunk: int
    chunks: Iterable[memoryview]


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
    name, carrier = _named(array.dtype)
    return np.asarray(array) if carrier is None else array.view(carrier), name


# There are about twenty types, and NumPy takes its time to name one.
@lru_cache(64)
def _named(dtype: np.dtype[Any]) -> tuple[str, str | None]:
    """The name of a type of numbers, and of the type that carries it, if it is another."""
    name = dtype.name
    if (carrier := _CARRIERS.get(name)) is not None:
        return name, carrier
    if dtype.kind not in "biufc" or name in _PADDED:
        raise TypeError(f"expected an array of numbers, not of {dtype}")
    return name, None


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
    shape = values.shape
    description = Description.of(values.nbytes, kind=kind, shape=shape, dtype=dtype, **more)
    return _part_of(description, values)


def _part_of(description: Description, values: np.ndarray) -> PayloadPart:
    nbytes = description.nbytes
    # For a short clip each step counts, so what lies right does without a generator.
    if nbytes and _lies_right(values):
        return PayloadPart(description, nbytes, (_memory(values),))
    return PayloadPart(description, min(nbytes, _NEAR_BYTES), array_chunks(values))


def _memory(array: np.ndarray) -> memoryview:
    """The bytes of an array that lies right and is not empty."""
    try:
        return array.data.cast("B")
    except (TypeError, ValueError):
        # Types of values that only NumPy knows; its own way takes longer.
        return array.reshape(-1).view(np.uint8).data


def _lies_right(array: np.ndarray) -> bool:
    """Whether memory holds the values in C order, little-endian."""
    return array.flags.c_contiguous and _is_little(array.dtype)


def _is_little(dtype: np.dtype[Any]) -> bool:
    # A single byte has no order, and counts as native.
    return dtype.isnative == (sys.byteorder == "little")


def clip_part(samples: np.ndarray, sample_rate: int) -> PayloadPart:
    """A clip: its samples in C order, little-endian.

    Args:
        samples: float32 ``[frames]`` or ``[frames, channels]``.
        sample_rate: Frames a second.
    """
    description = _clip_description(samples.shape, sample_rate)
    if samples.flags.c_contiguous and sys.byteorder == "little" and description.nbytes:
        return PayloadPart(description, description.nbytes, (samples.data.cast("B"),))
    return _part_of(description, samples)


# For a short clip the description would take as long as the hash. Both caches hold ints and str
# alone: a float that equals an int would find the other's.
@lru_cache(_KNOWN_SHAPES)
def _clip_description(shape: tuple[int, ...], sample_rate: int) -> Description:
    channels = shape[1] if len(shape) == 2 else 1
    return Description.of(
        shape[0] * channels * 4,
        kind="audio",
        shape=shape,
        dtype="float32",
        sample_rate=sample_rate,
        channels=channels,
    )


@lru_cache(_KNOWN_SHAPES)
def _image_description(mode: str, size: tuple[int, int]) -> Description:
    dtype, values = _IMAGE_LAYOUTS[mode]
    shape = (size[1], size[0], values)
    nbytes = size[0] * size[1] * values * np.dtype(dtype).itemsize
    return Description.of(nbytes, kind="image", shape=shape, dtype=dtype, mode=mode, size=size)


def array_chunks(array: np.ndarray) -> Iterator[memoryview]:
    """The values of an array in C order, little-endian."""
    if array.size == 0:
        return
    if _lies_right(array):
        yield _memory(array)
        return
    most = max(1, _NEAR_BYTES // array.itemsize)
    buffer = np.empty(min(array.size, most) * array.itemsize, np.uint8)
    for block in _blocks(array, most):
        chunk = buffer[: block.nbytes]
        if _is_little(array.dtype):
            pack_strided(block, chunk)
        else:
            dtype = array.dtype.newbyteorder("<")
            np.copyto(chunk.view(dtype).reshape(block.shape), block)
        yield chunk.data


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


def image_part(image: Image.Image) -> PayloadPart:
    """An image: rows from the top, pixels from the left, little-endian.

    Args:
        image: A loaded image in one of ``CANONICAL_IMAGE_MODES``.

    Raises:
        MediaError: If it is of another mode.
    """
    if image.mode not in _IMAGE_LAYOUTS:
        known = ", ".join(CANONICAL_IMAGE_MODES)
        raise MediaError(f"an image of mode {image.mode} is not in canonical form ({known})")
    description = _image_description(image.mode, image.size)
    longest = min(description.nbytes, _WHOLE_BYTES)
    return PayloadPart(description, longest, image_chunks(image))


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
    if mode != "RGB":
        yield words.view(np.uint8).data
        return
    for begin in range(0, words.size, _WHOLE_BYTES // 4):
        piece = words[begin : begin + _WHOLE_BYTES // 4]
        # Pillow nearly always keeps the fourth byte at 255 already: of all words, hence of what
        # they have in common.
        opaque = piece if np.bitwise_and.reduce(piece) >= _OPAQUE else piece | _OPAQUE
        yield opaque.view(np.uint8).data


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
