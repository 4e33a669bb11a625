# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""A fault at every await of a request: the door answers, the next request is right, all comes back.

Nothing lists the awaits. Every task of a request is stepped by hand, and in one run after the other
the first, second, third ... time that any of them waits it gets an error instead, or is cancelled,
until a run passes without. Where an error came up is read from its traceback.
"""

from __future__ import annotations

import asyncio
import json
import traceback
from collections.abc import Callable, Coroutine
from pathlib import PurePath
from typing import Any, Literal

import pytest
from support.asgi_client import CHAT, Client, answer, chat_body, image, text
from support.engine import assert_idle, wait_until

from tensorrt_llm.executor.result import GenerationResult, GenerationUpdate
from tensorrt_llm.executor.wakeups import Wakeups

LIMIT_SECONDS = 20
NEW = 30
# Where a chat waits itself, at the least.
WAITS = {"prompt_preparer.py", "streaming.py", "result.py"}


class InjectedError(Exception):
    """What comes up instead of what was waited for."""


class Fault:
    """Strikes when tasks have waited so many times."""

    def __init__(self, nth: int, kind: Literal["error", "cancel"]) -> None:
        self._left = nth
        self._kind = kind
        self._error: BaseException | None = None
        self.struck = False

    def step(self, coroutine: Coroutine[Any, Any, Any], waited_for: Any) -> Any:
        """A task is about to wait; gives what it waits for in the end."""
        self._left -= 1
        if self._left:
            return waited_for
        self.struck = True
        if self._kind == "cancel":
            task = asyncio.current_task()
            assert task is not None
            task.cancel()
            return waited_for
        if asyncio.isfuture(waited_for):
            waited_for._asyncio_future_blocking = False  # nobody waits for it now
        self._error = InjectedError("as if by a fault")
        return coroutine.throw(self._error)

    def thrown(self, error: BaseException) -> None:
        """A task is told of an error by its loop: of the cancellation, if that was the fault."""
        if self.struck and self._error is None:
            self._error = error

    def site(self) -> str | None:
        """The file of ours that waited."""
        if self._error is None:
            return None
        files = [
            PurePath(frame.filename) for frame in traceback.extract_tb(self._error.__traceback__)
        ]
        ours = [file.name for file in files if "tensorrt_llm" in file.parts[-3:-1]]
        return ours[-1] if ours else None


class Stepped(Coroutine[Any, Any, Any]):
    """A coroutine whose every wait a fault is told of."""

    def __init__(self, inner: Any, fault: Fault) -> None:
        self._inner = inner
        self._fault = fault

    def send(self, value: Any) -> Any:
        return self._fault.step(self._inner, self._inner.send(value))

    def throw(self, *error: Any) -> Any:
        self._fault.thrown(error[0])
        return self._fault.step(self._inner, self._inner.throw(*error))

    def close(self) -> None:
        self._inner.close()

    def __await__(self) -> Any:
        raise AssertionError("tasks step it")

    def __getattr__(self, name: str) -> Any:  # libraries look whether it was started
        return getattr(self._inner, name)


class Exchange:
    """One chat over ASGI."""

    def __init__(self, client: Client, body: dict[str, Any]) -> None:
        self._app = client.app
        self._body = json.dumps(body).encode()
        self._given = False
        self._messages: list[dict[str, Any]] = []
        self.raised: BaseException | None = None

    async def _receive(self) -> dict[str, Any]:
        if self._given:
            await asyncio.Event().wait()
        self._given = True
        return {"type": "http.request", "body": self._body, "more_body": False}

    async def _send(self, message: Any) -> None:
        self._messages.append(message)

    async def run(self, fault: Fault) -> None:
        """Plays it to its end, whatever that is."""
        scope = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            **{"http_version": "1.1", "method": "POST", "scheme": "http", "root_path": ""},
            **{"path": CHAT, "raw_path": CHAT.encode(), "query_string": b""},
            "headers": [(b"content-type", b"application/json"), (b"host", b"test")],
            **{"server": ("test", 80), "client": ("test", 1)},
        }
        loop = asyncio.get_running_loop()

        async def play() -> None:
            await self._app(scope, self._receive, self._send)

        loop.set_task_factory(
            lambda loop, inner, **named: asyncio.Task(Stepped(inner, fault), loop=loop, **named)
        )
        task = asyncio.ensure_future(play())
        done, _ = await asyncio.wait({task}, timeout=LIMIT_SECONDS)
        assert done, "the door does not answer"
        self.raised = asyncio.CancelledError() if task.cancelled() else task.exception()

    def check(self, right: str) -> None:
        """It got the right answer, or was told that it did not, or nothing more was said."""
        starts = [one for one in self._messages if one["type"] == "http.response.start"]
        if self.raised is not None:
            assert isinstance(self.raised, (InjectedError, asyncio.CancelledError)), self.raised
        if not starts:
            assert self.raised is not None, "no answer at all"
            return
        body = b"".join(one.get("body", b"") for one in self._messages).decode()
        whole = not self._messages[-1].get("more_body", False)
        if starts[0]["status"] != 200:
            assert starts[0]["status"] in (499, 500)
        elif (b"content-type", b"application/json") in starts[0]["headers"]:
            assert json.loads(body)["choices"][0]["message"]["content"] == right
        else:
            events = [line.removeprefix("data: ") for line in body.split("\n\n") if line]
            parsed = [json.loads(event) for event in events if event != "[DONE]"]
            said = "".join(
                choice["delta"].get("content") or ""
                for event in parsed
                for choice in event.get("choices", ())
            )
            assert right.startswith(said)
            if whole and events[-1] == "[DONE]" and not any("error" in one for one in parsed):
                assert said == right


def tell_only_who_waits(monkeypatch: pytest.MonkeyPatch, over: Callable[[], bool]) -> None:
    """Has the engine tell nothing before somebody waits, so that in every run somebody does.

    On a busy machine it may otherwise be done before the door looks. ``over``: nobody will wait.
    """
    push = GenerationResult.push

    def patient(
        self: GenerationResult, update: GenerationUpdate, wakeups: Wakeups | None = None
    ) -> bool:
        wait_until(lambda: self._wakeup is not None or over(), "somebody waits")
        return push(self, update, wakeups)

    monkeypatch.setattr(GenerationResult, "push", patient)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("kind", ["error", "cancel"])
def test_a_fault_at_any_await_is_the_requests_own(
    client: Client,
    kind: Literal["error", "cancel"],
    stream: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    content = [text("What is"), image(91), text("this?")]
    right = answer(client.chat(content, max_tokens=NEW))
    sites: set[str] = set()
    executor = client.llm._executor
    fault = Fault(0, kind)
    tell_only_who_waits(monkeypatch, lambda: fault.struck)
    for nth in range(1, 200):
        fault = Fault(nth, kind)
        fields = {"max_tokens": NEW, "stream": stream, "cache_salt": f"{kind}{stream}{nth % 3}"}
        exchange = Exchange(client, chat_body(content, **fields))
        asyncio.run(exchange.run(fault))
        exchange.check(right)
        sites |= {fault.site()} - {None}
        assert answer(client.chat(content, max_tokens=NEW)) == right
        if not fault.struck:
            break
    assert not fault.struck, "there was no run without a fault"
    assert WAITS - sites == set()
    wait_until(lambda: not executor.snapshot()["numActiveRequests"], "all have left")
    assert_idle(executor)
