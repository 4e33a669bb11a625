# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Explanations are compared with prompts laid side by side, and with what then happens."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import httpx
import numpy as np
import pytest
from support.asgi_client import BLOCK, LEAD, Client, audio, cached, chat_body, image, text

from tensorrt_llm.executor.executor import MatchReport
from tensorrt_llm.inputs.data import ProcessedPrompt
from tensorrt_llm.serve.api_keys import ApiKeys
from tensorrt_llm.serve.explanation import Pool, explain
from tensorrt_llm.serve.openai_server import ServerConfig

EXPLAIN, RENDER = "/kv_cache/explain", "/v1/chat/completions/render"


def asked(client: Client, path: str, body: dict, **options: Any) -> dict:
    response = client.send("POST", path, json=body, **options)
    assert response.status_code == 200, response.text
    return response.json()


def token_keys(rendered: dict) -> list[tuple]:
    """What decides the KV of each token; knows no blocks."""
    keys: list[tuple] = [(token,) for token in rendered["token_ids"]]
    features = rendered["features"] or {"mm_hashes": {}, "mm_runs": {}}
    for kind, hashes in features["mm_hashes"].items():
        for name, runs in zip(hashes, features["mm_runs"][kind], strict=True):
            row = 0
            for run in runs:
                for place in range(run["offset"], run["offset"] + run["length"]):
                    keys[place] = (*keys[place], name, row)
                    row += 1
    return keys


def common(one: list[tuple], other: list[tuple]) -> int:
    pairs = zip(one, other, strict=False)
    return next((i for i, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))


def difference(wanted: tuple, found: tuple) -> str:
    if wanted[0] != found[0]:
        return "tokens"
    if wanted[1:2] != found[1:2]:
        return "media_identity"
    return "media_offset"


def check(found: dict, keys: list[tuple], scope: tuple, written: dict[tuple, list]) -> str:
    earlier = written.get(scope, [])
    shared = max((common(keys[:-1], other) for other in earlier), default=0)
    assert found["cached_tokens"] == shared
    assert found["prompt_tokens"] == len(keys)
    reason, position = found["reason"], found["position"]
    nearest = [other for other in earlier if common(keys, other) >= shared]
    if reason == "complete":
        assert shared == len(keys) - 1
    elif reason == "adapter_mode":
        assert position == 0
        modes = [mode for salt, mode in written if salt == scope[0] and mode != scope[1]]
        more = [other for mode in modes for other in written[scope[0], mode]]
        assert max(common(keys, other) for other in more) >= (found["block"] + 1) * BLOCK
    elif reason == "unknown":
        assert position == shared
        # Nothing goes on from here, or nothing that begins with the same token.
        assert shared % BLOCK == 0 or any(len(other) == shared for other in nearest)
    else:
        assert position == shared
        told = {difference(keys[shared], other[shared]) for other in nearest if len(other) > shared}
        assert reason in told
    return reason


def test_explanations_are_true(client: Client) -> None:
    choose = random.Random(11)
    written: dict[tuple, list] = {}
    reasons: dict[str, int] = {}
    parts = [text(LEAD), text("Once more. "), *map(image, (81, 82)), audio(83), text("Why? " * 9)]
    for step in range(50):
        salt = choose.choice(["one tenant", "another"])
        content = [choose.choice(parts) for _ in range(choose.randint(1, 3))]
        body = chat_body([*content, text("Go.")], cache_salt=salt, max_tokens=1)
        rendered = asked(client, RENDER, body)
        keys, scope = token_keys(rendered), (salt, rendered["adapter_mode"])
        found = asked(client, EXPLAIN, body)
        reason = check(found, keys, scope, written)
        reasons[reason] = reasons.get(reason, 0) + 1
        segments = found["segments"]
        places = [segment["offset"] for segment in segments]
        ends = [segment["offset"] + segment["length"] for segment in segments]
        assert places == [0, *ends[:-1]]
        assert ends[-1] == len(keys)
        assert sum(segment["cached"] for segment in segments) == found["cached_tokens"]
        if choose.random() < 0.6:
            assert (
                cached(client.send("POST", "/v1/chat/completions", json=body))
                == (found["cached_tokens"])
            ), f"step {step}"
            written.setdefault(scope, []).append(keys)
    assert {"complete", "tokens", "media_identity", "unknown"} <= set(reasons), reasons


def test_the_item_that_differs_is_named(client: Client) -> None:
    def body(last: int) -> dict:
        content = [text(LEAD), image(91), image(last), text("Which one is older?")]
        return chat_body(content, cache_salt="named")

    client.send("POST", "/v1/chat/completions", json=body(92))
    found = asked(client, EXPLAIN, body(93))
    first, second = (segment for segment in found["segments"] if "item" in segment)
    assert found["reason"] == "media_identity"
    assert found["position"] == second["offset"] == found["cached_tokens"]
    begin = found["block"] * BLOCK
    assert f"block {found['block']}, tokens {begin}-{begin + BLOCK - 1}: " in found["message"]
    assert "image 2 (messages[0].content[2]) differs" in found["message"]
    assert "mm_processor_kwargs" in found["advice"][0]
    assert (first["cached"], second["cached"]) == (first["length"], 0)
    hashes = asked(client, RENDER, body(93))["features"]["mm_hashes"]["image"]
    assert [first["identity"], second["identity"]] == hashes
    runs = asked(client, RENDER, body(93))["features"]["mm_runs"]["image"]
    assert second["rows"] == sum(run["length"] for run in runs[1])


def test_text_that_differs_before_media_is_told_with_advice(client: Client) -> None:
    def body(name: str) -> dict:
        return chat_body([text(f"I am {name}. {LEAD}"), image(94)], cache_salt="advice")

    client.send("POST", "/v1/chat/completions", json=body("Ann"))
    found = asked(client, EXPLAIN, body("Bob"))
    assert found["reason"] == "tokens"
    assert "put what requests share" in found["advice"][0]
    assert "image 1" in found["advice"][1]
    assert "Ann" not in str(found), "what was cached is not shown"


def test_other_salts_are_told_of_only_where_asked_for(client: Client) -> None:
    body = chat_body([text(LEAD), image(95)], cache_salt="first tenant")
    before = asked(client, EXPLAIN, body | {"cache_salt": "second tenant"})
    client.send("POST", "/v1/chat/completions", json=body)
    for path, reason in ((EXPLAIN, "unknown"), (f"{EXPLAIN}?other_salts=1", "salt")):
        found = asked(client, path, body | {"cache_salt": "second tenant"})
        assert (found["reason"], found["cached_tokens"]) == (reason, 0)
        if reason == "unknown":
            assert found == before, "it says the same as before the other tenant came"
    found = asked(client, EXPLAIN, body)
    assert (found["reason"], found["cached_tokens"]) == ("complete", found["prompt_tokens"] - 1)


def test_a_tenant_sees_what_its_own_requests_left(client: Client) -> None:
    keys = ApiKeys.parse(["sk-one", "sk-two"])
    keyed = Client(client.llm, ServerConfig("tiny", api_keys=keys))
    body = chat_body([text(LEAD), image(98)], cache_salt="shared word")

    def ask(key: str, path: str) -> httpx.Response:
        headers = {"Authorization": f"Bearer {key}"}
        return keyed.send("POST", path, json=body, headers=headers)

    before = ask("sk-two", EXPLAIN).json()
    full = ask("sk-one", "/v1/chat/completions").json()["usage"]["prompt_tokens"] - 1
    assert ask("sk-one", EXPLAIN).json()["cached_tokens"] == full
    assert ask("sk-two", EXPLAIN).json() == before
    assert before["cached_tokens"] == 0
    assert ask("sk-three", EXPLAIN).status_code == 401


def test_what_tells_of_other_tenants_stays_on_the_machine(client: Client) -> None:
    keyed = Client(client.llm, ServerConfig("tiny", api_keys=ApiKeys.parse(["sk-one"])))

    async def ask(host: str, path: str) -> int:
        transport = httpx.ASGITransport(keyed.app, client=(host, 5))
        headers = {"Authorization": "Bearer sk-one"}
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as http:
            return (await http.post(path, json=chat_body("Hi."), headers=headers)).status_code

    # Events are off in this server: 400 is past the gate.
    for path, local in ((f"{EXPLAIN}?other_salts=1", 200), ("/kv_cache_events", 400)):
        assert asyncio.run(ask("192.0.2.7", path)) == 403
        assert asyncio.run(ask("127.0.0.1", path)) == local
    assert asyncio.run(ask("192.0.2.7", EXPLAIN)) == 200


@pytest.mark.parametrize(
    ("reason", "evicted_ms", "message", "advice"),
    [
        ("evicted", 40_000, "was given up 40 s ago to make room", "The pool holds 4096 tokens"),
        ("evicted", 900, "was given up just now to make room", "host_cache_size"),
        ("evicted", 600_000, "was given up 10 min ago to make room", "max_tokens"),
        ("evicted", 400_000_000, "was given up 4 days ago to make room", "max_tokens"),
        ("salt", None, "requests with another cache_salt have cached it", "the same cache_salt"),
        ("media_identity", None, "other content or options", "mm_processor_kwargs"),
        ("tokens", None, "differs from what is cached", "put what requests share"),
        ("adapter_mode", None, "other kinds of media", "the same kinds of media"),
        ("not_committed", None, "a running request is computing it", "waits for it"),
    ],
)
def test_what_is_said_and_advised(
    reason: str, evicted_ms: int | None, message: str, advice: str
) -> None:
    prompt = ProcessedPrompt(np.arange(100, dtype=np.int32), ())
    report = MatchReport(32, reason, 1, 40, evicted_ms)
    told = explain(prompt, report, Pool(32, 4096, True), decode=str)
    assert message in told.message
    assert advice in told.advice[0]


def test_explaining_changes_nothing(client: Client) -> None:
    body = chat_body([text(LEAD), image(96), audio(97)], cache_salt="nothing changes")
    before = client.llm.snapshot()
    for _ in range(3):
        assert asked(client, EXPLAIN, body)["cached_tokens"] == 0
    assert client.llm.snapshot() == before


def test_without_reuse_that_is_the_reason(cold: Client) -> None:
    found = asked(cold, EXPLAIN, chat_body("Hello."))
    assert (found["reason"], found["cached_tokens"]) == ("reuse_disabled", 0)
    assert "--no_enable_block_reuse" in found["advice"][0]


@pytest.mark.parametrize(
    ("change", "param"),
    [({"temperature": -1}, "temperature"), ({"messages": [{"role": "user", "content": [1]}]}, "m")],
)
def test_mistakes_are_those_of_a_chat(client: Client, change: dict, param: str) -> None:
    response = client.send("POST", EXPLAIN, json=chat_body("Hi.") | change)
    assert response.status_code == 400
    assert response.json()["param"].startswith(param)
