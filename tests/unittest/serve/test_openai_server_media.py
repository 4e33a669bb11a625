# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Media through the routes: what is shared, what is not, and what is not decoded again."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import httpx
import pytest
from support.asgi_client import (
    BLOCK,
    CHAT,
    LEAD,
    Client,
    answer,
    audio,
    cached,
    chat_body,
    full_repeat,
    image,
    text,
)
from support.media import clip, data_uri, image_bytes, picture, wav_bytes

from tensorrt_llm.serve.json_body import LARGE_BODY_BYTES
from tensorrt_llm.serve.openai_server import ServerConfig


@pytest.mark.parametrize("media", [audio, image], ids=["audio", "image"])
def test_repeats_come_from_the_cache_with_the_same_answer(client, cold, media) -> None:
    content = [text(LEAD), media(11), text("What is it?")]
    expected = answer(cold.chat(content))
    first = client.chat(content)
    repeats = [client.chat(content) for _ in range(3)]
    assert [answer(one) for one in (first, *repeats)] == [expected] * 4
    assert [cached(one) for one in repeats] == [full_repeat(first)] * 3
    other = [text(LEAD), media(12), text("What is it?")]
    different = client.chat(other)
    assert answer(different) == answer(cold.chat(other))
    lead_tokens = cold.chat([text(LEAD)], max_tokens=1).json()["usage"]["prompt_tokens"]
    assert 0 < cached(different) <= lead_tokens


def test_the_order_of_text_and_media_is_kept(client: Client, cold: Client) -> None:
    orders = [
        [text("One. "), image(51), text("Two. "), image(52)],
        [text("One. "), image(52), text("Two. "), image(51)],
        [image(51), image(52), text("One. "), text("Two. ")],
        [text("One. "), text("Two. "), image(51), image(52)],
    ]
    scores = []
    for content in orders:
        pair = [door.chat(content, logprobs=True, max_tokens=1) for door in (client, cold)]
        assert answer(pair[0]) == answer(pair[1])
        entries = pair[0].json()["choices"][0]["logprobs"]["content"]
        scores.append((entries[0]["token"], round(entries[0]["logprob"], 3)))
    assert len(set(scores)) == len(orders)


def test_audio_by_base64_is_the_same_item_as_by_url(client: Client) -> None:
    data = base64.b64encode(wav_bytes(clip(61))).decode()
    by_url = client.chat([text(LEAD), audio(61)])
    part = {"type": "input_audio", "input_audio": {"data": data, "format": "wav"}}
    by_data = client.chat([text(LEAD), part])
    assert answer(by_data) == answer(by_url)
    assert cached(by_data) == full_repeat(by_url)


@pytest.mark.parametrize("detail", ["low", "high", "auto"])
def test_detail_changes_nothing(client: Client, detail: str) -> None:
    plain = image(71)
    first = client.chat([text(LEAD), plain])
    plain["image_url"]["detail"] = detail
    assert cached(client.chat([text(LEAD), plain])) == full_repeat(first)


def test_a_callers_id_is_part_of_the_identity(client: Client) -> None:
    content = [text(LEAD), image(81, uuid="mine")]
    first = client.chat(content)
    assert cached(client.chat(content)) == full_repeat(first)
    assert cached(client.chat([text(LEAD), image(81)])) < full_repeat(first)


def test_salts_do_not_share(client: Client) -> None:
    content = [text(LEAD), audio(91)]
    first = client.chat(content, cache_salt="a")
    assert cached(first) == 0
    assert cached(client.chat(content, cache_salt="b")) == 0
    assert cached(client.chat(content, cache_salt="a")) == full_repeat(first)


@pytest.mark.parametrize("media", [audio, image], ids=["audio", "image"])
def test_a_repeat_is_not_decoded(client: Client, cold: Client, media: Any) -> None:
    loader = client.server.media_loader
    content = [text("Not twice."), media(161)]
    before = loader.decodes
    first = client.chat(content)
    assert loader.decodes == before + 1
    again = client.chat(content)
    asked_otherwise = client.chat([*content, text("And now?")])
    assert loader.decodes == before + 1
    assert answer(again) == answer(first)
    assert answer(asked_otherwise) == answer(cold.chat([*content, text("And now?")]))
    client.chat([text("Not twice."), media(162)])
    assert loader.decodes == before + 2


def long_picture(seed: int) -> tuple[bytes, str]:
    """A file whose URI is long enough to stay in the body, and that URI."""
    data = image_bytes(picture(seed), "BMP")
    uri = data_uri(data, "image/bmp")
    assert len(uri) > LARGE_BODY_BYTES
    return data, uri


def test_long_media_is_one_item_in_every_spelling(client: Client, cold: Client) -> None:
    data, uri = long_picture(171)
    (path := client.allowed / "long.bmp").write_bytes(data)
    bodies = [
        json.dumps(chat_body([text(LEAD), {"type": "image_url", "image_url": url}])).encode()
        for url in ({"url": uri}, uri, f"DATA{uri[4:]}", str(path), uri.replace("+", "%2B"))
    ]
    bodies += [bodies[0].replace(b"/", b"\\/"), bodies[0].replace(b"A", b"\\u0041")]
    before = client.server.media_loader.decodes
    headers = {"content-type": "application/json"}
    answers = [client.send("POST", CHAT, content=body, headers=headers) for body in bodies * 2]
    expected = answer(cold.send("POST", CHAT, content=bodies[0], headers=headers))
    assert [answer(one) for one in answers] == [expected] * len(answers)
    assert {cached(one) for one in answers[1:]} == {full_repeat(answers[0])}
    assert client.server.media_loader.decodes == before + 1
    # The same length and the same beginning, one pixel of the end another.
    other = data[:-1] + bytes([data[-1] ^ 1])
    content = [
        text(LEAD),
        {"type": "image_url", "image_url": {"url": data_uri(other, "image/bmp")}},
    ]
    assert cached(client.chat(content)) < full_repeat(answers[0])
    assert client.server.media_loader.decodes == before + 2


@pytest.mark.parametrize("turn", ["first", "again"])
@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("AAAA", "A!AA", "not base64"),
        ("AAAA", "A\\nAAA", None),
        ("AAAA", "A\nAA", "no valid JSON string"),
        ("AAAA", "A\\xAA", "no valid JSON string"),
        ("data:image/bmp;base64,", "data:", "a data: URI has a comma before its data"),
    ],
)
def test_wrong_long_media_is_named(client: Client, old: str, new: str, message, turn) -> None:
    body = json.dumps(chat_body([image(3), {"type": "image_url", "image_url": "LONG"}]))
    _, uri = long_picture(172)
    assert old in uri
    sent = body.replace("LONG", uri.replace(old, new, 1)).encode()
    response = client.send("POST", CHAT, content=sent, headers={"content-type": "application/json"})
    if message is None:
        assert response.status_code == 200, response.text
    else:
        assert response.status_code == 400
        assert response.json()["message"].startswith("messages[0].content[1]: ")
        assert message in response.json()["message"]


def test_what_a_tenant_sent_is_unknown_to_others(client: Client) -> None:
    loader, content = client.server.media_loader, [text("Mine."), image(63)]
    before = loader.decodes
    for salt, decodes in (("s1", 1), ("s1", 1), ("s2", 2), (None, 3), ("s2", 3)):
        fields = {} if salt is None else {"cache_salt": salt}
        assert client.chat(content, **fields).status_code == 200
        assert loader.decodes == before + decodes


def test_rows_that_were_evicted_are_made_again(client: Client, cold: Client) -> None:
    """The door knows the item; the engine, which forgot it, makes its rows from what was sent."""
    loader = client.server.media_loader
    content = [text("Forget me."), image(64)]
    expected = answer(client.chat(content))
    client.llm._executor.reset_reuse_state()
    before = loader.decodes
    again = client.chat(content)
    assert loader.decodes == before + 1
    assert answer(again) == expected == answer(cold.chat(content))
    assert cached(again) == 0


def test_media_that_cannot_be_made_again_fails_its_request_only(client, monkeypatch) -> None:
    content = [text("Lost."), image(65)]
    expected = answer(client.chat(content))
    client.llm._executor.reset_reuse_state()

    def broken(*_: Any) -> None:
        raise MemoryError("no room to decode")

    with monkeypatch.context() as patch:
        patch.setattr(client.server.media_loader, "_decoder", broken)
        lost, text_only = client.send_all(
            [("POST", CHAT, {"json": chat_body(c)}) for c in (content, "Only text.")]
        )
    assert lost.status_code == 500
    assert "no room to decode" in lost.json()["message"]
    assert text_only.status_code == 200
    assert answer(client.chat(content)) == expected


def clear_corner() -> dict:
    """A picture with transparent pixels."""
    pixels = picture(66).convert("RGBA")
    pixels.paste((0, 0, 0, 0), (0, 0, 100, 70))
    url = data_uri(image_bytes(pixels), "image/png")
    return {"type": "image_url", "image_url": {"url": url}}


def test_the_background_of_a_request_is_part_of_the_identity(client: Client) -> None:
    content = [text("What lies below?"), clear_corner()]

    def on(*color: int) -> dict:
        return {"media_io_kwargs": {"image": {"rgba_background_color": list(color)}}}

    white = client.chat(content)
    assert cached(client.chat(content, **on(255, 255, 255))) == full_repeat(white)
    for color in ((0, 0, 0), (0, 0, 1)):
        first = client.chat(content, **on(*color))
        assert cached(first) < BLOCK
        assert cached(client.chat(content, **on(*color))) == full_repeat(first)
    assert cached(client.chat(content)) == full_repeat(white)


def test_the_servers_background_holds_unless_the_request_says_otherwise(client: Client) -> None:
    black = {"image": {"rgba_background_color": [0, 0, 0]}}
    other = Client(client.llm, ServerConfig("tiny", media_io_kwargs=black))
    content = [text("On which ground?"), clear_corner()]
    first = other.chat(content)
    assert cached(client.chat(content, media_io_kwargs=black)) == full_repeat(first)
    white = {"image": {"rgba_background_color": [255, 255, 255]}}
    assert cached(other.chat(content, media_io_kwargs=white)) < BLOCK
    assert cached(client.chat(content)) == full_repeat(first)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"image": {"rgba_background_color": [0, 0]}}, "three ints from 0 to 255"),
        ({"image": {"background": 1}}, "media_io_kwargs.image: unknown option 'background'"),
        ({"text": {}}, "'text' is no modality"),
        ({"audio": {"rate": 3}}, "media_io_kwargs.audio: unknown option 'rate'"),
    ],
)
def test_wrong_loading_options_are_400(client: Client, given: dict, message: str) -> None:
    for content in ("Only text.", [text("See."), image(67)]):
        response = client.chat(content, media_io_kwargs=given)
        assert response.status_code == 400
        assert message in response.json()["message"]


def test_local_files(client: Client, tmp_path: Path) -> None:
    inside, outside = client.allowed / "in.wav", tmp_path / "out.wav"
    for file in (inside, outside):
        file.write_bytes(wav_bytes(clip(101)))

    def ask(path: str) -> httpx.Response:
        return client.chat([text(LEAD), {"type": "audio_url", "audio_url": {"url": path}}])

    by_uri = client.chat([text(LEAD), audio(101)])
    for path in (str(inside), inside.as_uri()):
        assert cached(ask(path)) == full_repeat(by_uri)
    refusals = {ask(str(path)).json()["message"] for path in (outside, tmp_path / "none.wav")}
    (message,) = refusals
    assert message.startswith("messages[0].content[1]: ")
    assert "allowed_local_media_path" in message


def test_processor_options_of_a_request(client: Client) -> None:
    content = [text(LEAD), image(121)]
    counts = []
    for crops in (None, 1, None):
        fields = {"mm_processor_kwargs": {"dynamic_hd": crops}} if crops else {}
        response = client.chat(content, **fields)
        details = response.json()["usage"]["prompt_tokens_details"]
        counts.append((details["image_tokens"], details["cached_tokens"]))
    (plain, _), (small, shared), (again, repeated) = counts
    assert small < plain == again
    assert shared < repeated == full_repeat(response)
