# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Commands of other threads to the loop's, in the order in which they came."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import TypeAlias

Command: TypeAlias = Callable[[], None]


class Inbox:
    """Any thread puts, the loop's takes. What is put before it closes is there to be taken."""

    def __init__(self) -> None:
        self._commands: deque[tuple[Command, bool]] = deque()
        # Held for moments.
        self._changed = threading.Condition()
        self._closed = False
        self._num_submissions = 0

    @property
    def num_submissions(self) -> int:
        """Commands in it that hand in a request."""
        return self._num_submissions

    def put(self, command: Command, *, submits: bool = False) -> bool:
        """Hands a command in.

        Args:
            command: What to run.
            submits: Whether it hands in a request, and touches none that is there.

        Returns:
            False if nobody would take it any more.
        """
        with self._changed:
            if self._closed:
                return False
            self._commands.append((command, submits))
            self._num_submissions += submits
            self._changed.notify()
            return True

    def take(self, timeout: float = 0.0) -> Command | None:
        """The oldest command; None if there is none for that many seconds."""
        with self._changed:
            if not self._commands and timeout > 0:
                self._changed.wait(timeout)
            return self._pop() if self._commands else None

    def take_submission(self) -> Command | None:
        """The oldest command if it hands in a request, else None: none is overtaken."""
        with self._changed:
            return self._pop() if self._commands and self._commands[0][1] else None

    def close(self) -> None:
        """Lets nothing more in."""
        with self._changed:
            self._closed = True

    def _pop(self) -> Command:
        command, submits = self._commands.popleft()
        self._num_submissions -= submits
        return command
