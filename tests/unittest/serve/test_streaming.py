# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Whatever ends an exchange, the request leaves the engine, and the client hears how it ended."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from starlette.requests import Request

from tensorrt_llm.errors import EngineError
from tensorrt_llm.executor.request import GenerationRequest
from tensorrt_llm.executor.result import GenerationResult, GenerationUpdate
from tensorrt_llm.inputs.data import ProcessedPrompt
from tensorrt_llm.sampling_params import SamplingParams
from tensorrt_llm.serve.postprocess import CompletionWriter
from tensorrt_llm.serve.streaming import (
    ClientDisconnectedError,
    streamed_answer,
    while_connected,
    whole_answer,
)

SCOPE: dict[str, Any] = {
    "type": "http",
    "method": "POST",
    "path": "/",
    "headers": [],
    "asgi": {"spec_version": "2.3"},
}


class Exchange:
    """One HTTP exchange whose client the test plays, and a result whose engine it plays."""

    def __init__(self) -> None:
        self.cancelled: list[int] = []
        prompt = ProcessedPrompt(np.zeros(3, np.int32))
        self.result = GenerationResult(
            7, GenerationRequest(prompt, SamplingParams()), None, self.cancelled.append
        )
        self.gone = asyncio.Event()
        self.sent: list[dict] = []
        self.http = Request(SCOPE, self.receive)
        self.writer = CompletionWriter("m", None, include_usage=True, continuous_usage=False)

    async def receive(self) -> dict:
        await self.gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: dict) -> None:
        self.sent.append(message)

    async def stream(self) -> None:
        response = await streamed_answer(self.http, self.result, self.writer)
        await response(SCOPE, self.receive, self.send)

    def push(self, *tokens: int, **fields: Any) -> None:
        self.result.push(GenerationUpdate(tokens, **fields))

    @property
    def events(self) -> list[Any]:
        text = b"".join(message.get("body", b"") for message in self.sent).decode()
        lines = [line.removeprefix("data: ") for line in text.split("\n\n") if line]
        return [line if line == "[DONE]" else json.loads(line) for line in lines]


async def until(condition: Callable[[], object]) -> None:
    for _ in range(10_000):
        if condition():
            return
        await asyncio.sleep(0.001)
    raise TimeoutError("the condition never held")


def test_a_complete_stream_ends_with_usage_and_done_and_cancels_nothing() -> None:
    async def play() -> None:
        exchange = Exchange()
        exchange.push(1)
        exchange.push(2, finish_reason="stop")
        await exchange.stream()
        assert exchange.events[-1] == "[DONE]"
        assert exchange.events[-2]["usage"]["completion_tokens"] == 2
        assert exchange.events[-3]["choices"][0]["finish_reason"] == "stop"
        assert exchange.cancelled == []

    asyncio.run(play())


def test_an_error_before_the_first_token_is_raised_before_any_byte() -> None:
    async def play() -> None:
        exchange = Exchange()
        exchange.push(error=EngineError("broken"))
        with pytest.raises(EngineError, match="broken"):
            await exchange.stream()
        assert exchange.sent == []

    asyncio.run(play())


def test_an_error_in_the_middle_is_an_event_and_then_done() -> None:
    async def play() -> None:
        exchange = Exchange()
        task = asyncio.create_task(exchange.stream())
        exchange.push(1, finish_reason=None)
        await until(lambda: exchange.sent)
        exchange.push(error=EngineError("broken"))
        await task
        assert exchange.events[-1] == "[DONE]"
        assert exchange.events[-2]["error"]["message"] == "broken"

    asyncio.run(play())


@pytest.mark.parametrize("tokens_before", [0, 1])
def test_a_client_that_leaves_a_stream_frees_the_request(tokens_before: int) -> None:
    async def play() -> None:
        exchange = Exchange()
        task = asyncio.create_task(exchange.stream())
        for token in range(tokens_before):
            exchange.push(token)
            await until(lambda: exchange.sent)
        await asyncio.sleep(0.01)
        assert exchange.cancelled == []
        exchange.gone.set()
        outcome = await asyncio.gather(task, return_exceptions=True)
        assert exchange.cancelled == [7]
        expected = None if tokens_before else ClientDisconnectedError
        assert outcome == [None] if expected is None else isinstance(outcome[0], expected)

    asyncio.run(play())


def test_a_client_that_leaves_before_the_whole_answer_frees_every_request() -> None:
    async def play() -> None:
        first, second = Exchange(), Exchange()
        first.push(1, finish_reason="stop")
        waiting = whole_answer(first.http, [first.result, second.result], first.writer)
        task = asyncio.create_task(waiting)
        await asyncio.sleep(0.01)
        first.gone.set()
        with pytest.raises(ClientDisconnectedError):
            await task
        assert (first.cancelled, second.cancelled) == ([], [7])

    asyncio.run(play())


def test_one_failed_prompt_gives_the_others_up() -> None:
    async def play() -> None:
        first, second = Exchange(), Exchange()
        first.push(error=EngineError("broken"))
        with pytest.raises(EngineError, match="broken"):
            await whole_answer(first.http, [first.result, second.result], first.writer)
        assert second.cancelled == [7]

    asyncio.run(play())


def test_work_is_cancelled_when_the_client_leaves_and_not_before() -> None:
    async def play() -> None:
        exchange = Exchange()
        stopped = asyncio.Event()

        async def work() -> str:
            try:
                await asyncio.sleep(60)
            finally:
                stopped.set()
            return "never"

        async def quick() -> str:
            return "done"

        assert await while_connected(exchange.http, quick()) == "done"
        task = asyncio.create_task(while_connected(exchange.http, work()))
        await asyncio.sleep(0.01)
        assert not stopped.is_set()
        exchange.gone.set()
        with pytest.raises(ClientDisconnectedError):
            await task
        assert stopped.is_set()

    asyncio.run(play())
