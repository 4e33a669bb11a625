# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Bodies with long strings give the values of the standard parser, or are left to it."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from tensorrt_llm.inputs.encoded_text import EncodedText
from tensorrt_llm.serve.large_strings import LARGE_STRING_BYTES, parse_with_views

LONG = "A" * LARGE_STRING_BYTES
URI = f"data:image/png;base64,{LONG}"


def chat(*parts: Any, **more: Any) -> bytes:
    return json.dumps({"messages": [{"role": "user", "content": list(parts)}], **more}).encode()


def read(value: Any) -> Any:
    """The values with all texts read."""
    if isinstance(value, EncodedText):
        return value.text()
    if isinstance(value, dict):
        return {key: read(inner) for key, inner in value.items()}
    return [read(inner) for inner in value] if isinstance(value, list) else value


def count(value: Any) -> int:
    if isinstance(value, EncodedText):
        return 1
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return sum(map(count, inner))


@pytest.mark.parametrize(
    "part",
    [
        {"type": "image_url", "image_url": {"url": URI}},
        {"type": "image_url", "image_url": URI.replace("data:", "DATA:")},
        {"type": "audio_url", "audio_url": {"url": URI}},
        {"type": "video_url", "video_url": {"url": URI}},
        {"type": "input_audio", "input_audio": {"data": LONG, "format": "wav"}},
        # Clients written in some languages put a backslash before each slash, or escape all.
        {"type": "image_url", "image_url": {"url": f'data:,é"\\{LONG}\\'}},
    ],
)
def test_media_stays_in_the_body(part):
    body = chat(part, {"type": "text", "text": 'say "\\" and \\\\'}, part, temperature=0.5)
    values = parse_with_views(body)
    assert count(values) == 2
    assert read(values) == json.loads(body)


def test_escaped_slashes_are_read():
    body = chat({"type": "image_url", "image_url": {"url": URI}}).replace(b"/", b"\\/")
    values = parse_with_views(body)
    assert count(values) == 1
    assert read(values)["messages"][0]["content"][0]["image_url"]["url"] == URI


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(chat({"type": "text", "text": "hello"}), id="nothing long"),
        pytest.param(chat({"type": "text", "text": LONG}), id="long text"),
        pytest.param(chat({"image_url": {"url": URI}}, user=LONG), id="long elsewhere"),
        pytest.param(chat({"image_url": {"url": f"http://h/{LONG}"}}), id="long link"),
        pytest.param(chat({"image_url": {"url": {"url": URI}}}), id="one too deep"),
        pytest.param(chat({LONG: {"url": URI}}), id="long key"),
        pytest.param(json.dumps([URI]).encode(), id="no object"),
        pytest.param(json.dumps({"messages": URI}).encode(), id="no messages"),
        pytest.param(chat({"image_url": {"url": URI}})[:-1], id="cut off"),
        pytest.param(chat({"image_url": {"url": URI}})[:-20], id="cut off in the string"),
        pytest.param(chat({"image_url": {"url": URI}}, stop=['"'] * 5000), id="many quotes"),
        pytest.param(chat({"image_url": {"url": "\\" * 20 + URI}}), id="many backslashes"),
        pytest.param(
            b'{"messages": [{"content": [{"image_url": {"url": "%s", "url": "x"}}]}]}'
            % URI.encode(),
            id="given twice",
        ),
    ],
)
def test_everything_else_is_left_to_the_whole_parse(body):
    values = parse_with_views(body)
    # Many backslashes in front of a character that is no quote are nobody's concern.
    assert values is None or read(values) == json.loads(body)
    assert values is None or b"\\\\" in body


def test_random_bodies_give_the_values_of_the_standard_parser():
    rng = random.Random(3)
    alphabet = ['"', "\\", "a", "é", "/", "\n", "{", "}", ":", ",", "data:", LONG]

    def text() -> str:
        return "".join(rng.choices(alphabet, k=rng.randrange(8)))

    views = 0
    for _ in range(400):
        uri = "data:" + text() if rng.random() < 0.8 else text()
        field = rng.choice(["image_url", "audio_url", "text", "input_audio"])
        inner: Any = {"data": text()} if field == "input_audio" else {"url": uri}
        body = chat({"type": field, field: inner}, {"type": "text", "text": text()[:50]})
        if rng.random() < 0.5:
            body = json.dumps(json.loads(body), ensure_ascii=False).encode()
        values = parse_with_views(body)
        if values is not None:
            views += count(values)
            assert read(values) == json.loads(body)
    assert views > 50
