# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Thumbnails: only by option, of whoever looks, small, few, and gone after a flush."""

from __future__ import annotations

import io

import numpy as np
import pytest
from PIL import Image
from support.asgi_client import LEAD, Client, audio, image, text
from support.media import picture

from tensorrt_llm.inputs.data import (
    DeferredContent,
    Digest,
    MediaItem,
    ProcessedItem,
    ProcessedPrompt,
)
from tensorrt_llm.inputs.video_data import VideoClip
from tensorrt_llm.serve.api_keys import ApiKeys, Tenant
from tensorrt_llm.serve.openai_server import ServerConfig
from tensorrt_llm.serve.thumbnails import THUMBNAIL_PIXELS, Thumbnails

STATE = "/kv_cache/state"


def bearer(key: str) -> dict[str, dict[str, str]]:
    return {"headers": {"Authorization": f"Bearer {key}"}}


def ask(client: Client, *parts: dict, **options) -> None:
    messages = [{"role": "user", "content": [text(LEAD), *parts]}]
    body = {"messages": messages, "max_tokens": 1}
    reply = client.send("POST", "/v1/chat/completions", json=body, **options)
    assert reply.status_code == 200, reply.text


def addresses(client: Client, **options) -> list[str]:
    items = client.send("GET", STATE, **options).json()["items"]
    assert items
    assert not any({"identity", "cacheSalt"} & one.keys() for one in items)
    return [f"/kv_cache/{one['thumbnail']}" for one in items if one.get("thumbnail")]


def mean_colour(jpeg: bytes) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(jpeg)).convert("RGB"), float).mean((0, 1))


def test_without_the_option_nothing_is_kept_or_told(client: Client) -> None:
    server = Client(client.llm, ServerConfig("tiny"))
    ask(server, image(301))
    items = server.send("GET", STATE).json()["items"]
    assert items and not any("thumbnail" in one for one in items)
    assert server.send("GET", "/kv_cache/thumbnails/any").status_code == 404


def test_a_picture_is_shown_small_and_a_sound_is_not(client: Client) -> None:
    client.llm.flush()
    server = Client(client.llm, ServerConfig("tiny", page_thumbnails=8))
    ask(server, image(302), audio(302))
    assert len(server.send("GET", STATE).json()["items"]) == 2
    (address,) = addresses(server)
    reply = server.send("GET", address)
    assert reply.status_code == 200 and reply.headers["content-type"] == "image/jpeg"
    assert reply.headers["cache-control"] == "no-store"
    assert reply.headers["cross-origin-resource-policy"] == "same-origin"
    assert "default-src 'none'" in reply.headers["content-security-policy"]
    assert max(Image.open(io.BytesIO(reply.content)).size) <= THUMBNAIL_PIXELS
    true = np.asarray(picture(302).convert("RGB"), float).mean((0, 1))
    assert np.abs(mean_colour(reply.content) - true).max() < 6
    decodes = server.server.media_loader.decodes
    ask(server, image(302), audio(302))  # a repeat, which is not decoded for it
    assert addresses(server) == [address] and server.server.media_loader.decodes == decodes
    far = server.send("GET", address, headers={"Origin": "https://chat.example"})
    assert far.status_code == 403
    assert server.send("POST", "/kv_cache/flush").status_code == 200
    assert server.send("GET", address).status_code == 404
    ask(server, image(302))
    (again,) = addresses(server)
    assert again != address and server.send("GET", again).status_code == 200


def test_a_tenant_sees_its_own_and_no_others(client: Client) -> None:
    client.llm.flush()
    keys = ApiKeys.parse(["alpha team", "beta team", "gamma team2"])
    server = Client(client.llm, ServerConfig("tiny", api_keys=keys, page_thumbnails=8))
    ask(server, image(303), **bearer("alpha"))
    (mine,) = addresses(server, **bearer("alpha"))
    for key, sees in (("alpha", True), ("beta", True), ("gamma", False)):
        assert addresses(server, **bearer(key)) == [mine] * sees
        status = server.send("GET", mine, **bearer(key)).status_code
        assert status == (200 if sees else 404), key
    ask(server, image(303), **bearer("gamma"))  # the same picture is another thumbnail
    (other,) = addresses(server, **bearer("gamma"))
    assert other != mine and addresses(server, **bearer("alpha")) == [mine]
    assert server.send("GET", mine).status_code == 401


def remembered(*numbers: int, store: Thumbnails, content=None) -> list[str | None]:
    for number in numbers:
        name = f"messages[{number}]"
        digest = Digest(number.to_bytes(32, "big"))
        shown = picture(number) if content is None else content
        prompt = ProcessedPrompt(
            np.zeros(1, np.int32), (ProcessedItem("image", digest, (), {}, part=name),)
        )
        store.remember(None, [MediaItem("image", shown, digest, part=name)], prompt)
    return [store.name(n.to_bytes(32, "big").hex(), None, None) for n in range(5)]


def test_they_are_few_and_those_that_requests_use_stay() -> None:
    store = Thumbnails(2)
    one, two = remembered(1, 2, store=store)[1:3]
    assert one and two and one != two
    assert remembered(1, 3, store=store)[1:4] == [one, None, remembered(store=store)[3]]
    assert store.jpeg(two, None) is None and store.jpeg(one, None)


def test_what_is_not_decoded_stays_so_and_a_video_shows_its_first_frame() -> None:
    store = Thumbnails(4)
    deferred = DeferredContent(lambda: pytest.fail("decoded for a thumbnail"))
    assert remembered(1, store=store, content=deferred)[1] is None
    frames = np.zeros((2, 300, 40, 3), np.uint8)
    frames[0, ..., 0] = 255
    clip = VideoClip(frames, (0, 1), (0.0, 1.0), 1.0, 2.0, 2)
    name = remembered(2, store=store, content=clip)[2]
    jpeg = store.jpeg(name, None)
    assert Image.open(io.BytesIO(jpeg)).size == (13, THUMBNAIL_PIXELS)
    assert mean_colour(jpeg) == pytest.approx([255, 0, 0], abs=4)


def test_a_tenant_owns_its_salts_and_none_that_look_alike() -> None:
    team = Tenant("team")
    for salt in (None, "", "a", ":"):
        assert team.owns(team.salted(salt))
    for other in ("team2", "tea", "team:", "team:a", "", "4:team"):
        for salt in (None, "", "a", "m", "m:a"):
            assert not team.owns(Tenant(other).salted(salt))
