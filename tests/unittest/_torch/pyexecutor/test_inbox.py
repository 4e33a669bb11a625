# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Commands come out in the order in which they went in, and none is lost."""

from __future__ import annotations

import threading
from functools import partial

from tensorrt_llm._torch.pyexecutor.inbox import Inbox


def test_commands_keep_their_order_and_submissions_are_counted() -> None:
    inbox, ran = Inbox(), []
    for number in range(6):
        assert inbox.put(partial(ran.append, number), submits=number % 2 == 0)
    assert inbox.num_submissions == 3
    while (command := inbox.take()) is not None:
        command()
    assert (ran, inbox.num_submissions) == (list(range(6)), 0)


def test_a_submission_overtakes_nothing() -> None:
    inbox, ran = Inbox(), []
    for number, submits in enumerate((True, False, True)):
        inbox.put(partial(ran.append, number), submits=submits)
    while (command := inbox.take_submission()) is not None:
        command()
    assert (ran, inbox.num_submissions) == ([0], 1)


def test_what_is_put_before_it_closes_is_there_and_nothing_after() -> None:
    inbox, ran = Inbox(), []
    assert inbox.put(partial(ran.append, 1))
    inbox.close()
    assert not inbox.put(partial(ran.append, 2), submits=True)
    command = inbox.take()
    assert command is not None and inbox.num_submissions == 0
    assert inbox.take() is inbox.take_submission() is None


def test_who_waits_is_woken() -> None:
    inbox, found = Inbox(), []
    thread = threading.Thread(target=lambda: found.append(inbox.take(60)))
    thread.start()
    command = partial(int)
    inbox.put(command)
    thread.join(60)
    assert found == [command]
