# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Canonical byte streams of media, and the 32-byte digests that stand for them.

Two media items are the same item exactly when their streams are equal, so a stream says everything
that decides what the model sees, every part carries its length, and nothing is left to guess.

**Values.** A value is one tag byte and its content. Integers below are unsigned and big-endian
unless said otherwise; ``lp(x)`` is the byte length of x as u64, then x.

| value | tag | then |
|---|---|---|
| None | 00 | nothing |
| str | 01 | ``lp(utf-8)``, lone surrogates passed through |
| bytes | 02 | ``lp(raw)`` |
| int | 03 | ``lp(signed two's complement, (bit_length + 8) // 8 bytes)`` |
| float | 04 | IEEE double |
| bool | 05 | u8 0 or 1 |
| list or tuple | 20 | u64 count, the values |
| dict with str keys | 22 | u64 count, then key and value, by the UTF-8 order of the keys |

NumPy scalars count as their Python value. Anything else is refused.

**Payload stream**, the input of :meth:`MediaHasher.payload_digest`:

    value("trtllm.media.payload.v1/" + algorithm)
    value(modality)
    value(description)
    02 lp(buffer)

An image's buffer holds its rows from the top, pixels from the left, channels interleaved; its
description is ``{"kind": "image", "mode", "size": [width, height], "shape", "dtype",
"byteorder": "little"}``. A clip's buffer holds its frames in time order, channels interleaved; its
description is ``{"kind": "audio", "sample_rate", "channels", "shape", "dtype": "float32",
"byteorder": "little"}``.

**Identity stream**, the input of :meth:`MediaHasher.identity`:

    value("trtllm.media.identity.v1/" + algorithm)
    value(modality)
    value(payload digest as bytes)
    value(context as dict)
    value(caller id as str, or None)

The version in the first value changes whenever any of this does, so digests of two layouts or two
algorithms never meet.
"""

from __future__ import annotations

import hashlib
import secrets
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeAlias

import blake3
import numpy as np
import torch
import xxhash
from PIL import Image

from tensorrt_llm.errors import MediaError
from tensorrt_llm.inputs.data import Digest

HashAlgorithm: TypeAlias = Literal["blake3", "sha256", "xxh3_128"]
HASH_ALGORITHMS: tuple[HashAlgorithm, ...] = ("blake3", "sha256", "xxh3_128")

MAX_CHANNELS = 32
"""Most channels of a clip. Above it, the second axis of an array is time."""

_PAYLOAD_SCHEME = "trtllm.media.payload.v1"
_IDENTITY_SCHEME = "trtllm.media.identity.v1"
# Deeper than any real option tree, shallower than the interpreter's stack.
_MAX_DEPTH = 32

# Pillow modes whose bytes say everything about the picture, and how those bytes read.
_IMAGE_LAYOUTS: dict[str, tuple[str, int]] = {
    "RGB": ("uint8", 3),
    "CMYK": ("uint8", 4),
    "I;16": ("uint16", 1),
    "I": ("int32", 1),
    "F": ("float32", 1),
}
CANONICAL_IMAGE_MODES = tuple(_IMAGE_LAYOUTS)

# Integer samples: full scale, and the value that means silence.
_SAMPLE_SCALES: dict[str, tuple[float, float]] = {
    "uint8": (2.0**7, 2.0**7),
    "int16": (2.0**15, 0.0),
    "int32": (2.0**31, 0.0),
}


@dataclass(frozen=True, eq=False)
class AudioData:
    """One decoded clip.

    Args:
        samples: float32 array, ``[frames]`` (mono) or ``[frames, channels]``, full scale at -1
            and 1. ``[frames, 1]`` is taken as ``[frames]``. Not copied: see :meth:`from_array`.
        sample_rate: Frames a second.

    Raises:
        TypeError: If samples is not a float32 ndarray or the rate is not a number.
        MediaError: If the clip is empty, has more than ``MAX_CHANNELS`` channels, holds NaN or
            infinity, or the rate is not positive and whole.
    """

    samples: np.ndarray
    sample_rate: int

    def __post_init__(self) -> None:
        samples, rate = self.samples, self.sample_rate
        if not isinstance(samples, np.ndarray) or samples.dtype != np.float32:
            found = getattr(samples, "dtype", type(samples).__name__)
            raise TypeError(f"audio samples are a float32 array, not {found}")
        if isinstance(rate, bool) or not isinstance(rate, (int, float, np.integer, np.floating)):
            raise TypeError(f"a sample rate is a number, not {type(rate).__name__}")
        if samples.ndim not in (1, 2):
            raise MediaError(f"audio has 1 or 2 axes, not {samples.ndim}")
        if samples.ndim == 2 and samples.shape[1] == 1:
            samples = samples[:, 0]
        if samples.size == 0:
            raise MediaError("the audio is empty: 0 frames")
        if samples.ndim == 2 and samples.shape[1] > MAX_CHANNELS:
            raise MediaError(
                f"the audio has {samples.shape[1]} channels; at most {MAX_CHANNELS} are taken"
            )
        # "not >" also holds for NaN.
        if not rate > 0 or rate == float("inf") or int(rate) != rate:
            raise MediaError(f"a sample rate is a positive whole number, not {rate}")
        if not np.isfinite(samples).all():
            raise MediaError("the audio holds samples that are not numbers (NaN or infinity)")
        object.__setattr__(self, "samples", samples)
        object.__setattr__(self, "sample_rate", int(rate))

    @classmethod
    def from_array(cls, samples: np.ndarray | torch.Tensor, sample_rate: int) -> AudioData:
        """Copies samples of any usual type into a clip.

        Integers are scaled to [-1, 1) by their full scale (uint8 around 128), as sound files are
        read; floats are taken as they are. A 2-D array is ``[frames, channels]``, unless its first
        axis could be channels and its second could not (at most ``MAX_CHANNELS``, more than
        ``MAX_CHANNELS``): then it is ``[channels, frames]``.

        Args:
            samples: ndarray or tensor of uint8, int16, int32 or floats, 1-D or 2-D.
            sample_rate: Frames a second.

        Raises:
            TypeError: If samples is no array, or of another type.
            MediaError: As the class.
        """
        array = _as_numpy(samples)
        if array.ndim == 2 and array.shape[0] <= MAX_CHANNELS < array.shape[1]:
            array = array.T
        if (scale := _SAMPLE_SCALES.get(array.dtype.name)) is not None:
            full, silence = scale
            # Through double: float32 alone would round int32 twice.
            floats = ((array.astype(np.float64) - silence) / full).astype(np.float32, order="C")
        elif array.dtype.kind == "f":
            # A number beyond float32 becomes infinite and is refused as such.
            with np.errstate(over="ignore"):
                floats = array.astype(np.float32, order="C", copy=True)
        else:
            raise TypeError(
                f"audio samples of {array.dtype} are not taken; give float, int16, int32 or uint8"
            )
        return cls(floats, sample_rate)

    @property
    def num_frames(self) -> int:
        """Number of sample frames."""
        return len(self.samples)

    @property
    def num_channels(self) -> int:
        """Number of channels."""
        return 1 if self.samples.ndim == 1 else self.samples.shape[1]

    @property
    def seconds(self) -> float:
        """Duration in seconds."""
        return self.num_frames / self.sample_rate


def _as_numpy(array: Any) -> np.ndarray:
    if isinstance(array, torch.Tensor):
        array = array.detach().cpu()
        # NumPy has no bfloat16; float32 holds every bfloat16 value.
        return (array.float() if array.dtype == torch.bfloat16 else array).numpy()
    if isinstance(array, np.ndarray):
        return array
    raise TypeError(f"expected an array or tensor, not {type(array).__name__}")


def canonical_value(value: Any) -> bytes:
    """Encodes a value in the form that the module documentation lays out.

    Args:
        value: None, bool, int, float, str, bytes, a NumPy scalar, or lists, tuples and str-keyed
            mappings of those.

    Raises:
        MediaError: If the value, or one inside it, is of another kind or too deeply nested.
    """
    return _encode(value, 0)


def _encode(value: Any, depth: int) -> bytes:
    if depth > _MAX_DEPTH:
        raise MediaError(f"options are nested more than {_MAX_DEPTH} deep")
    if isinstance(value, np.generic):
        value = value.item()
    if value is None:
        return b"\x00"
    if isinstance(value, str):
        return b"\x01" + _lp(value.encode("utf-8", "surrogatepass"))
    if isinstance(value, bytes):
        return b"\x02" + _lp(value)
    if isinstance(value, bool):
        return b"\x05" + bytes((value,))
    if isinstance(value, int):
        size = (value.bit_length() + 8) // 8
        return b"\x03" + _lp(value.to_bytes(size, "big", signed=True))
    if isinstance(value, float):
        return b"\x04" + struct.pack(">d", value)
    if isinstance(value, (list, tuple)):
        return b"\x20" + _u64(len(value)) + b"".join(_encode(v, depth + 1) for v in value)
    if isinstance(value, Mapping):
        return b"\x22" + _u64(len(value)) + b"".join(_encode_pairs(value, depth + 1))
    raise MediaError(f"a value of type {type(value).__name__} has no canonical form")


def _encode_pairs(mapping: Mapping[Any, Any], depth: int) -> list[bytes]:
    for key in mapping:
        if not isinstance(key, str):
            raise MediaError(f"a key of type {type(key).__name__} has no canonical form")
    keys = sorted(mapping, key=lambda key: key.encode("utf-8", "surrogatepass"))
    return [_encode(key, depth) + _encode(mapping[key], depth) for key in keys]


def _u64(number: int) -> bytes:
    return struct.pack(">Q", number)


def _lp(content: bytes) -> bytes:
    return _u64(len(content)) + content


class _Hash(Protocol):
    def update(self, data: Any, /) -> Any: ...

    def digest(self) -> bytes: ...


class _KeyedXxh3Pair:
    """Two 128-bit XXH3 hashes under two seeds, side by side: 32 bytes."""

    def __init__(self, seeds: tuple[int, int]) -> None:
        self._halves = [xxhash.xxh3_128(seed=seed) for seed in seeds]

    def update(self, data: bytes | memoryview) -> None:
        for half in self._halves:
            half.update(data)

    def digest(self) -> bytes:
        return b"".join(half.digest() for half in self._halves)


def _fresh_seeds() -> tuple[int, int]:
    return secrets.randbits(64), secrets.randbits(64)


@dataclass(frozen=True)
class MediaHasher:
    """Makes digests of media.

    Immutable and safe to use from many threads. The hash libraries release the GIL while they read
    a large buffer, and buffers are neither joined nor copied for them.

    Args:
        algorithm: ``blake3`` or ``sha256`` (collision-resistant), or ``xxh3_128``: two hashes keyed
            by secret seeds drawn for this object, fast, for a single tenant, and never to be
            published. Two hashers agree on ``xxh3_128`` only if one is a copy of the other.

    Raises:
        ValueError: If the algorithm is unknown.
    """

    algorithm: HashAlgorithm = "blake3"
    _seeds: tuple[int, int] = field(default_factory=_fresh_seeds, init=False, repr=False)

    def __post_init__(self) -> None:
        if self.algorithm not in HASH_ALGORITHMS:
            known = ", ".join(HASH_ALGORITHMS)
            raise ValueError(f"unknown hash algorithm {self.algorithm!r}; known: {known}")

    def payload_digest(self, modality: str, data: Image.Image | AudioData) -> Digest:
        """Digest of one canonical payload.

        Args:
            modality: ``"image"`` or ``"audio"``.
            data: An image in one of ``CANONICAL_IMAGE_MODES`` (see ``image_form.canonical_image``)
                or a clip.

        Returns:
            32 bytes.

        Raises:
            MediaError: If the payload is of a kind that has no canonical form.
        """
        kind, description, buffer = _describe(data)
        if kind != modality:
            raise MediaError(f"the payload is of kind {kind}, the item is {modality}")
        stream = self._start(_PAYLOAD_SCHEME)
        stream.update(canonical_value(modality) + canonical_value({"kind": kind, **description}))
        stream.update(b"\x02" + _u64(buffer.nbytes))
        stream.update(buffer)
        return Digest(stream.digest())

    def identity(
        self,
        modality: str,
        payload_digest: Digest | None,
        context: Mapping[str, Any],
        uuid: str | None = None,
    ) -> Digest | None:
        """Identity of an item: its payload, how it is processed, and the caller's id.

        Args:
            modality: ``"image"`` or ``"audio"``.
            payload_digest: Result of :meth:`payload_digest`, or None if it is not known.
            context: Whatever besides the payload decides the item's rows, defaults filled in. The
                order of keys does not matter.
            uuid: The caller's id. None is another identity than any string, also the empty one.

        Returns:
            32 bytes; None if the payload digest is None, since nothing can then be shared.

        Raises:
            MediaError: If the context holds a kind of value that has no canonical form.
        """
        if payload_digest is None:
            return None
        stream = self._start(_IDENTITY_SCHEME)
        for part in (modality, bytes(payload_digest), dict(context), uuid):
            stream.update(canonical_value(part))
        return Digest(stream.digest())

    def _start(self, scheme: str) -> _Hash:
        stream: _Hash
        if self.algorithm == "blake3":
            stream = blake3.blake3()
        elif self.algorithm == "sha256":
            stream = hashlib.sha256()
        else:
            stream = _KeyedXxh3Pair(self._seeds)
        stream.update(canonical_value(f"{scheme}/{self.algorithm}"))
        return stream


def _describe(data: Any) -> tuple[str, dict[str, Any], memoryview]:
    """Kind, description and buffer of a payload."""
    if isinstance(data, AudioData):
        return "audio", *_describe_audio(data)
    if isinstance(data, Image.Image):
        return "image", *_describe_image(data)
    raise MediaError(f"media of type {type(data).__name__} has no canonical form")


def _describe_audio(audio: AudioData) -> tuple[dict[str, Any], memoryview]:
    array = np.ascontiguousarray(audio.samples, dtype="<f4")
    description = {
        "sample_rate": audio.sample_rate,
        "channels": audio.num_channels,
        "shape": array.shape,
        "dtype": "float32",
        "byteorder": "little",
    }
    return description, array.data.cast("B")


def _describe_image(image: Image.Image) -> tuple[dict[str, Any], memoryview]:
    layout = _IMAGE_LAYOUTS.get(image.mode)
    if layout is None:
        known = ", ".join(CANONICAL_IMAGE_MODES)
        raise MediaError(f"an image of mode {image.mode} is not in canonical form ({known})")
    dtype, channels = layout
    width, height = image.size
    buffer = image.tobytes()
    if image.mode in ("I", "F"):
        # The only modes that Pillow hands out in the machine's own byte order.
        native = np.frombuffer(buffer, dtype=dtype)
        buffer = native.astype(native.dtype.newbyteorder("<"), copy=False).tobytes()
    description = {
        "mode": image.mode,
        "size": (width, height),
        "shape": (height, width, channels),
        "dtype": dtype,
        "byteorder": "little",
    }
    return description, memoryview(buffer)
