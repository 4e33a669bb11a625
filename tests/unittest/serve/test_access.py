# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Who may ask, and that what one key's requests leave behind is found by its tenant alone."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import pytest
from fastapi import Request
from starlette.responses import Response
from support.asgi_client import CHAT, COMPLETIONS, LEAD, Client, audio, cached, full_repeat, text

from tensorrt_llm.serve.access import check_administrator
from tensorrt_llm.serve.api_keys import ApiKeys
from tensorrt_llm.serve.guard import guarded
from tensorrt_llm.serve.openai_server import ServerConfig

KEYS = ["alpha team", "beta team", "gamma", "delta"]


@pytest.fixture(name="keyed", scope="module")
def keyed_client(client: Client) -> Client:
    config = ServerConfig(
        "tiny",
        api_keys=ApiKeys.parse(KEYS),
        allowed_origins=("https://chat.example",),
        max_header_bytes=2048,
    )
    return Client(client.llm, config)


def bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


def every_route(client: Client) -> list[tuple[str, str]]:
    paths = client.server.app.openapi()["paths"]
    return [(method.upper(), path) for path, methods in paths.items() for method in methods]


def test_every_route_but_health_wants_a_key(keyed: Client, client: Client) -> None:
    routes = [*every_route(keyed), ("GET", "/openapi.json"), ("GET", "/docs"), ("GET", "/nothing")]
    assert (len(routes)) > 8
    for method, path in routes:
        response = keyed.send(method, path)
        if path == "/health":
            assert response.status_code == 200
            continue
        assert response.status_code == 401, path
        assert response.json() | {"message": ""} == {
            "object": "error",
            "message": "",
            "type": "AuthenticationError",
            "param": None,
            "code": 401,
        }
        assert response.headers["www-authenticate"] == "Bearer"
    assert client.send("GET", "/version").status_code == 200, "no keys, no door"


@pytest.mark.parametrize(
    "header",
    [
        "alpha",
        "Bearer",
        "Bearer ",
        "Basic alpha",
        "Bearer alph",
        "Bearer alpha team",
        "Bearer \xe4",
    ],
)
def test_what_is_no_key_is_refused_and_not_repeated(keyed: Client, header: str) -> None:
    headers = [(b"Authorization", header.encode("latin-1"))]
    response = keyed.send("GET", "/version", headers=headers)
    assert response.status_code == 401
    assert "alph" not in response.text


@pytest.mark.parametrize("header", ["Bearer alpha", "bearer  alpha", "BEARER gamma"])
def test_a_key_opens(keyed: Client, header: str) -> None:
    response = keyed.send("GET", "/version", headers={"Authorization": header})
    assert response.status_code == 200


@pytest.mark.parametrize("route", [CHAT, COMPLETIONS])
@pytest.mark.parametrize("salt", [None, "s"])
def test_a_tenant_finds_its_own_blocks_and_no_others(
    keyed: Client, client: Client, route: str, salt: str | None
) -> None:
    words = f"{route} {salt}. {LEAD}"
    prompt: dict[str, Any] = {"prompt": words}
    if route == CHAT:
        prompt = {"messages": [{"role": "user", "content": [text(words), audio(71)]}]}

    def ask(asked: Client, **headers: str) -> httpx.Response:
        body = {**prompt, "max_tokens": 4, "temperature": 0, "cache_salt": salt}
        response = asked.send("POST", route, json=body, headers=headers)
        assert response.status_code == 200, response.text
        return response

    # Who has no key has no tenant, and begins like everything that was ever asked here.
    keyed.llm._executor.reset_reuse_state()
    first = ask(keyed, **bearer("alpha"))
    full = full_repeat(first)
    assert full > 64
    others = [ask(keyed, **bearer("gamma")), ask(keyed, **bearer("delta")), ask(client)]
    assert [cached(one) for one in (first, *others)] == [0] * 4
    same = [ask(keyed, **bearer(key)) for key in ("alpha", "beta", "gamma", "delta")]
    assert [cached(one) for one in same] == [full] * 4
    answers = {str(one.json()["choices"]) for one in (first, *others, *same)}
    assert len(answers) == 1


def test_media_are_remembered_within_a_tenant(keyed: Client) -> None:
    body = {"messages": [{"role": "user", "content": [audio(72), text("What is it?")]}]}

    def decoded(path: str, key: str) -> int:
        before = keyed.server.media_loader.decodes
        assert keyed.send("POST", path, json=body, headers=bearer(key)).status_code == 200
        return keyed.server.media_loader.decodes - before

    for path in ("/tokenize", "/v1/chat/completions/render"):
        assert decoded(path, "alpha") == (path == "/tokenize")
        assert decoded(path, "beta") == 0, "one tenant, whichever key"
        assert decoded(path, "gamma") == (path == "/tokenize")


def test_a_tenant_cannot_name_itself_into_another(keyed: Client, client: Client) -> None:
    def salt(asked: Client, cache_salt: str | None, **headers: str) -> str | None:
        body = {"messages": [{"role": "user", "content": "Hi."}], "cache_salt": cache_salt}
        path = "/v1/chat/completions/render"
        return asked.send("POST", path, json=body, headers=headers).json()["cache_salt"]

    team = salt(keyed, None, **bearer("alpha"))
    assert team == salt(keyed, None, **bearer("beta"))
    named = {salt(keyed, one, **bearer("gamma")) for one in (None, "team", team)}
    assert len(named) == 3 and team not in named
    assert salt(client, None) is None


def test_pages_of_allowed_origins_may_ask(keyed: Client, client: Client) -> None:
    asked = {"Origin": "https://chat.example", "Access-Control-Request-Method": "POST"}
    asked["Access-Control-Request-Headers"] = "authorization, content-type"
    allowed = keyed.send("OPTIONS", CHAT, headers=asked)
    assert allowed.status_code == 200
    assert allowed.headers["access-control-allow-origin"] == "https://chat.example"
    assert "authorization" in allowed.headers["access-control-allow-headers"].lower()
    refusal = keyed.send("GET", "/version", headers={"Origin": "https://chat.example"})
    assert refusal.status_code == 401
    assert refusal.headers["access-control-allow-origin"] == "https://chat.example"
    other = keyed.send("OPTIONS", CHAT, headers=asked | {"Origin": "https://evil.example"})
    assert other.status_code == 400 and "access-control-allow-origin" not in other.headers
    plain = client.send("GET", "/version", headers={"Origin": "https://chat.example"})
    assert "access-control-allow-origin" not in plain.headers


def test_long_headers_are_refused_with_both_numbers(keyed: Client) -> None:
    fits = keyed.send("GET", "/version", headers=bearer("alpha") | {"x": "a" * 1500})
    assert fits.status_code == 200
    for where in ({"headers": {"x": "a" * 2048}}, {"params": {"x": "a" * 2048}}):
        response = keyed.send("GET", "/version", **where)
        assert response.status_code == 431
        assert "(2048 bytes)" in response.json()["message"]
        assert response.json()["type"] == "RequestTooLargeError"


LOCAL, REMOTE = "127.0.0.1", "192.0.2.7"


@pytest.mark.parametrize(
    ("peer", "host", "headers", "allowed"),
    [
        (LOCAL, "localhost:8000", {}, True),
        ("::1", "[::1]:8000", {}, True),
        ("::ffff:127.0.0.1", "127.0.0.1", {}, True),
        (LOCAL, "localhost", {"Origin": "http://localhost:8000"}, True),
        (REMOTE, "localhost:8000", {}, False),
        ("::ffff:192.0.2.7", "localhost", {}, False),
        (REMOTE, "localhost", {"X-Forwarded-For": LOCAL, "Forwarded": f"for={LOCAL}"}, False),
        (LOCAL, "rebound.example:8000", {}, False),
        (LOCAL, "localhost", {"Origin": "https://evil.example"}, False),
        (LOCAL, "localhost", {"Origin": "null"}, False),
    ],
)
def test_administrators_ask_from_this_machine_or_with_a_key(
    keyed: Client, client: Client, peer: str, host: str, headers: dict, allowed: bool
) -> None:
    @guarded
    async def administer(http: Request) -> Response:
        check_administrator(http)
        return Response("done")

    def ask(asked: Client, **more: str) -> httpx.Response:
        if not any(getattr(route, "path", "") == "/administer" for route in asked.app.routes):
            asked.app.add_api_route("/administer", administer, include_in_schema=False)

        async def run() -> httpx.Response:
            transport = httpx.ASGITransport(asked.app, client=(peer, 1234))
            async with httpx.AsyncClient(transport=transport, base_url=f"http://{host}") as http:
                return await http.get("/administer", headers=headers | more)

        return asyncio.run(run())

    response = ask(client)
    assert response.status_code == (200 if allowed else 403), response.text
    if not allowed:
        assert response.json()["type"] == "PermissionDeniedError"
        assert "--api_key" in response.json()["message"]
    assert ask(keyed).status_code == 401
    assert ask(keyed, **bearer("gamma")).status_code == 200
