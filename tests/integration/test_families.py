# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""The loop of issue 14125 over real HTTP for every family but the one of the issue."""

from __future__ import annotations

from collections.abc import Callable

import httpx
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


def test_repeats_succeed_and_come_from_the_cache(served: Served, salt: str) -> None:
    media = served.media(1)
    message = ("user", [QUESTION, media])
    cached = [served.check(QUESTION, media, salt=salt) for _ in range(REPEATS)]
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


def test_a_rendered_prompt_is_the_engines(served: Served) -> None:
    parts = (QUESTION, served.media(4), " and ", served.media(5))
    prompt = served.prompt(*parts)
    body = {"messages": [{"role": "user", "content": content_json(*parts)}]}
    url = f"{served.server.url}/v1/chat/completions/render"
    shown = httpx.post(url, json=body, trust_env=False, timeout=60).json()
    assert shown["token_ids"] == prompt.token_ids.tolist()
    assert shown["adapter_mode"] == prompt.adapter_mode
    runs = [[(run.position, run.length) for run in item.runs] for item in prompt.items]
    spans = [(item[0][0], sum(item[-1]) - item[0][0]) for item in runs]
    features = shown["features"]
    told = features["mm_runs"][served.kind]
    assert [[(run["offset"], run["length"]) for run in item] for item in told] == runs
    placed = features["mm_placeholders"][served.kind]
    assert [(span["offset"], span["length"]) for span in placed] == spans
    hashes = [item.identity.hex() for item in prompt.items if item.identity is not None]
    assert features["mm_hashes"] == {served.kind: hashes} and len(set(hashes)) == 2


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
    assert refused or served.name == "qwen2_5_omni"
    for other in sorted(refused):
        reply = served.server.chat(content[other])
        assert reply.status == 400 and reply.error is not None
        message = str(reply.error)
        assert f"this model does not take {other}; it takes: text, {', '.join(takes)}" in message
        assert "messages[0].content[1]" in message
    served.check("Nothing is wrong now.")
