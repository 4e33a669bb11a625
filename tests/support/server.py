# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""A real ``trtllm-serve`` process, and a small client that keeps what came over the wire."""

from __future__ import annotations

import contextlib
import json
import os
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import psutil

from examples.demo_server import LocalServer

# A request that takes longer hangs.
TIMEOUT_SECONDS = 60
# The variable by which a server's processes are told from others.
_MARK = "TRTLLM_TESTS_SERVER"


@dataclass(frozen=True)
class Reply:
    """One answer, streamed or not.

    Attributes:
        status: HTTP status.
        headers: HTTP headers.
        text: The generated text.
        usage: The usage; None if there was none.
        error: The body, or the event, of an error; None if there was none.
        events: The events of a stream.
    """

    status: int
    headers: httpx.Headers
    text: str = ""
    usage: dict[str, Any] | None = None
    error: dict[str, Any] | None = None
    events: tuple[dict[str, Any], ...] = ()

    @property
    def cached(self) -> int:
        """Cached tokens."""
        assert self.usage is not None, self
        return self.usage["prompt_tokens_details"]["cached_tokens"]


class Server(LocalServer):
    """A server with the calls that tests make. Every call has a time limit."""

    def __init__(self, arguments: Sequence[str], log: Path) -> None:
        mark = uuid.uuid4().hex
        super().__init__(arguments, log, environment={_MARK: mark})
        self._mark = f"{_MARK}={mark}".encode()
        self._client = httpx.Client(trust_env=False, timeout=TIMEOUT_SECONDS)

    def __exit__(self, *error: object) -> None:
        self._client.close()
        super().__exit__(*error)

    def chat(self, content: Any, **fields: Any) -> Reply:
        """Asks for a greedy chat answer; ``content`` is a user's, or a list of whole messages."""
        whole = isinstance(content, list) and any("role" in entry for entry in content)
        messages = content if whole else [{"role": "user", "content": content}]
        return self.post({"messages": messages, "max_tokens": 12, "temperature": 0, **fields})

    def post(self, body: dict[str, Any], route: str = "/v1/chat/completions") -> Reply:
        """Posts a body; with ``stream`` set the answer is streamed."""
        if not body.get("stream"):
            return _whole(self._client.post(self.url + route, json=body))
        body.setdefault("stream_options", {"include_usage": True})
        with self._client.stream("POST", self.url + route, json=body) as response:
            if response.status_code != 200:
                response.read()
                return _whole(response)
            return _streamed(response)

    @contextlib.contextmanager
    def open_stream(self, body: dict[str, Any]) -> Iterator[Iterator[dict[str, Any]]]:
        """The events of a streamed chat; leaving the block early hangs up."""
        body = {"temperature": 0, **body, "stream": True}
        url = f"{self.url}/v1/chat/completions"
        # A client of its own, for a connection that nothing else waits on.
        with (
            httpx.Client(trust_env=False, timeout=TIMEOUT_SECONDS) as client,
            client.stream("POST", url, json=body) as response,
        ):
            assert response.status_code == 200, response.read()
            yield _events(response)

    def metrics(self) -> list[dict[str, Any]]:
        """Statistics of the iterations since the last call."""
        response = self._client.get(f"{self.url}/metrics")
        assert response.status_code == 200
        return response.json()

    def healthy(self) -> bool:
        """Whether ``/health`` says so."""
        return self._client.get(f"{self.url}/health").status_code == 200

    def processes(self) -> list[int]:
        """Ids of the server's processes that have not ended: the door's and those it started.

        They have sessions of their own, and one whose parent has ended belongs to nobody. All
        inherit a mark but decoders, which the door starts with few variables.
        """
        marked = {
            pid
            for pid in map(int, filter(str.isdigit, os.listdir("/proc")))
            if self._mark in _environment_of(pid)
        }
        return sorted(marked | {child for pid in marked for child in _children_of(pid)})


def _environment_of(pid: int) -> bytes:
    """Empty for a process that has ended, waited for or not."""
    try:
        return Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return b""


def _children_of(pid: int) -> list[int]:
    try:
        children = psutil.Process(pid).children()
        return [child.pid for child in children if child.status() != psutil.STATUS_ZOMBIE]
    except psutil.NoSuchProcess:
        return []


def _whole(response: httpx.Response) -> Reply:
    body = response.json()
    if response.status_code != 200:
        return Reply(response.status_code, response.headers, error=body)
    choice = body["choices"][0]
    text = choice["message"]["content"] if "message" in choice else choice["text"]
    return Reply(200, response.headers, text, body["usage"])


def _streamed(response: httpx.Response) -> Reply:
    text, usage = "", None
    events = tuple(_events(response))
    for event in events:
        if "error" in event:
            return Reply(200, response.headers, text, usage, event["error"], events)
        usage = event.get("usage") or usage
        for choice in event["choices"]:
            text += choice["delta"].get("content", "") if "delta" in choice else choice["text"]
    return Reply(200, response.headers, text, usage, None, events)


def _events(response: httpx.Response) -> Iterator[dict[str, Any]]:
    for line in response.iter_lines():
        if line == "data: [DONE]":
            return
        if line.startswith("data: "):
            yield json.loads(line.removeprefix("data: "))
    raise AssertionError("the stream ended without [DONE]")
