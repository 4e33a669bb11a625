# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""The demo notices every promise that is not kept. (A real run: tests/integration/test_demo.py.)"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from examples.demo import SAMPLES, read_media
from examples.demo_media import data_uri, write_picture
from examples.demo_requests import (
    REPEATS,
    Answer,
    Media,
    Row,
    broken_promises,
    play,
    summary,
)

GOOD = Answer(
    status=200,
    text="yes",
    seconds=0.1,
    prompt_tokens=262,
    media_tokens=200,
    cached_tokens=256,
    completion_tokens=16,
)
OFF = dataclasses.replace(GOOD, cached_tokens=0)
ROW = Row("clip", GOOD, OFF, 256, 256, "yes", GOOD)


def on(**changes: Any) -> Row:
    return dataclasses.replace(ROW, on=dataclasses.replace(GOOD, **changes))


def off(**changes: Any) -> Row:
    return dataclasses.replace(ROW, off=dataclasses.replace(OFF, **changes))


def test_kept_promises_are_not_reported() -> None:
    assert broken_promises([ROW, dataclasses.replace(ROW, first=None)]) == []
    assert "sent 2 times" in summary([ROW])
    assert "256 of 262 prompt tokens" in summary([ROW])


@pytest.mark.parametrize(
    ("row", "lines"),
    [
        (on(status=500, text="boom"), ["clip, reuse on: HTTP 500, not 200: boom"]),
        (off(status=0, text="gone"), ["clip, reuse off: HTTP 0, not 200: gone"]),
        (on(cached_tokens=224), ["clip: 224 cached tokens, not 256"]),
        (off(cached_tokens=32), ["clip, reuse off: 32 cached tokens, not 0"]),
        (off(prompt_tokens=261), ["clip: 262 prompt tokens, 261 with reuse off"]),
        (off(text="no"), ["clip: answer 'yes', 'no' with reuse off"]),
        (
            dataclasses.replace(ROW, first=dataclasses.replace(GOOD, text="no")),
            ["clip: answer 'yes', the first time 'no'"],
        ),
        (dataclasses.replace(ROW, fewest=0, most=64), ["clip: 256 cached tokens, not 0 to 64"]),
        (dataclasses.replace(ROW, right="no"), ["clip: answer 'yes', not 'no'"]),
    ],
)
def test_a_broken_promise_is_named(row: Row, lines: list[str]) -> None:
    assert broken_promises([row]) == lines


class Memoryless:
    """A server that answers everything alike and never finds anything in its cache."""

    def __init__(self) -> None:
        self.asked: list[list[dict[str, Any]]] = []

    def ask(self, messages: list[dict[str, Any]]) -> Answer:
        self.asked.append(messages)
        return OFF


def test_the_loop_alternates_doors_and_a_cache_that_finds_nothing_breaks_it() -> None:
    server, other, told = Memoryless(), Memoryless(), []
    media = Media("a.wav", "data:a", "b.wav", "1.png", "2.png", *["yes"] * 4)
    rows = play(server, other, media, told.append)  # type: ignore[arg-type]
    assert server.asked == other.asked
    sent = [messages[-1]["content"][0] for messages in server.asked[:REPEATS]]
    assert [part["audio_url"]["url"] for part in sent] == [
        *("a.wav", "data:a", "a.wav", "data:a", "a.wav")
    ]
    assert len(rows) == len(told) == REPEATS + 4
    names = {line.partition(":")[0].strip() for line in broken_promises(rows)}
    assert len(names) == REPEATS - 1 + 3, "all but the first clip and the first picture"


def test_the_samples_are_there_and_say_different_things() -> None:
    media = read_media(SAMPLES)
    assert media.says_a != media.says_b and media.shows_1 != media.shows_2
    clips = [Path(path).read_bytes() for path in (media.clip_a_path, media.clip_b)]
    assert len(clips[0]) == len(clips[1]) and clips[0] != clips[1]


def test_pictures_depend_on_the_seed(tmp_path: Path) -> None:
    one, two = (write_picture(tmp_path / f"{seed}.png", seed) for seed in (1, 2))
    with Image.open(one) as first, Image.open(two) as second:
        assert first.size == second.size
        assert first.tobytes() != second.tobytes()
    assert data_uri(one, "image/png").startswith("data:image/png;base64,iVBOR")
