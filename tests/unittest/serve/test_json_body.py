# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Large bodies give what the standard parser gives, values and errors alike."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from pydantic import BaseModel
from pydantic_core import PydanticSerializationError, from_json

from tensorrt_llm.serve import json_body
from tensorrt_llm.serve.json_body import LARGE_BODY_BYTES, JsonRoute

PADDING = "x" * LARGE_BODY_BYTES


class Body(BaseModel):
    value: Any
    padding: str = ""


async def echo(body: Body) -> Any:
    return {"value": body.value}


def ask(content: bytes, *, chunks: int = 1) -> httpx.Response:
    app = FastAPI()
    app.router.route_class = JsonRoute
    app.add_api_route("/", echo, methods=["POST"])

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
    "value",
    ["text", "é😀\\u0000", -1, 2**70, 0.1, 1e300, True, None, [1, [2, {}]], {"a": {"b": []}}],
)
@pytest.mark.parametrize("chunks", [1, 3])
def test_values_are_those_of_the_standard_parser(value, chunks, monkeypatch):
    parsed = []
    monkeypatch.setattr(
        json_body, "from_json", lambda *a, **k: parsed.append(1) or from_json(*a, **k)
    )
    for padding in ("", PADDING):
        content = json.dumps({"value": value, "padding": padding}).encode()
        assert ask(content, chunks=chunks).json() == {"value": value}
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
def test_errors_are_those_of_the_standard_parser(damage):
    small, large = (
        ask(damage(json.dumps({"value": 1, "padding": padding})).encode())
        for padding in ("", PADDING)
    )
    assert small.status_code == large.status_code == 422
    assert small.json()["detail"][0]["type"] == large.json()["detail"][0]["type"]


def test_half_a_surrogate_pair_is_read_as_before():
    for padding in ("", PADDING):
        content = b'{"value": "\\ud800", "padding": "%s"}' % padding.encode()
        with pytest.raises(PydanticSerializationError):
            ask(content)
