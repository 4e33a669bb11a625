# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Canonical byte streams of media, and the 32-byte digests that stand for them.

Two media items are the same item exactly when their streams are equal, so a stream says everything
that decides what the model sees, every part carries its length, and nothing is left to guess.

A value below is in the form of ``canonical_value``; ``02 lp(x)`` is the bytes x as such a value.
Every stream is read from its end: contents, then a head that says what they are, then the length of
the head. So large contents lie where tree hashes take them fastest, at the very beginning.

**Payload stream**, the input of :meth:`MediaHasher.payload_digest`:

    for each part of the payload:
        buffer
    head:
        value("trtllm.media.payload.v3/" + algorithm)
        value(modality)
        for each part of the payload:
            value(description)
            u64 length of buffer
    u64 length of head

Every description holds ``kind``, ``shape``, ``dtype`` and ``byteorder``, and beside them:

- an image ``mode`` and ``size`` (``[width, height]``). Buffer: rows from the top, pixels from the
  left, channels interleaved; ``RGB`` as four bytes a pixel, the last of them 255.
- a clip ``sample_rate`` and ``channels``. Buffer: frames in time order, channels interleaved.
- a video ``frame_indices``, ``timestamps``, ``fps``, ``duration``, ``total_num_frames`` and
  ``has_audio``. Buffer: the chosen frames in time order, three bytes a pixel. A second part holds
  its clip, if it has one.
- an embedding ``grid``, where it has one. Buffer: the rows in order.

``byteorder`` is always ``"little"``.

**Identity stream**, the input of :meth:`MediaHasher.identity`; it has no contents:

    head:
        value("trtllm.media.identity.v2/" + algorithm)
        value(modality)
        02 lp(payload digest)
        value(context as dict)
        value(caller id as str, or None)
    u64 length of head

Under ``xxh3_128`` the digest is keyed BLAKE2b over keyed XXH3 of the contents, and all that follows
them. Under the others it is the plain hash of the stream.

The version in the first value of a head changes whenever any of this does, so digests of two
layouts, two algorithms or two kinds of streams never meet.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

import blake3
import numpy as np
import xxhash
from PIL import Image

from tensorrt_llm.errors import MediaError
from tensorrt_llm.inputs.canonical_value import canonical_value, u64
from tensorrt_llm.inputs.data import Digest
from tensorrt_llm.inputs.mm_hashes import (
    BaseModalityData,
    Chunks,
    VideoData,
    item_chunks,
    serialize_item,
)
from tensorrt_llm.inputs.payload_form import (
    PayloadPart,
    array_part,
    as_numpy,
    clip_part,
    image_part,
)
from tensorrt_llm.inputs.video_data import VideoClip

# Decoder processes import this module; loading torch would be most of their start.
if TYPE_CHECKING:
    import torch

# Names that upstream has here, beside those of this module.
__all__ = [
    "AudioData",
    "BaseModalityData",
    "EmbeddingData",
    "HashAlgorithm",
    "MediaHasher",
    "VideoData",
    "serialize_item",
]

HashAlgorithm: TypeAlias = Literal["blake3", "sha256", "xxh3_128"]
HASH_ALGORITHMS: tuple[HashAlgorithm, ...] = ("blake3", "sha256", "xxh3_128")

MAX_CHANNELS = 32
"""Most channels of a clip. Above it, the second axis of an array is time."""

_PAYLOAD_SCHEME = "trtllm.media.payload.v3"
_IDENTITY_SCHEME = "trtllm.media.identity.v2"

# BLAKE3 is a tree: of a chunk of this size, parts are hashed side by side, on processors that idle.
# For smaller ones handing over costs more than it gains.
_MANY_BYTES = 2**21

# Integer samples: full scale, and the value that means silence.
_SAMPLE_SCALES: dict[str, tuple[float, float]] = {
    "uint8": (2.0**7, 2.0**7),
    "int16": (2.0**15, 0.0),
    "int32": (2.0**31, 0.0),
}


@dataclass(frozen=True, eq=False)
class AudioData(BaseModalityData):
    """One decoded clip.

    Args:
        samples: ``[frames]`` (mono) or ``[frames, channels]``; ``[frames, 1]`` is taken as
            ``[frames]``. A float32 ndarray with full scale at -1 and 1 is kept and not copied;
            other arrays and tensors are converted as by :meth:`from_array`.
        sample_rate: Frames a second.

    Raises:
        TypeError: If samples is no array of numbers or the rate is not a number.
        MediaError: If the clip is empty, has more than ``MAX_CHANNELS`` channels, holds NaN or
            infinity, or the rate is not positive and whole.
    """

    samples: np.ndarray
    sample_rate: int

    def __post_init__(self) -> None:
        samples, rate = self.samples, self.sample_rate
        if not isinstance(samples, np.ndarray) or samples.dtype != np.float32:
            samples = _as_samples(samples)
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
        array, _ = as_numpy(samples)
        if array.ndim == 2 and array.shape[0] <= MAX_CHANNELS < array.shape[1]:
            samples = samples.T
        return cls(_as_samples(samples), sample_rate)

    def hash_chunks(self) -> Chunks:
        """The samples and the rate, for ``apply_mm_hashes``."""
        yield b"<audio>"
        yield from item_chunks((self.samples, self.sample_rate))

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


def _as_samples(array: Any) -> np.ndarray:
    """A float32 copy in C order, full scale at -1 and 1."""
    values, dtype = as_numpy(array)
    if (scale := _SAMPLE_SCALES.get(dtype)) is not None:
        full, silence = scale
        # Through double: float32 alone would round int32 twice.
        return ((values.astype(np.float64) - silence) / full).astype(np.float32, order="C")
    if dtype == "bfloat16":
        # The 16 bits that it holds are the upper half of a float32.
        return (values.astype(np.uint32, order="C") << 16).view(np.float32)
    if values.dtype.kind != "f":
        raise TypeError(
            f"audio samples of {dtype} are not taken; give float, int16, int32 or uint8"
        )
    # A number beyond float32 becomes infinite and is refused as such.
    with np.errstate(over="ignore"):
        return values.astype(np.float32, order="C", copy=True)


@dataclass(frozen=True, eq=False)
class EmbeddingData:
    """Rows of an item that the caller's own encoder made.

    Args:
        rows: Array or tensor of floats, ``[rows, row_width]``. Not copied.
        grid: Lines and columns, for families where rows alone do not say how they stand: of rows
            (Qwen2-VL and its kin), or of tiles, ``(0, 0)`` for a picture in one (Idefics3).

    Raises:
        TypeError: If it is no dense array of floats, or the grid is not two whole numbers.
        MediaError: If it has other axes, no rows, or values that are not numbers.
    """

    rows: np.ndarray | torch.Tensor
    grid: tuple[int, int] | None = None

    def __post_init__(self) -> None:
        if self.grid is not None and [type(side) for side in self.grid] != [int, int]:
            raise TypeError(f"a grid is (lines, columns), two whole numbers, not {self.grid!r:.80}")
        values, dtype = as_numpy(self.rows)
        if values.dtype.kind != "f" and dtype != "bfloat16":
            raise TypeError(f"embedding rows are floats, not {dtype}")
        if values.ndim != 2 or 0 in values.shape:
            raise MediaError(f"embeddings have shape [rows, hidden_size], not {list(values.shape)}")
        finite = _bfloat16_is_finite(values) if dtype == "bfloat16" else np.isfinite(values)
        if not finite.all():
            raise MediaError("the embeddings hold values that are not numbers (NaN or infinity)")

    def copied(self) -> EmbeddingData:
        """The same rows in memory of their own, on the CPU, that no caller changes later."""
        rows = self.rows
        own = rows.copy() if isinstance(rows, np.ndarray) else rows.detach().cpu().clone()
        return EmbeddingData(own, self.grid)

    def as_tensor(self, row_width: int) -> torch.Tensor:
        """The rows as a tensor on the CPU.

        Args:
            row_width: Values that a row of the model has.

        Raises:
            MediaError: If these have another number.
        """
        import torch

        if self.rows.shape[1] != row_width:
            raise MediaError(
                f"the embeddings have {self.rows.shape[1]} values a row, this model's rows have "
                f"{row_width}"
            )

        values, dtype = as_numpy(self.rows)
        native = np.ascontiguousarray(values, values.dtype.newbyteorder("="))
        tensor = torch.from_numpy(native)
        return tensor.view(torch.bfloat16) if dtype == "bfloat16" else tensor


def _bfloat16_is_finite(bits: np.ndarray) -> np.ndarray:
    # All eight bits of the exponent set means NaN or infinity.
    return (bits & 0x7F80) != 0x7F80


class _Hash(Protocol):
    def update(self, data: Any, /) -> Any: ...

    def digest(self) -> bytes: ...


def _fresh_secret() -> tuple[int, bytes]:
    """A seed of 64 bits and a key."""
    return secrets.randbits(64), secrets.token_bytes(32)


@dataclass(frozen=True)
class MediaHasher:
    """Makes digests of media.

    Immutable and safe to use from many threads. The hash libraries release the GIL while they read
    a large buffer, and buffers are neither joined nor copied for them.

    Args:
        algorithm: ``blake3`` or ``sha256`` (collision-resistant), or ``xxh3_128``: keyed by a
            secret drawn for this object, fast, for a single tenant, and never to be published. Two
            hashers agree on ``xxh3_128`` only if one is a copy of the other.

    Raises:
        ValueError: If the algorithm is unknown.
    """

    algorithm: HashAlgorithm = "blake3"
    _secret: tuple[int, bytes] = field(default_factory=_fresh_secret, init=False, repr=False)

    def __post_init__(self) -> None:
        if self.algorithm not in HASH_ALGORITHMS:
            known = ", ".join(HASH_ALGORITHMS)
            raise ValueError(f"unknown hash algorithm {self.algorithm!r}; known: {known}")

    def payload_digest(
        self, modality: str, data: Image.Image | AudioData | VideoClip | EmbeddingData
    ) -> Digest:
        """Digest of one canonical payload.

        Args:
            modality: ``"image"``, ``"audio"`` or ``"video"``.
            data: An image in one of ``CANONICAL_IMAGE_MODES`` (see ``image_form.canonical_image``),
                a clip, a video, or embedding rows of any modality.

        Returns:
            32 bytes.

        Raises:
            MediaError: If the payload is of a kind that has no canonical form.
        """
        kind, parts = _parts(data)
        if kind not in (modality, "embedding"):
            raise MediaError(f"the payload is of kind {kind}, the item is {modality}")
        end = _payload_end(self.algorithm, modality, *map(_described, parts))
        return self._digest(parts, end)

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
        parts = (bytes(payload_digest), dict(context), uuid)
        encoded = [canonical_value(part) for part in parts]
        return self._digest((), _end(_IDENTITY_SCHEME, self.algorithm, modality, *encoded))

    def _digest(self, parts: tuple[PayloadPart, ...], end: bytes) -> Digest:
        """Digest of a stream: the parts' contents, and what they end with."""
        if self.algorithm == "xxh3_128":
            seed, key = self._secret
            # Sealed, the result tells nothing to who lacks the key.
            sealed = hashlib.blake2b(_fast_hash(parts, seed) + end, digest_size=32, key=key)
            return Digest(sealed.digest())
        if self.algorithm == "sha256":
            stream: _Hash = hashlib.sha256()
        elif any([part.longest_chunk >= _MANY_BYTES for part in parts]):
            stream = blake3.blake3(max_threads=blake3.blake3.AUTO)
        else:
            stream = blake3.blake3()
        for part in parts:
            for chunk in part.chunks:
                stream.update(chunk)
        stream.update(end)
        return Digest(stream.digest())


def _fast_hash(parts: tuple[PayloadPart, ...], seed: int) -> bytes:
    """128-bit XXH3 of contents."""
    if len(parts) == 1 and isinstance(chunks := parts[0].chunks, tuple):
        # For a short clip each call counts.
        [whole] = chunks
        return xxhash.xxh3_128_digest(whole, seed)
    stream = xxhash.xxh3_128(seed=seed)
    for part in parts:
        for chunk in part.chunks:
            stream.update(chunk)
    return stream.digest()


def _end(scheme: str, algorithm: str, modality: str, *more: bytes) -> bytes:
    """What a stream ends with: its head, and the length of that."""
    head = b"".join([_beginning(scheme, algorithm, modality), *more])
    return head + u64(len(head))


_described = attrgetter("description.encoded")


# Clips and pictures of one size end alike.
@lru_cache(256)
def _payload_end(algorithm: str, modality: str, *described: bytes) -> bytes:
    return _end(_PAYLOAD_SCHEME, algorithm, modality, *described)


@lru_cache(64)
def _beginning(scheme: str, algorithm: str, modality: str) -> bytes:
    """What a head begins with."""
    return canonical_value(f"{scheme}/{algorithm}") + canonical_value(modality)


def _parts(data: Any) -> tuple[str, tuple[PayloadPart, ...]]:
    """Kind and parts of a payload."""
    if isinstance(data, AudioData):
        return "audio", (clip_part(data.samples, data.sample_rate),)
    if isinstance(data, Image.Image):
        return "image", (image_part(data),)
    if isinstance(data, VideoClip):
        return "video", tuple(_video_parts(data))
    if isinstance(data, EmbeddingData):
        placed = {} if data.grid is None else {"grid": list(data.grid)}
        return "embedding", (array_part(data.rows, "embedding", **placed),)
    raise MediaError(f"media of type {type(data).__name__} has no canonical form")


def _video_parts(video: VideoClip) -> Iterator[PayloadPart]:
    yield array_part(
        video.frames,
        "video",
        frame_indices=video.frame_indices,
        timestamps=video.timestamps,
        fps=video.fps,
        duration=video.duration,
        total_num_frames=video.total_num_frames,
        has_audio=video.audio is not None,
    )
    if video.audio is not None:
        yield clip_part(video.audio.samples, video.audio.sample_rate)
