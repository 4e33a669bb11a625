# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Digests of media objects by upstream's function names, for programs that were written for it.

This package identifies its own items by ``MediaHasher``, which counts processing options too. The
functions here know the objects alone.

**Item stream.** Every value is one tag byte and its content, big-endian; ``lp(x)`` is the length
of x as u64, then x.

| value | tag | then |
|---|---|---|
| str | 01 | ``lp(utf-8)`` |
| bytes | 02 | ``lp(raw)`` |
| int | 03 | u8 byte count ``(bit_length + 8) // 8``, signed two's complement |
| float | 04 | IEEE double |
| bool | 05 | u8 0 or 1 |
| Pillow image, upright | 10 | ``lp(mode)``, u32 width, u32 height, ``lp(pixels)`` |
| ndarray or tensor | 11 | ``lp(dtype)``, u8 axes, u64 each, ``lp(values)`` |
| list or tuple | 20 | u64 count, the values |
| dict | 22 | u64 count, then key and value in order of the keys |

NumPy scalars count as their Python value; everything else, None included, is refused. ``pixels``
are RGBA where that holds all that the mode does, else the mode's own bytes, so that 16-bit, float
and CMYK pictures keep their values. ``values`` are little-endian in C order; ``dtype`` is NumPy's
(``<f4``), or torch's name for a type that NumPy lacks.

An item's digest is that of ``trtllm.mm.hash.v1`` and its stream. With a caller's id both count:
``<uuid>``, the id as a str, ``</uuid><content>``, tag and stream, ``</content>``. Neither the id
nor a hash that an object carries ever replaces content.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias

import blake3
import numpy as np
from PIL import Image

from tensorrt_llm.inputs.canonical_value import lp, plain_value, u64
from tensorrt_llm.inputs.image_form import upright
from tensorrt_llm.inputs.payload_form import CHUNK_BYTES, array_chunks, as_numpy

if TYPE_CHECKING:
    from tensorrt_llm.inputs.multimodal_data import AudioData

HASH_VERSION_TAG = b"trtllm.mm.hash.v1"

default_hasher = blake3.blake3
"""Makes the hasher that is used unless another is named."""

_MAX_DEPTH = 32
# Modes of which an RGBA conversion keeps everything.
_RGBA_HOLDS = ("1", "L", "LA", "P", "PA", "RGB", "RGBA")
_HASHED_METADATA = ("frames_indices", "fps", "duration", "total_num_frames")

Chunks: TypeAlias = "Iterator[bytes | memoryview]"


class Hasher(Protocol):
    """What takes a stream and gives its digest."""

    def update(self, data: Any, /) -> Any:
        """Takes more bytes."""

    def hexdigest(self) -> str:
        """The digest of all bytes so far."""


class BaseModalityData:
    """Base of objects that say themselves what is hashed of them."""

    def hash_chunks(self) -> Chunks:
        """The bytes that stand for the object, piece by piece.

        Raises:
            NotImplementedError: If the class does not say.
        """
        raise NotImplementedError(f"{type(self).__name__} does not say what is hashed of it")

    def update_hash(self, hasher: Hasher) -> None:
        """Feeds the object to a hasher.

        Raises:
            NotImplementedError: As ``hash_chunks``.
            ValueError: If a part of it has no canonical form.
        """
        for chunk in self.hash_chunks():
            hasher.update(chunk)


@dataclass(frozen=True, eq=False)
class VideoData(BaseModalityData):
    """A video as a list of frames.

    Args:
        frames: Pillow images, arrays or tensors, one a frame, or one array of all.
        metadata: Facts on the video it was taken from. ``frames_indices``, ``fps``, ``duration``
            and ``total_num_frames`` are hashed as far as they are there and not None.
        audio: Its sound.
        raw_bytes_hash: Counted beside the frames, never instead of them: a caller might write
            another video's here.

    Raises:
        ValueError: If there are no frames.
        TypeError: If metadata is no dict, or audio no ``AudioData``.
    """

    frames: Any = field(repr=False)
    metadata: dict[str, Any]
    audio: AudioData | None = None
    raw_bytes_hash: str | None = None

    def __post_init__(self) -> None:
        if len(self.frames) == 0:
            raise ValueError("the video has no frames")
        if not isinstance(self.metadata, dict):
            raise TypeError(f"metadata must be a dict, not {type(self.metadata).__name__}")
        if self.audio is not None and not isinstance(self.audio, BaseModalityData):
            raise TypeError(f"audio must be AudioData, not {type(self.audio).__name__}")

    def hash_chunks(self) -> Chunks:
        """Metadata, frames in order, sound."""
        known = {name: self.metadata.get(name) for name in _HASHED_METADATA}
        yield b"<video>"
        yield from item_chunks({name: value for name, value in known.items() if value is not None})
        if self.raw_bytes_hash is not None:
            yield b"<raw_bytes>"
            yield from item_chunks(self.raw_bytes_hash)
        for frame in self.frames:
            yield b"<frame>"
            yield from item_chunks(frame)
        if self.audio is not None:
            yield from self.audio.hash_chunks()


class MMHashResult(NamedTuple):
    """Digests of a request's items.

    Attributes:
        hashes: By modality, 64 hex characters an item.
        uuids: By modality, the caller's id of each item or None; None if no ids were given.
    """

    hashes: dict[str, list[str]]
    uuids: dict[str, list[str | None]] | None


def apply_mm_hashes(
    mm_data: Mapping[str, Any],
    mm_uuids: Mapping[str, Any] | None = None,
    hash_lib: Callable[[], Hasher] = default_hasher,
) -> MMHashResult:
    """Digests the items of a request.

    Args:
        mm_data: By modality an item, or a list of items.
        mm_uuids: By modality the callers' ids: one for each item, each may be None, or one str.
        hash_lib: Makes a hasher whose digest has 32 bytes.

    Raises:
        ValueError: If the numbers of ids and items differ, or an item has no canonical form.
    """
    hashes: dict[str, list[str]] = {}
    uuids: dict[str, list[str | None]] = {}
    for modality, value in mm_data.items():
        items = value if isinstance(value, list) else [value]
        given = None if mm_uuids is None else mm_uuids.get(modality)
        ids = [given] if isinstance(given, str) else list(given or [None] * len(items))
        if len(ids) != len(items):
            raise ValueError(
                f"UUID list length {len(ids)} doesn't match the {len(items)} data items of "
                f"{modality}"
            )
        hashes[modality] = [
            _digest(item, uuid, hash_lib()) for item, uuid in zip(items, ids, strict=True)
        ]
        uuids[modality] = ids
    return MMHashResult(hashes, None if mm_uuids is None else uuids)


def _digest(item: Any, uuid: str | None, hasher: Hasher) -> str:
    before: tuple[bytes, ...] = ()
    if uuid is not None:
        if not isinstance(uuid, str):
            raise ValueError(f"a UUID is a str or None, not {type(uuid).__name__}")
        # As a value with its length: else an id could spell the end of itself.
        before = (b"<uuid>", serialize_item(uuid), b"</uuid>", b"<content>")
    for chunk in (*before, HASH_VERSION_TAG):
        hasher.update(chunk)
    for piece in item_chunks(item):
        hasher.update(piece)
    if uuid is not None:
        hasher.update(b"</content>")
    return hasher.hexdigest()


def serialize_item(obj: Any) -> bytes:
    """The item stream of an object, in one piece.

    Raises:
        ValueError: If the object, or one inside it, has no canonical form.
    """
    return b"".join(item_chunks(obj))


def item_chunks(obj: Any) -> Chunks:
    """The item stream of an object, piece by piece, large buffers as they lie in memory.

    Each piece is valid until the next is asked for.

    Raises:
        ValueError: As ``serialize_item``.
    """
    return _chunks(obj, 0)


def _chunks(obj: Any, depth: int) -> Chunks:
    if depth > _MAX_DEPTH:
        raise ValueError(f"an item is nested more than {_MAX_DEPTH} deep")
    if isinstance(obj, np.generic):
        obj = obj.item()
    if isinstance(obj, BaseModalityData):
        yield from obj.hash_chunks()
    elif isinstance(obj, Image.Image):
        yield from _image_chunks(upright(obj))
    elif isinstance(obj, (list, tuple)):
        yield b"\x20" + u64(len(obj))
        for value in obj:
            yield from _chunks(value, depth + 1)
    elif isinstance(obj, Mapping):
        yield b"\x22" + u64(len(obj))
        for key in _sorted_keys(obj):
            yield from _chunks(key, depth + 1)
            yield from _chunks(obj[key], depth + 1)
    elif isinstance(obj, (str, bytes, bool, int, float)):
        yield _scalar(obj)
    else:
        yield from _array_chunks(obj)


def _scalar(value: str | bytes | bool | int | float) -> bytes:
    if not isinstance(value, int) or isinstance(value, bool):
        return plain_value(value)
    size = (value.bit_length() + 8) // 8
    if size > 255:
        raise ValueError(f"an int of {size} bytes has no canonical form; at most 255 are taken")
    return b"\x03" + bytes((size,)) + value.to_bytes(size, "big", signed=True)


def _sorted_keys(mapping: Mapping[Any, Any]) -> Sequence[Any]:
    kinds = {type(key) for key in mapping}
    if kinds - {str} and kinds - {int}:
        names = ", ".join(sorted(kind.__name__ for kind in kinds))
        raise ValueError(f"keys of a dict are all str or all int, not {names}")
    return sorted(mapping)


def _array_chunks(obj: Any) -> Chunks:
    try:
        array, dtype = as_numpy(obj)
    except TypeError as error:
        raise ValueError(f"an object of type {type(obj).__name__} has no canonical form") from error
    if dtype == array.dtype.name:
        dtype = array.dtype.newbyteorder("<").str
    yield b"\x11" + lp(dtype.encode()) + bytes((array.ndim,))
    yield b"".join(u64(length) for length in array.shape) + u64(array.nbytes)
    yield from array_chunks(array)


def _image_chunks(image: Image.Image) -> Chunks:
    width, height = image.size
    as_rgba = image.mode in _RGBA_HOLDS
    yield b"\x10" + lp(image.mode.encode()) + struct.pack(">II", width, height)
    if 0 in image.size:
        yield u64(0)
        return
    rows = max(1, CHUNK_BYTES // (width * 4))
    row_bytes = len(_band(image, 0, 1, as_rgba))
    yield u64(row_bytes * height)
    for top in range(0, height, rows):
        yield _band(image, top, min(height, top + rows), as_rgba)


def _band(image: Image.Image, top: int, bottom: int, as_rgba: bool) -> bytes:
    band = image.crop((0, top, image.width, bottom))
    return (band.convert("RGBA") if as_rgba else band).tobytes()
