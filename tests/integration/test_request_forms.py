# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""One request written in many ways: every accepted form is the same request, the rest is 400."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote_from_bytes

import pytest
from support.chat_oracle import ChatOracle, content_json, messages_json
from support.media import clip, data_uri, image_bytes, picture, wav_bytes
from support.server import Reply, Server

WORDS = "Which colour is the shape in the picture?"
BLOCK = 32


def image_part(value: Any, **fields: Any) -> list[dict[str, Any]]:
    return [
        {"type": "text", "text": WORDS},
        {"type": "image_url", "image_url": value, **fields},
    ]


def full_repeat(reply: Reply) -> int:
    return reply.usage["prompt_tokens"] - 1


@pytest.mark.parametrize("kind", ["image", "audio"])
def test_data_uris_with_parameters(kind: str, reuse_on: Server, salt: str) -> None:
    """C18: what a sender claims about the bytes changes nothing; the bytes decide."""
    whole = image_bytes(picture(41)) if kind == "image" else wav_bytes(clip(41))
    media_type = "image/png" if kind == "image" else "audio/wav"
    plain = data_uri(whole, media_type)
    payload = plain.partition(",")[2]

    def ask(url: str) -> Reply:
        part = {"type": f"{kind}_url", f"{kind}_url": {"url": url}}
        return reuse_on.chat([{"type": "text", "text": WORDS}, part], cache_salt=salt)

    first = ask(plain)
    assert (first.status, first.cached) == (200, 0)
    for header in [
        f"data:{media_type};base64",
        f"data:{media_type};charset=utf-8;base64",
        f"data:{media_type};name=a.png;base64",
        f"DATA:{media_type.upper()};BASE64",
        "data:;base64",
        "data:application/octet-stream;base64",
    ]:
        reply = ask(f"{header},{payload}")
        assert (reply.status, reply.text, reply.cached) == (200, first.text, full_repeat(first))
    escaped = ask(f"data:{media_type},{quote_from_bytes(whole)}")
    assert (escaped.status, escaped.text, escaped.cached) == (200, first.text, full_repeat(first))
    no_comma = ask(f"data:{media_type};base64")
    assert no_comma.status == 400 and no_comma.error["param"] == "messages[0].content[1]"


def test_shapes_of_image_url(reuse_on: Server, salt: str) -> None:
    """C23: a form is accepted as the very same request, or refused; no image gets lost."""
    url = data_uri(image_bytes(picture(42)), "image/png")
    first = reuse_on.chat(image_part({"url": url}), cache_salt=salt)
    assert (first.status, first.cached) == (200, 0)
    for content in [
        image_part(url),
        *(image_part({"url": url, "detail": detail}) for detail in ("low", "high", "auto")),
        image_part({"url": url}, detail="low"),
    ]:
        reply = reuse_on.chat(content, cache_salt=salt)
        assert (reply.status, reply.text, reply.cached) == (200, first.text, full_repeat(first))
        assert reply.usage["prompt_tokens"] == first.usage["prompt_tokens"]
    no_type = [image_part(url)[0], {"image_url": {"url": url}}]
    for content in [
        *(image_part(value) for value in (None, "", " ", {}, {"url": None}, {"url": ""}, 7, [url])),
        *(image_part({"url": url, "detail": "nonsense"}), image_part({"url": url, "size": 3})),
        *(image_part({"url": url}, size=3), no_type),
    ]:
        reply = reuse_on.chat(content, cache_salt=salt)
        assert reply.status == 400, content
        assert reply.error["param"].startswith("messages[0].content[1]")


def test_uuids_never_replace_content(reuse_on: Server, reuse_off: Server, salt: str) -> None:
    """The same id on another picture is another item; another id on the same picture too."""
    url, other = (data_uri(image_bytes(picture(seed)), "image/png") for seed in (43, 44))
    expected = [("x1", url, False), ("x1", url, True), ("x1", other, False), ("x2", url, False)]
    for uuid, source, found in expected:
        content = image_part({"url": source}, uuid=uuid)
        reply = reuse_on.chat(content, cache_salt=salt)
        # What is not found again shares the words in front of the picture at most.
        words = reply.usage["prompt_tokens"] - reply.usage["prompt_tokens_details"]["image_tokens"]
        assert reply.cached == full_repeat(reply) if found else reply.cached < words
        assert reply.text == reuse_off.chat(content).text


def test_the_order_of_text_and_media_is_kept(
    reuse_on: Server, reuse_off: Server, oracle: ChatOracle, salt: str
) -> None:
    """C24: the prompt is the template's, in the order sent, so sharing follows the order too."""
    one, two = picture(45), picture(46)
    sound = clip(45, 1.5)
    a, b = "The first picture:", "The second picture:"
    conversations = [
        [("user", [a, one, b, two])],
        [("user", [one, two, a, b])],
        [("user", [a, b, one, two])],
        [("user", [a, two, b, one])],
        [("user", [one, a, sound, b, two])],
        [("user", [a, one]), ("assistant", ["Yes."]), ("user", [b, two])],
        [("system", [a]), ("user", [one, sound, b])],
    ]
    texts = []
    for conversation in conversations:
        reply = reuse_on.chat(messages_json(*conversation), cache_salt=salt)
        expected = oracle.ask(*conversation, salt=salt)
        assert (reply.usage["prompt_tokens"], reply.cached) == expected
        assert reply.text == reuse_off.chat(messages_json(*conversation)).text
        texts.append(reply.text)
    assert texts[0] != texts[3], "the order must decide the answer"


STREAMS: dict[str, dict[str, Any]] = {
    "whole": {},
    "streamed": {"stream": True, "stream_options": {"include_usage": True}},
    "each chunk": {
        "stream": True,
        "stream_options": {"include_usage": True, "continuous_usage_stats": True},
    },
}


@pytest.mark.parametrize("fields", STREAMS.values(), ids=STREAMS)
def test_cached_tokens_are_exact_in_every_mode(
    fields: dict[str, Any], reuse_on: Server, oracle: ChatOracle, salt: str
) -> None:
    """C25: cold, half warm and warm, the same number however it is told."""
    head, sound = picture(47), clip(47, 6.0)
    for parts in ([head, "What is this?"], [head, sound, "Why?"], [head, sound, "Why?"]):
        reply = reuse_on.chat(content_json(*parts), cache_salt=salt, **fields)
        prompt, cached = oracle.ask(("user", parts), salt=salt)
        assert (reply.usage["prompt_tokens"], reply.cached) == (prompt, cached)
        assert reply.usage["total_tokens"] == prompt + reply.usage["completion_tokens"]
        if fields.get("stream_options", {}).get("continuous_usage_stats"):
            told = {e["usage"]["prompt_tokens_details"]["cached_tokens"] for e in reply.events}
            assert told == {cached}
            counts = [event["usage"]["completion_tokens"] for event in reply.events]
            assert counts == sorted(counts)


@pytest.mark.parametrize("fields", STREAMS.values(), ids=STREAMS)
def test_cached_tokens_are_exact_in_completions(
    fields: dict[str, Any], reuse_on: Server, salt: str
) -> None:
    cold = list(range(100, 200))
    half = [*cold[:70], *range(300, 340)]
    for prompt, cached in ((cold, 0), (half, 70), (half, 109), (cold, 99)):
        body = {"prompt": prompt, "max_tokens": 4, "temperature": 0, "cache_salt": salt, **fields}
        reply = reuse_on.post(body, "/v1/completions")
        assert (reply.status, reply.usage["prompt_tokens"]) == (200, len(prompt))
        assert reply.cached == cached
