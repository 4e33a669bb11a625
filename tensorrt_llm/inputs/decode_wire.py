# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""What a decoder process and its owner say to each other.

A message is a u32 length and as many bytes of JSON, whose ``"buffers"`` gives the lengths of the
byte strings that follow: in the stream, or, where they are large, in a memory file whose descriptor
comes with the length. It is read, not mapped, so the other side may do to it what it likes. Nothing
is pickled: a process that a hostile file took over can at most answer with a wrong picture.
"""

from __future__ import annotations

import json
import os
import socket
import struct
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from PIL import Image

from tensorrt_llm.errors import LimitExceededError, MediaError, RequestError
from tensorrt_llm.inputs.multimodal_data import AudioData
from tensorrt_llm.inputs.video_data import VideoClip

if TYPE_CHECKING:
    from tensorrt_llm.inputs.media_decode import CanonicalMedia

_MAX_HEADER = 2**22
# From this size on, a memory file is faster than hundreds of turns through the socket.
_SHARED_BYTES = 2**16
_BYTES_A_PIXEL = {"RGB": 3, "CMYK": 4, "I;16": 2, "I": 4, "F": 4}


class WireError(Exception):
    """The other side hung up, was too slow, or talks nonsense."""


class Wire:
    """One end of a connection.

    Args:
        sock: A connected stream socket.
        max_bytes: Most bytes of a message's buffers that are received. May be changed.
    """

    def __init__(self, sock: socket.socket, max_bytes: int) -> None:
        self._socket = sock
        self.max_bytes = max_bytes

    def send(
        self, header: Mapping[str, Any], buffers: Sequence[Any] = (), *, end: float | None = None
    ) -> None:
        """Sends a message.

        Args:
            header: JSON-like.
            buffers: Bytes, or contiguous arrays.
            end: When to give up, on the monotonic clock.

        Raises:
            WireError: If it cannot be sent in time.
        """
        views = [memoryview(buffer).cast("B") for buffer in buffers]
        text = json.dumps({**header, "buffers": [view.nbytes for view in views]}).encode()
        head = struct.pack(">I", len(text)) + text
        try:
            if sum(view.nbytes for view in views) >= _SHARED_BYTES:
                self._send_shared(head, views, end)
                return
            for view in (memoryview(head), *views):
                self._socket.settimeout(_left(end))
                self._socket.sendall(view)
        except OSError as error:
            raise WireError(str(error)) from error

    def _send_shared(self, head: bytes, views: Sequence[memoryview], end: float | None) -> None:
        with open(os.memfd_create("media"), "wb", buffering=0) as file:
            for view in views:
                while view:
                    view = view[file.write(view) :]
            self._socket.settimeout(_left(end))
            sent = socket.send_fds(self._socket, [head], [file.fileno()])
            self._socket.sendall(head[sent:])

    def receive(self, *, end: float | None = None) -> tuple[dict[str, Any], list[np.ndarray]]:
        """Receives a message.

        Args:
            end: As for :meth:`send`.

        Returns:
            Header, and buffers as uint8 arrays.

        Raises:
            WireError: If none comes in time, or it is none.
        """
        descriptors: list[int] = []
        try:
            (length,) = struct.unpack(">I", self._begin(descriptors, end))
            if length > _MAX_HEADER:
                raise WireError(f"a header of {length} bytes")
            header = json.loads(bytes(self._exactly(length, end)))
            sizes = [int(size) for size in header.pop("buffers")]
            if min(sizes, default=0) < 0 or sum(sizes) > self.max_bytes:
                raise WireError(f"buffers of {sizes} bytes")
            if descriptors:
                os.lseek(descriptors[0], 0, os.SEEK_SET)
                return header, [_read(descriptors[0], size) for size in sizes]
            return header, [self._exactly(size, end) for size in sizes]
        except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
            raise WireError(str(error)) from error
        finally:
            for descriptor in descriptors:
                os.close(descriptor)

    def close(self) -> None:
        """Closes the connection."""
        self._socket.close()

    def _begin(self, descriptors: list[int], end: float | None) -> bytes:
        """The first four bytes of a message, and the descriptors that come with them."""
        self._socket.settimeout(_left(end))
        data, received, _, _ = socket.recv_fds(self._socket, 4, 1)
        descriptors.extend(received)
        if not data:
            raise WireError("the other side hung up")
        return data + bytes(self._exactly(4 - len(data), end))

    def _exactly(self, size: int, end: float | None) -> np.ndarray:
        data = np.empty(size, np.uint8)
        view = data.data
        while view:
            self._socket.settimeout(_left(end))
            count = self._socket.recv_into(view)
            if count == 0:
                raise WireError("the other side hung up")
            view = view[count:]
        return data


def _read(descriptor: int, size: int) -> np.ndarray:
    """The next bytes of a memory file."""
    if size > os.fstat(descriptor).st_size:
        raise WireError(f"a memory file of less than {size} bytes")
    data = np.empty(size, np.uint8)
    view = data.data
    while view:
        count = os.readv(descriptor, [view])
        if count == 0:
            raise WireError("a memory file ends early")
        view = view[count:]
    return data


def _left(end: float | None) -> float | None:
    return None if end is None else max(end - time.monotonic(), 1e-3)


def pack_media(media: CanonicalMedia) -> tuple[dict[str, Any], list[Any]]:
    """Header and buffers of a canonical payload."""
    if isinstance(media, Image.Image):
        return {"kind": "image", "mode": media.mode, "size": media.size}, [media.tobytes()]
    if isinstance(media, AudioData):
        samples = np.ascontiguousarray(media.samples)
        return {"kind": "audio", "rate": media.sample_rate, "shape": samples.shape}, [samples]
    header: dict[str, Any] = {
        "kind": "video",
        "shape": media.frames.shape,
        "frame_indices": media.frame_indices,
        "timestamps": media.timestamps,
        "fps": media.fps,
        "duration": media.duration,
        "total_num_frames": media.total_num_frames,
    }
    buffers: list[Any] = [media.frames]
    if media.audio is not None:
        header["audio"], sound = pack_media(media.audio)
        buffers += sound
    return header, buffers


def unpack_media(header: Mapping[str, Any], buffers: Sequence[np.ndarray]) -> CanonicalMedia:
    """The payload that :func:`pack_media` took apart, checked like any other.

    Raises:
        WireError: If the message is none of those.
    """
    try:
        kind = header["kind"]
        if kind == "image":
            return _unpack_image(header, buffers[0])
        if kind == "audio":
            samples = buffers[0].view(np.float32).reshape(header["shape"])
            return AudioData(samples, header["rate"])
        audio = unpack_media(header["audio"], buffers[1:]) if "audio" in header else None
        assert audio is None or isinstance(audio, AudioData)
        return VideoClip(
            frames=buffers[0].reshape(header["shape"]),
            frame_indices=tuple(header["frame_indices"]),
            timestamps=tuple(header["timestamps"]),
            fps=header["fps"],
            duration=header["duration"],
            total_num_frames=header["total_num_frames"],
            audio=audio,
        )
    except (ValueError, TypeError, KeyError, IndexError, AssertionError) as error:
        raise WireError("no media") from error


def _unpack_image(header: Mapping[str, Any], pixels: np.ndarray) -> Image.Image:
    mode, (width, height) = header["mode"], header["size"]
    # Pillow reads as much as it needs and says nothing about the rest.
    if len(pixels) != width * height * _BYTES_A_PIXEL[mode]:
        raise ValueError(f"{len(pixels)} bytes for {width}x{height} pixels of {mode}")
    return Image.frombytes(mode, (width, height), pixels)


def pack_error(error: RequestError) -> dict[str, Any]:
    """Header of an error that is the item's own fault."""
    if isinstance(error, LimitExceededError):
        return {"limit": [error.limit, error.value, error.maximum, error.unit]}
    return {"error": error.message}


def unpack_error(header: Mapping[str, Any]) -> RequestError | None:
    """The error in a header, None if there is none.

    Raises:
        WireError: If what is there is no error.
    """
    if "limit" in header:
        try:
            limit, value, maximum, unit = header["limit"]
        except (ValueError, TypeError) as error:
            raise WireError("no error") from error
        return LimitExceededError(str(limit), value, maximum, str(unit))
    return MediaError(str(header["error"])) if "error" in header else None
