# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Large bodies give what the standard parser gives, values and errors alike.

Each is asked of an endpoint that the framework calls, and of one that is called directly, which is
how the server's own endpoints look.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from pydantic import BaseModel
from pydantic_core import PydanticSerializationError, from_json
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from tensorrt_llm.serve import json_body
from tensorrt_llm.serve.body_limit import BodyLimit
from tensorrt_llm.serve.json_body import LARGE_BODY_BYTES, JsonRoute

PADDING = "x" * LARGE_BODY_BYTES


class Body(BaseModel):
    value: Any
    padding: str = ""


async def echo(body: Body) -> Any:
    return {"value": body.value}


async def answer(body: Body, http: Request) -> JSONResponse:
    return JSONResponse({"value": body.value})


async def untold(body: Body, http: Request):
    return {"value": body.value}


async def plain(body: Body, http: Request) -> dict[str, Any]:
    return {"value": body.value}


def waiting(body: Body, http: Request) -> Response:
    return JSONResponse({"value": body.value})


both_ways = pytest.mark.parametrize("endpoint", [echo, answer])


def serve(endpoint: Callable[..., Any], max_bytes: int | None = None) -> FastAPI:
    app = FastAPI()
    app.router.route_class = JsonRoute
    app.add_api_route("/", endpoint, methods=["POST"])
    if max_bytes is not None:
        app.add_middleware(BodyLimit, max_bytes=max_bytes)
    return app


def ask(app: FastAPI, content: bytes, *, chunks: int = 1) -> httpx.Response:
    async def pieces():
        size = -(-len(content) // chunks)
        for begin in range(0, len(content), size):
            yield content[begin : begin + size]

    async def run() -> httpx.Response:
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
            headers = {"content-type": "application/json"}
            return await client.post("/", content=pieces(), headers=headers)

    return asyncio.run(run())


@pytest.mark.parametrize(
    ("endpoint", "directly"),
    [(echo, False), (answer, True), (untold, False), (plain, False), (waiting, False)],
)
def test_only_what_answers_itself_is_called_directly(endpoint, directly, monkeypatch):
    validated = []
    validate = Body.model_validate
    monkeypatch.setattr(
        Body, "model_validate", lambda value: validated.append(1) or validate(value)
    )
    response = ask(serve(endpoint), b'{"value": 1}')
    assert (response.status_code, response.json()) == (200, {"value": 1})
    assert bool(validated) == directly, "the framework does not validate by this method"


@pytest.mark.parametrize(
    "value",
    ["text", "é😀\\u0000", -1, 2**70, 0.1, 1e300, True, None, [1, [2, {}]], {"a": {"b": []}}],
)
@pytest.mark.parametrize("chunks", [1, 3])
@both_ways
def test_values_are_those_of_the_standard_parser(endpoint, value, chunks, monkeypatch):
    parsed = []
    monkeypatch.setattr(
        json_body, "from_json", lambda *a, **k: parsed.append(1) or from_json(*a, **k)
    )
    for padding in ("", PADDING):
        content = json.dumps({"value": value, "padding": padding}).encode()
        assert ask(serve(endpoint), content, chunks=chunks).json() == {"value": value}
    assert parsed == [1], "only the large body takes the fast way"


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: text[:-1],
        lambda text: text + "}",
        lambda text: text.replace('"value"', "value"),
        lambda text: text.replace("1", "01"),
        lambda text: text.replace("{", "[", 1),
    ],
)
@both_ways
def test_errors_are_those_of_the_standard_parser(endpoint, damage):
    small, large = (
        ask(serve(endpoint), damage(json.dumps({"value": 1, "padding": padding})).encode())
        for padding in ("", PADDING)
    )
    assert small.status_code == large.status_code == 422
    assert small.json()["detail"][0]["type"] == large.json()["detail"][0]["type"]


@pytest.mark.parametrize("depth", [2000, LARGE_BODY_BYTES])
@both_ways
def test_a_body_nested_too_deeply_is_refused(endpoint, depth):
    response = ask(serve(endpoint), b"[" * depth)
    assert response.status_code == 400
    assert response.json() == {"detail": "There was an error parsing the body"}


@pytest.mark.parametrize(
    ("endpoint", "error"), [(echo, PydanticSerializationError), (answer, UnicodeEncodeError)]
)
def test_half_a_surrogate_pair_is_read_as_before(endpoint, error):
    for padding in ("", PADDING):
        content = b'{"value": "\\ud800", "padding": "%s"}' % padding.encode()
        with pytest.raises(error):
            ask(serve(endpoint), content)


@both_ways
def test_a_body_over_the_limit_keeps_its_own_refusal(endpoint):
    app = serve(endpoint, max_bytes=100)
    fits, exceeds = (ask(app, b'{"value": "%s"}' % (b"x" * size), chunks=4) for size in (80, 100))
    assert (fits.status_code, exceeds.status_code) == (200, 413)


@both_ways
def test_a_client_that_hangs_up_in_mid_body_is_no_fault_of_ours(endpoint):
    begun = {"type": "http.request", "body": b'{"value": ', "more_body": True}
    messages = iter([begun])
    sent: list[Any] = []

    async def receive() -> Any:
        return next(messages, {"type": "http.disconnect"})

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "method": "POST",
        "path": "/",
        "query_string": b"",
        "headers": [(b"content-type", b"application/json")],
    }
    asyncio.run(serve(endpoint)(scope, receive, send))
    assert sent[0]["status"] == 400
