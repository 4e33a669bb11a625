# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Bodies over the limit are refused, whatever they declare."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import httpx
import pytest
from fastapi import FastAPI, Request
from starlette.exceptions import HTTPException

from tensorrt_llm.serve.body_limit import BodyLimit
from tensorrt_llm.serve.errors import error_response

LIMIT = 100


@pytest.fixture(name="seen")
def seen_bodies() -> list[bytes]:
    return []


@pytest.fixture(name="app")
def echo_app(seen: list[bytes]) -> FastAPI:
    app = FastAPI()
    app.add_middleware(BodyLimit, max_bytes=LIMIT)

    async def answer_error(http: Request, error: Exception):
        return error_response(error)

    app.add_exception_handler(HTTPException, answer_error)

    @app.post("/")
    async def echo(http: Request) -> int:
        body = await http.body()
        seen.append(body)
        return len(body)

    return app


def post(app: FastAPI, content, headers=None) -> httpx.Response:
    async def send() -> httpx.Response:
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
            return await client.post("/", content=content, headers=headers)

    return asyncio.run(send())


async def stream(total: int) -> AsyncIterator[bytes]:
    for _ in range(total // 10):
        yield b"x" * 10


@pytest.mark.parametrize("size", [0, LIMIT])
def test_up_to_the_limit(app: FastAPI, size: int) -> None:
    response = post(app, b"x" * size)
    assert (response.status_code, response.json()) == (200, size)


def test_a_declared_length_over_the_limit(app: FastAPI, seen: list[bytes]) -> None:
    response = post(app, b"x" * (LIMIT + 1))
    assert response.status_code == 413
    assert "101 bytes exceeds max_request_bytes (100 bytes)" in response.json()["message"]
    assert seen == []


def test_of_a_body_declared_too_long_nothing_is_read(app: FastAPI) -> None:
    headers = [(b"content-length", str(LIMIT + 1).encode())]
    scope = {"type": "http", "method": "POST", "path": "/", "headers": headers}
    sent = []

    async def receive() -> dict:
        raise AssertionError("the body was read")

    async def send(message: dict) -> None:
        sent.append(message)

    asyncio.run(app(scope, receive, send))
    assert sent[0]["status"] == 413


def test_no_declared_length(app: FastAPI, seen: list[bytes]) -> None:
    assert post(app, stream(LIMIT)).json() == LIMIT
    response = post(app, stream(LIMIT + 10))
    assert response.status_code == 413
    assert response.json()["code"] == 413
    assert len(seen) == 1


def test_an_untruthful_length(app: FastAPI, seen: list[bytes]) -> None:
    response = post(app, stream(LIMIT + 10), {"Content-Length": "10"})
    assert response.status_code == 413
    assert seen == []
