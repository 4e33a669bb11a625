# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""``/v1/files``: media that is uploaded once costs nothing when it is named again."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import openai
import pytest
from support.asgi_client import CHAT, LEAD, Client, answer, audio, cached, full_repeat, image, text
from support.media import clip, image_bytes, picture, wav_bytes

from tensorrt_llm.serve.api_keys import ApiKeys
from tensorrt_llm.serve.openai_server import ServerConfig
from tests.unittest.serve.test_metrics import read

FILES = "/v1/files"


def upload(client: Client, content: bytes, name: str = "a.png", **options: Any) -> httpx.Response:
    return client.send("POST", FILES, files={"file": (name, content)}, **options)


def uploaded(client: Client, content: bytes, name: str = "a.png", **options: Any) -> str:
    response = upload(client, content, name, **options)
    assert response.status_code == 200, response.text
    return response.json()["id"]


def named(file_id: str, kind: str = "image_url") -> dict:
    return {"type": kind, "file_id": file_id}


def test_a_file_is_what_it_holds(client: Client) -> None:
    picture_id = uploaded(client, image_bytes(picture(91)))
    sound_id = uploaded(client, wav_bytes(clip(91)), "a.wav")
    by_id = [text(LEAD), named(picture_id), named(sound_id, "audio_url"), text("What?")]
    first = client.chat(by_id, cache_salt=None)
    assert cached(first) < full_repeat(first)
    forms = [
        {"type": "file", "file": {"file_id": picture_id}},
        {"type": "input_file", "file_id": picture_id},
        {"type": "image_url", "image_url": {"file_id": picture_id, "detail": "low"}},
        {"type": "input_image", "file_id": picture_id},
        image(91),
    ]
    for form in forms:
        again = client.chat([text(LEAD), form, audio(91), text("What?")])
        assert (cached(again), answer(again)) == (full_repeat(first), answer(first)), form
    other = client.chat([text(LEAD), image(92), audio(91), text("What?")])
    assert cached(other) < full_repeat(first)


def test_a_repeat_decodes_nothing(client: Client) -> None:
    before = client.server.media_loader.decodes
    file_id = uploaded(client, image_bytes(picture(93)))
    assert client.server.media_loader.decodes == before + 1
    content = [text(LEAD), named(file_id), text("What?")]
    client.chat(content)
    decodes = client.server.media_loader.decodes
    for route, fields in ((CHAT, {}), ("/tokenize", {}), ("/v1/chat/completions/render", {})):
        body = {"messages": [{"role": "user", "content": content}], **fields}
        assert client.send("POST", route, json=body).status_code == 200
    body = {"input": [{"role": "user", "content": content}], "max_output_tokens": 4}
    assert client.send("POST", "/v1/responses", json=body).status_code == 200
    assert client.server.media_loader.decodes == decodes


def test_what_is_gone_is_gone_at_once(client: Client) -> None:
    data = image_bytes(picture(94))
    file_id = uploaded(client, data, "my picture.png")
    about = client.send("GET", f"{FILES}/{file_id}").json()
    assert (about["filename"], about["bytes"]) == ("my picture.png", len(data))
    assert about["expires_at"] > about["created_at"]
    assert client.send("GET", f"{FILES}/{file_id}/content").content == data
    assert about in client.send("GET", FILES).json()["data"]
    assert client.chat([named(file_id)]).status_code == 200
    assert client.send("DELETE", f"{FILES}/{file_id}").json()["deleted"] is True
    response = client.chat([text("x"), named(file_id)])
    assert (response.status_code, response.json()["param"]) == (400, "messages[0].content[1]")
    for method, path in (("GET", ""), ("GET", "/content"), ("DELETE", "")):
        assert client.send(method, f"{FILES}/{file_id}{path}").status_code == 404
    assert about not in client.send("GET", FILES).json()["data"]


def test_files_belong_to_a_tenant(client: Client) -> None:
    data = image_bytes(picture(95))
    mine = uploaded(client, data, data={"cache_salt": "mine"})
    assert client.chat([named(mine)], cache_salt="mine").status_code == 200
    assert client.chat([named(mine)]).status_code == 400
    assert client.chat([named(mine)], cache_salt="other").status_code == 400
    assert client.send("GET", f"{FILES}/{mine}", params={"cache_salt": "mine"}).status_code == 200
    assert client.send("GET", f"{FILES}/{mine}").status_code == 404
    keys = ApiKeys.parse(["alpha team", "beta team", "gamma"])
    keyed = Client(client.llm, ServerConfig("tiny", api_keys=keys))

    def bearer(key: str) -> dict:
        return {"headers": {"Authorization": f"Bearer {key}"}}

    teams = uploaded(keyed, data, **bearer("alpha"))
    messages = [{"role": "user", "content": [named(teams)]}]
    body = {"messages": messages, "max_tokens": 1, "cache_salt": "any"}
    for key, status in (("alpha", 200), ("beta", 200), ("gamma", 400)):
        assert keyed.send("POST", CHAT, json=body, **bearer(key)).status_code == status
        count = len(keyed.send("GET", FILES, **bearer(key)).json()["data"])
        assert count == (status == 200)


def test_the_store_is_bounded(client: Client) -> None:
    data = image_bytes(picture(96))
    small = Client(client.llm, ServerConfig("tiny", max_stored_bytes=len(data) + 10))
    one, two = uploaded(small, data), uploaded(small, data)
    assert small.send("GET", f"{FILES}/{one}").status_code == 404
    assert small.send("GET", f"{FILES}/{two}").status_code == 200
    counts = read(small)
    assert counts["stored_evictions_total{store=files}"] == 1
    assert counts["stored_evictions_total{store=responses}"] == 0
    large = upload(small, image_bytes(picture(96, 400, 400)))
    assert large.status_code == 400 and "max_stored_bytes" in large.json()["message"]


def test_the_official_client(client: Client) -> None:
    async def run() -> None:
        http = httpx.AsyncClient(transport=httpx.ASGITransport(client.app))
        api = openai.AsyncOpenAI(base_url="http://test/v1", api_key="none", http_client=http)
        data = image_bytes(picture(97))
        file = await api.files.create(file=("a.png", data), purpose="user_data")
        assert file.id in [one.id async for one in await api.files.list()]
        assert (await api.files.content(file.id)).content == data
        assert (await api.files.retrieve(file.id)).bytes == len(data)
        part: Any = {"type": "input_image", "file_id": file.id, "detail": "auto"}
        answered = await api.responses.create(
            model="tiny", input=[{"role": "user", "content": [part]}], max_output_tokens=4
        )
        assert answered.output_text
        assert (await api.files.delete(file.id)).deleted
        await api.close()

    asyncio.run(run())


@pytest.mark.parametrize(
    ("options", "param"),
    [
        ({"files": {"file": ("a.png", b"no picture")}}, "file"),
        ({"files": {"file": ("a.png", b"")}}, "file"),
        ({"files": {"file": ("a.txt", b"text")}}, "file"),
        ({"files": {"file": ("a.mp4", b"\0" * 100)}}, "file"),
        ({"data": {"purpose": "x"}}, "file"),
        ({"json": {"file": "x"}}, "file"),
    ],
)
def test_what_cannot_be_kept_is_refused(client: Client, options: dict, param: str) -> None:
    response = client.send("POST", FILES, **options)
    assert response.status_code == 400, response.text
    assert response.json()["param"] == param


@pytest.mark.parametrize(
    "part",
    [
        {"type": "file"},
        {"type": "file", "file": {"file_id": 5}},
        {"type": "file", "file": {"file_id": "file-none"}},
        {"type": "file", "file": {"file_id": "x", "file_data": "y"}},
        {"type": "image_url", "file_id": "file-none"},
        {"type": "image_url", "file_id": "sound"},
        {"type": "image_url", "image_url": "data:,x", "file_id": "sound"},
        {"type": "image_url", "file_id": ""},
    ],
)
def test_a_wrong_reference_is_named(client: Client, part: dict) -> None:
    if part.get("file_id") == "sound":
        part = part | {"file_id": uploaded(client, wav_bytes(clip(98)), "a.wav")}
    response = client.chat([text("x"), part])
    assert response.status_code == 400, response.text
    assert response.json()["param"].startswith("messages[0].content[1]")
