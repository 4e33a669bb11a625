# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""The loop of issue 14125 over real HTTP for every family but the one of the issue."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from support.av_media import video_part
from support.chat_oracle import content_json
from support.families import FAMILIES
from support.media import clip, picture
from support.served import Served

QUESTION = "What is this, and how can you tell? Please answer briefly."
REPEATS = 5

ServeFamily = Callable[[str], Served]


@pytest.fixture(
    scope="module",
    params=[family.name for family in FAMILIES if family.name != "phi4mm"],
)
def served(request: pytest.FixtureRequest, serve_family: ServeFamily) -> Served:
    return serve_family(request.param)


def test_repeats_succeed_and_come_from_the_cache(served: Served) -> None:
    media = served.media(1)
    message = ("user", [QUESTION, media])
    cached = [served.check(QUESTION, media) for _ in range(REPEATS)]
    assert cached == [0, *[len(served.oracle.prompt(message)) - 1] * (REPEATS - 1)]


def test_other_media_of_equal_length_share_only_what_stands_before(served: Served) -> None:
    first, second = served.media(2), served.media(3)
    prompts = [served.oracle.prompt(("user", [QUESTION, media])) for media in (first, second)]
    assert prompts[0].token_ids.tolist() == prompts[1].token_ids.tolist()
    served.check(QUESTION, first)
    assert served.check(QUESTION, second) == prompts[1].items[0].runs[0].position
    assert served.check(QUESTION, first) == len(prompts[0]) - 1
    # Two of them in one request: the first is found, whatever follows.
    assert served.check(QUESTION, first, " and ", second) > prompts[0].items[0].runs[0].position


def test_a_modality_that_the_model_does_not_take_is_named_with_those_it_takes(
    served: Served,
) -> None:
    content = {
        "image": content_json(QUESTION, picture(1)),
        "audio": content_json(QUESTION, clip(1)),
        "video": [*content_json(QUESTION), video_part()],
    }
    takes = next(family.modalities for family in FAMILIES if family.name == served.name)
    refused = content.keys() - set(takes)
    assert refused
    for other in sorted(refused):
        reply = served.server.chat(content[other])
        assert reply.status == 400 and reply.error is not None
        message = str(reply.error)
        assert f"this model does not take {other}; it takes: text, {', '.join(takes)}" in message
        assert "messages[0].content[1]" in message
    served.check("Nothing is wrong now.")
