# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""The connection between door and engine, both ends in one process."""

from __future__ import annotations

import os
import stat
import threading
import time
from pathlib import Path

import msgspec
import numpy as np
import pytest
import torch
from support.engine import names_left
from support.wire import connected, receive

from tensorrt_llm.errors import EngineError
from tensorrt_llm.executor import ipc
from tensorrt_llm.executor.ipc import SHARED_BYTES, Listener, connect
from tensorrt_llm.executor.messages import Cancel, ProvideItem, Turn, Update
from tensorrt_llm.executor.result import GenerationUpdate

TENSORS = {
    "float": torch.arange(6.0).reshape(2, 3),
    "bfloat16": torch.linspace(-1, 1, 7).bfloat16(),
    "half": torch.ones(3, 1, 2, dtype=torch.float16),
    "bool": torch.tensor([True, False]),
    "int": torch.tensor([[2**40]]),
    "number": torch.tensor(5),
    "empty": torch.zeros(0, 3),
    "strided": torch.arange(20).reshape(4, 5)[:, ::2].T,
}


@pytest.mark.parametrize("size", [0, SHARED_BYTES // 4, 3_000_001])
def test_tensors_arrive_as_they_were_sent(size: int) -> None:
    given = {**TENSORS, "large": torch.randn(size), "plain": [1, {"a": "b"}, None, 0.5, b"x"]}
    with connected() as (door, engine):
        door.send(ProvideItem(3, 1, given))
        got = receive(engine)
        assert (got.request_id, got.index) == (3, 1)
        assert got.inputs.keys() == given.keys()
        for name, value in given.items():
            if not isinstance(value, torch.Tensor):
                assert got.inputs[name] == value
                continue
            assert got.inputs[name].dtype == value.dtype
            assert torch.equal(got.inputs[name], value), name
            assert got.inputs[name].data_ptr() % 8 == 0
            # The receiver may do with it what it likes.
            got.inputs[name].zero_()


def test_large_tensors_go_through_memory_files_and_small_ones_do_not(monkeypatch) -> None:
    files = []
    create = os.memfd_create
    monkeypatch.setattr(os, "memfd_create", lambda *a: files.append(create(*a)) or files[-1])
    with connected() as (door, engine):
        door.send(ProvideItem(1, 0, {"x": torch.zeros(SHARED_BYTES // 4 - 1)}))
        receive(engine)
        assert files == []
        door.send(ProvideItem(1, 0, {"x": torch.zeros(SHARED_BYTES // 4)}))
        receive(engine)
        assert len(files) == 1


def test_sending_to_an_end_that_is_not_there_does_not_wait() -> None:
    listener = Listener()
    door = listener.channel()
    assert not door.wait_for_peer(0)
    assert door.send(Cancel(1)) is False, "nobody is there yet"
    engine = connect(listener.folder, listener.theirs)
    assert door.wait_for_peer(60)
    assert door.send(Cancel(2)) is True
    assert receive(engine) == Cancel(2)
    engine.close()
    deadline = time.monotonic() + 60
    while door.wait_for_peer(0):
        assert time.monotonic() < deadline
    large = {"x": torch.zeros(SHARED_BYTES)}
    began = time.monotonic()
    for message in (Cancel(3), ProvideItem(3, 0, large)):
        assert door.send(message) is False, "nobody is there any more"
    assert time.monotonic() - began < 30
    door.close()
    listener.remove_folder()


@pytest.mark.parametrize("broken", ["_sockets", "_address"])
def test_a_listener_that_cannot_be_made_leaves_nothing(monkeypatch, broken: str) -> None:
    def refuse(*_: object) -> object:
        raise OSError(28, "no room")

    monkeypatch.setattr(ipc, broken, refuse)
    names, descriptors = names_left(), len(os.listdir("/proc/self/fd"))
    with pytest.raises(OSError, match="no room"):
        Listener()
    assert names_left() <= names
    assert len(os.listdir("/proc/self/fd")) == descriptors


def test_without_room_for_descriptors_frames_do_as_well(monkeypatch) -> None:
    def refuse(*_: object) -> int:
        raise BlockingIOError

    monkeypatch.setattr(ipc.socket, "send_fds", refuse)
    large = torch.randn(SHARED_BYTES)
    with connected() as (door, engine):
        door.send(ProvideItem(1, 0, {"x": large}))
        assert torch.equal(receive(engine).inputs["x"], large)


def test_many_large_messages_in_a_row_keep_their_order_and_leave_no_descriptors() -> None:
    """More than the socket pair holds, and nobody takes them meanwhile."""
    with connected() as (door, engine):
        door.send(Cancel(0))
        receive(engine)
        before = len(os.listdir("/proc/self/fd"))
        for number in range(400):
            door.send(ProvideItem(number, 0, {"x": torch.full((SHARED_BYTES // 4,), number)}))
        for number in range(400):
            got = receive(engine)
            assert got.request_id == number
            assert bool((got.inputs["x"] == number).all())
        del got
        assert len(os.listdir("/proc/self/fd")) == before


def test_updates_carry_logits_the_other_way() -> None:
    logits = torch.randn(1, 100_000)
    with connected() as (door, engine):
        engine.send(Turn(0, 0, [Update.of(1, GenerationUpdate((5,), logits=logits))], []))
        assert torch.equal(receive(door).updates[0].update().logits, logits)


def test_numpy_values_are_taken_and_strangers_are_refused() -> None:
    with connected() as (door, engine):
        door.send(ProvideItem(1, 0, {"array": np.arange(3), "number": np.float32(0.5)}))
        got = receive(engine).inputs
        assert (got["array"].tolist(), got["number"]) == ([0, 1, 2], 0.5)
        with pytest.raises(EngineError, match="a object cannot be sent"):
            door.send(ProvideItem(1, 0, {"x": object()}))
        door.send(Cancel(2))
        assert receive(engine) == Cancel(2)


def test_many_threads_may_send() -> None:
    with connected() as (door, engine):

        def send(first: int) -> None:
            for number in range(first, first + 100):
                size = SHARED_BYTES // 4 if number % 3 == 0 else 4
                door.send(ProvideItem(number, 0, {"x": torch.full((size,), number)}))

        threads = [threading.Thread(target=send, args=(100 * n,)) for n in range(6)]
        for thread in threads:
            thread.start()
        seen = []
        for _ in range(600):
            got = receive(engine)
            assert bool((got.inputs["x"] == got.request_id).all())
            seen.append(got.request_id)
        for thread in threads:
            thread.join()
        assert sorted(seen) == list(range(600))
        for n in range(6):
            own = [number for number in seen if number // 100 == n]
            assert own == sorted(own), "one sender's messages keep their order"


def test_only_this_user_can_enter_and_nothing_stays_once_connected() -> None:
    listener = Listener()
    folder = Path(listener.folder)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    door, engine = listener.channel(), connect(listener.folder, listener.theirs)
    engine.send(Turn(1, 0, [], []))
    receive(door)
    listener.remove_folder()
    assert not folder.exists()
    door.send(Cancel(1))
    assert receive(engine) == Cancel(1)
    engine.close()
    door.close()
    assert door.send(Cancel(2)) is False, "a closed channel takes nothing"
    door.close()


def test_a_long_name_of_the_temporary_folder_does_not_matter(tmp_path, monkeypatch) -> None:
    long = tmp_path / ("x" * 100)
    long.mkdir()
    monkeypatch.setattr(ipc.tempfile, "tempdir", str(long))
    with connected() as (door, engine):
        door.send(Cancel(1))
        assert receive(engine) == Cancel(1)
    assert list(long.iterdir()) == []


def test_a_listener_that_is_given_up_leaves_nothing() -> None:
    before = len(os.listdir("/proc/self/fd"))
    listener = Listener()
    listener.close()
    assert not os.path.exists(listener.folder)
    # ZeroMQ's threads close their descriptors on their own time.
    deadline = time.monotonic() + 60
    while len(os.listdir("/proc/self/fd")) > before and time.monotonic() < deadline:
        time.sleep(0.01)
    assert len(os.listdir("/proc/self/fd")) == before


def test_what_is_no_message_raises_and_the_next_one_is_read() -> None:
    with connected() as (door, engine):
        door._sender.send_multipart([b"\xc1nonsense", ipc._NO_BUFFERS])
        with pytest.raises(msgspec.MsgspecError):
            receive(engine)
        door.send(Cancel(5))
        assert receive(engine) == Cancel(5)
