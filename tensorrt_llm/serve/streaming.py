# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Waits for answers while the client is still there, and sends them whole or as events.

Whatever ends the exchange (the answer, an error, the client), the request leaves the engine.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from functools import partial
from typing import Any, TypeVar

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from tensorrt_llm.executor.result import GenerationResult
from tensorrt_llm.serve.errors import error_event
from tensorrt_llm.serve.postprocess import AnswerWriter, Chunk

_Value = TypeVar("_Value")

# Work that is done by then, as that for a repeat is, costs less than to watch the client would.
_UNWATCHED_S = 0.02


class ClientDisconnectedError(Exception):
    """The client went away before it had its answer."""


async def while_connected(http: Request, work: Coroutine[Any, Any, _Value]) -> _Value:
    """Runs a coroutine, and cancels it when the client goes away.

    Raises:
        ClientDisconnectedError: If the client went away first.
    """
    futures: list[asyncio.Future[Any]] = [task := asyncio.ensure_future(work)]
    try:
        await asyncio.wait(futures, timeout=_UNWATCHED_S)
        if not task.done():
            futures.append(asyncio.ensure_future(_disconnected(http)))
            await asyncio.wait(futures, return_when=asyncio.FIRST_COMPLETED)
            if not task.done():
                raise ClientDisconnectedError
        return task.result()
    finally:
        unfinished = [future for future in futures if not future.done()]
        for future in unfinished:
            future.cancel()
        if unfinished:
            await asyncio.gather(*unfinished, return_exceptions=True)


async def whole_answer(
    http: Request, results: Sequence[GenerationResult], writer: AnswerWriter
) -> Response:
    """Waits for complete results and answers with one JSON body."""
    try:
        await while_connected(http, _all(results))
    finally:
        for result in results:
            result.abort()
    if results[0].request.sampling_params.prompt_logprobs is None:
        text = _json(writer, results)
    else:
        # Of a long prompt it takes a second; other answers go on.
        text = await asyncio.to_thread(_json, writer, results)
    return Response(text, media_type="application/json")


def _json(writer: AnswerWriter, results: Sequence[GenerationResult]) -> str:
    return writer.response(results).to_json()


async def streamed_answer(
    http: Request, result: GenerationResult, writer: AnswerWriter
) -> Response:
    """Waits for the first update, so that early failures get their status, then streams."""
    return await streamed_events(http, result, partial(_events, result, writer=writer))


async def streamed_events(
    http: Request,
    result: GenerationResult,
    events: Callable[[AsyncIterator[GenerationResult]], AsyncIterator[str]],
) -> Response:
    """As ``streamed_answer``, with the events that are made of the updates after the first."""
    updates = aiter(result)
    try:
        await while_connected(http, _first(updates))
    except BaseException:
        result.abort()
        raise
    return EventStream(events(updates), result)


class EventStream(StreamingResponse):
    """Server-sent events of one result, which is given up when the sending ends early."""

    media_type = "text/event-stream"

    def __init__(self, events: AsyncIterator[str], result: GenerationResult) -> None:
        # Proxies must hand on each event as it comes.
        super().__init__(events, headers={"Cache-Control": "no-cache", "X-Accel-Buffering": "no"})
        self._result = result

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Sends the events."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._result.abort()


async def _events(
    result: GenerationResult, updates: AsyncIterator[GenerationResult], writer: AnswerWriter
) -> AsyncIterator[str]:
    try:
        for chunk in (*writer.opening(result), *writer.update(result)):
            yield _event(chunk)
        async for _ in updates:
            for chunk in writer.update(result):
                yield _event(chunk)
        answer = writer.closing(result)
        if answer is not None:
            yield _event(answer)
    except Exception as error:
        # The status is sent already, so the error goes where the answer would have gone on.
        yield f"data: {error_event(error)}\n\n"
    yield "data: [DONE]\n\n"


def _event(answer: Chunk) -> str:
    return f"data: {answer.to_json()}\n\n"


async def _disconnected(http: Request) -> None:
    while (await http.receive())["type"] != "http.disconnect":
        pass


async def _all(results: Sequence[GenerationResult]) -> None:
    if len(results) == 1:
        await results[0].aresult()
    else:
        await asyncio.gather(*(result.aresult() for result in results))


async def _first(updates: AsyncIterator[GenerationResult]) -> None:
    await anext(updates)
