# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""The connection between the door and the engine's process: ZeroMQ, and memory files for tensors.

A message is two frames, body and layout, and the bytes of its tensors: as further frames where
they are few, else in one memory file whose descriptor goes through a socket pair. Such a file has
no name and no other owner, so nothing of it can outlive the two processes.

The two addresses are sockets in a folder that only this user can enter. It is removed as soon as
both sides are connected.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import shutil
import socket
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Generic, TypeVar

import msgspec
import numpy as np
import torch
import zmq

from tensorrt_llm.errors import EngineError
from tensorrt_llm.executor.messages import ToDoor, ToEngine

SHARED_BYTES = 2**18
"""From this size on, a message's tensors go through a memory file."""

FOLDER_PREFIX = "trtllm-engine-"
"""How the names of the folders with the addresses begin."""

_TENSOR = 1
# The kernel takes 107 bytes for the name of a socket in it.
_MAX_FOLDER_NAME = 90
# Vector instructions want no less.
_ALIGNMENT = 64
_GOODBYE_MS = 2000

_Out = TypeVar("_Out")
_In = TypeVar("_In")


class _TensorRef(msgspec.Struct, array_like=True):
    """Stands in a body for a tensor: buffer number, type and shape."""

    buffer: int
    dtype: str
    shape: list[int]


class _Layout(msgspec.Struct, array_like=True):
    """Where the buffers are: their sizes, and whether they lie in a memory file."""

    shared: bool
    sizes: list[int]


_encode = msgspec.msgpack.Encoder().encode
_decode_ref = msgspec.msgpack.Decoder(_TensorRef).decode
_decode_layout = msgspec.msgpack.Decoder(_Layout).decode
_NO_BUFFERS = _encode(_Layout(False, []))


class Channel(Generic[_Out, _In]):
    """One end of a connection. ``send`` may be called from any thread, the rest from one.

    Args:
        context: Owner of the sockets.
        sender: Connected or bound PUSH socket.
        receiver: Connected or bound PULL socket.
        segments: Socket for descriptors of memory files.
        incoming: Type of the messages that come in.
    """

    def __init__(
        self,
        context: zmq.Context,
        sender: zmq.Socket,
        receiver: zmq.Socket,
        segments: socket.socket,
        incoming: Any,
    ) -> None:
        self._context = context
        self._sender = sender
        self._receiver = receiver
        self._segments = segments
        self._segments.setblocking(False)
        self._sending = threading.Lock()
        self._closed = False
        self._buffers: Sequence[Any] = ()
        self._decoder = msgspec.msgpack.Decoder(incoming, ext_hook=self._tensor)

    @property
    def receiver(self) -> zmq.Socket:
        """The socket to poll."""
        return self._receiver

    def send(self, message: _Out) -> bool:
        """Sends a message; does not wait for the other side.

        Returns:
            False if the channel is closed, or nobody is at its other end (any more).
        """
        buffers: list[memoryview] = []
        body = msgspec.msgpack.encode(message, enc_hook=lambda value: _pack(value, buffers))
        sizes = [buffer.nbytes for buffer in buffers]
        file = _fill(buffers) if sum(sizes) >= SHARED_BYTES else None
        try:
            with self._sending:
                if self._closed:
                    return False
                shared = file is not None and self._pass_on(file)
                frames = [body, _encode(_Layout(shared, sizes)) if buffers else _NO_BUFFERS]
                self._sender.send_multipart(frames if shared else [*frames, *buffers], zmq.NOBLOCK)
                return True
        except zmq.Again:
            # Nothing bounds what may wait, so it is the other end that is missing.
            return False
        finally:
            if file is not None:
                os.close(file)

    def wait_for_peer(self, seconds: float) -> bool:
        """Waits until the other end takes messages; tells whether it does."""
        return bool(self._sender.poll(int(1e3 * seconds), zmq.POLLOUT))

    def receive(self) -> _In | None:
        """The next message, None if none has arrived.

        Raises:
            msgspec.ValidationError: If it is none of the types expected.
        """
        try:
            body, layout, *frames = self._receiver.recv_multipart(zmq.NOBLOCK, copy=False)
        except zmq.Again:
            return None
        if len(layout) == len(_NO_BUFFERS):
            self._buffers = ()
        else:
            where = _decode_layout(layout.buffer)
            # Copies of what is small: ZeroMQ's own memory has no alignment.
            self._buffers = (
                self._map(where.sizes)
                if where.shared
                else [bytearray(frame.buffer) for frame in frames]
            )
        try:
            return self._decoder.decode(body.buffer)
        finally:
            self._buffers = ()

    def close(self, *, flush: bool = False) -> None:
        """Closes the connection.

        Args:
            flush: Give what was sent a moment to arrive.
        """
        with self._sending:
            if self._closed:
                return
            self._closed = True
            self._sender.close(linger=_GOODBYE_MS if flush else 0)
            self._receiver.close(linger=0)
            self._segments.close()
        self._context.term()

    def _pass_on(self, file: int) -> bool:
        try:
            socket.send_fds(self._segments, [b"s"], [file])
        except OSError:
            # Too many are on their way; frames do as well.
            return False
        return True

    def _map(self, sizes: Sequence[int]) -> list[memoryview]:
        # The descriptor was sent before the message, so it is there.
        _, descriptors, _, _ = socket.recv_fds(self._segments, 1, 1)
        if not descriptors:
            raise EngineError("a message came without its memory file")
        try:
            whole = memoryview(mmap.mmap(descriptors[0], 0))
        finally:
            os.close(descriptors[0])
        return [
            whole[start : start + size] for start, size in zip(_offsets(sizes), sizes, strict=True)
        ]

    def _tensor(self, code: int, data: memoryview) -> torch.Tensor:
        if code != _TENSOR:
            raise ValueError(f"extension {code} of a message is unknown")
        ref = _decode_ref(data)
        dtype = getattr(torch, ref.dtype, None)
        if not isinstance(dtype, torch.dtype):
            raise ValueError(f"a tensor of type {ref.dtype!r}")
        buffer = self._buffers[ref.buffer]
        if len(buffer) == 0:
            return torch.empty(ref.shape, dtype=dtype)
        return torch.frombuffer(buffer, dtype=dtype).reshape(ref.shape)


class Listener:
    """The door's end of a connection before the engine has taken the other."""

    def __init__(self) -> None:
        with contextlib.ExitStack() as undo:
            self._ours, self.theirs = socket.socketpair()
            undo.callback(self._ours.close)
            undo.callback(self.theirs.close)
            self.folder = _private_folder()
            undo.callback(self.remove_folder)
            self._context = zmq.Context()
            undo.callback(self._context.destroy, linger=0)
            self._sender, self._receiver = _sockets(self._context)
            self._sender.bind(_address(self.folder, "requests"))
            self._receiver.bind(_address(self.folder, "results"))
            undo.pop_all()

    def channel(self) -> Channel[ToEngine, ToDoor]:
        """The door's end. Close it, or the listener, not both."""
        return Channel(self._context, self._sender, self._receiver, self._ours, ToDoor)

    def remove_folder(self) -> None:
        """Removes the addresses; who is connected stays so."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def close(self) -> None:
        """Gives the connection up before there was one."""
        self.channel().close()
        self.theirs.close()
        self.remove_folder()


def connect(folder: str, segments: socket.socket) -> Channel[ToDoor, ToEngine]:
    """The engine's end.

    Args:
        folder: Where the addresses are.
        segments: Its end of the socket pair.
    """
    context = zmq.Context()
    sender, receiver = _sockets(context)
    receiver.connect(_address(folder, "requests"))
    sender.connect(_address(folder, "results"))
    return Channel(context, sender, receiver, segments, ToEngine)


def _private_folder() -> str:
    """A new folder that only this user can enter, with a name short enough for a socket's."""
    folder = tempfile.mkdtemp(prefix=FOLDER_PREFIX)
    if len(folder) > _MAX_FOLDER_NAME:
        os.rmdir(folder)
        folder = tempfile.mkdtemp(prefix=FOLDER_PREFIX, dir="/tmp")
    return folder


def _sockets(context: zmq.Context) -> tuple[zmq.Socket, zmq.Socket]:
    sender, receiver = context.socket(zmq.PUSH), context.socket(zmq.PULL)
    for end in (sender, receiver):
        # How much may wait is limited by the queue of requests, not here, where a sender would
        # have to wait.
        end.set_hwm(0)
    return sender, receiver


def _address(folder: str, name: str) -> str:
    return f"ipc://{Path(folder) / name}"


def _pack(value: Any, buffers: list[memoryview]) -> Any:
    """What a message holds in place of a value that msgpack does not know."""
    if isinstance(value, torch.Tensor):
        flat = value.detach().to("cpu").contiguous().reshape(-1)
        buffers.append(memoryview(flat.view(torch.uint8).numpy()))  # type: ignore[arg-type]
        name = str(value.dtype).removeprefix("torch.")
        ref = _TensorRef(len(buffers) - 1, name, list(value.shape))
        return msgspec.msgpack.Ext(_TENSOR, _encode(ref))
    if isinstance(value, np.ndarray):
        return _pack(torch.from_numpy(np.array(value)), buffers)
    if isinstance(value, np.generic):
        return value.item()
    raise EngineError(f"a {type(value).__name__} cannot be sent to the engine's process")


def _offsets(sizes: Sequence[int]) -> list[int]:
    offsets, end = [], 0
    for size in sizes:
        offsets.append(end)
        end = -(-(end + size) // _ALIGNMENT) * _ALIGNMENT
    return offsets


def _fill(buffers: Sequence[memoryview]) -> int | None:
    """Descriptor of a memory file with the buffers; None if there is no memory for it."""
    file = os.memfd_create("trtllm-tensors", os.MFD_CLOEXEC)
    try:
        offsets = _offsets([buffer.nbytes for buffer in buffers])
        for offset, view in zip(offsets, buffers, strict=True):
            while view:
                count = os.pwrite(file, view, offset)
                view, offset = view[count:], offset + count
    except OSError:
        with contextlib.suppress(OSError):
            os.close(file)
        return None
    return file
