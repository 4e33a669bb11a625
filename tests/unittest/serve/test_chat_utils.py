# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Reading chat messages: order kept, nothing skipped, every mistake named by its place."""

from __future__ import annotations

import pytest

from tensorrt_llm.errors import LimitExceededError, RequestError, UnsupportedModalityError
from tensorrt_llm.serve.chat_utils import MediaSource, TextSource, parse_messages

BOTH = ("image", "audio")
URL = "data:image/png;base64,AAAA"


def parts_of(*parts: object, modalities: tuple[str, ...] = BOTH) -> list:
    (message,) = parse_messages([{"role": "user", "content": list(parts)}], modalities, 8)
    return list(message.content)


def refusal(message: object) -> str:
    with pytest.raises(RequestError) as caught:
        parse_messages([{"role": "user", "content": "first"}, message], BOTH, 8)
    return str(caught.value)


def test_parts_keep_their_order() -> None:
    got = parts_of(
        {"type": "text", "text": "one"},
        {"type": "image_url", "image_url": {"url": URL}},
        {"type": "text", "text": "two"},
        {"type": "input_audio", "input_audio": {"data": "QUJD", "format": "wav"}, "uuid": "u"},
        {"type": "audio_url", "audio_url": "file:/a.wav"},
        {"type": "input_image", "image_url": URL, "detail": "low"},
        "three",
    )
    assert got == [
        TextSource("one"),
        MediaSource("image", "messages[0].content[1]", url=URL),
        TextSource("two"),
        MediaSource("audio", "messages[0].content[3]", data="QUJD", format="wav", uuid="u"),
        MediaSource("audio", "messages[0].content[4]", url="file:/a.wav"),
        MediaSource("image", "messages[0].content[5]", url=URL),
        TextSource("three"),
    ]


@pytest.mark.parametrize(
    "image_url",
    [URL, {"url": URL}, *({"url": URL, "detail": detail} for detail in ("low", "high", "auto"))],
)
def test_every_form_of_image_url_is_the_same_source(image_url: object) -> None:
    (source,) = parts_of({"type": "image_url", "image_url": image_url})
    assert source == MediaSource("image", "messages[0].content[0]", url=URL)


@pytest.mark.parametrize(
    ("part", "where"),
    [
        ({"type": "image_url"}, "content[0]: image_url must be"),
        ({"type": "image_url", "image_url": None}, "content[0]: image_url must be"),
        ({"type": "image_url", "image_url": {}}, "content[0]: image_url must be"),
        ({"type": "image_url", "image_url": ""}, "content[0]: image_url must be"),
        ({"type": "image_url", "image_url": {"url": ""}}, "content[0]: image_url must be"),
        ({"type": "image_url", "image_url": {"url": None}}, "content[0]: image_url must be"),
        ({"type": "image_url", "image_url": {"url": 7}}, "content[0]: image_url must be"),
        ({"type": "image_url", "image_url": [URL]}, "content[0]: image_url must be"),
        ({"type": "image_url", "image_url": {"url": URL, "hue": 1}}, "image_url.hue: unknown"),
        ({"type": "image_url", "image_url": URL, "more": 1}, "content[0].more: unknown field"),
        ({"type": "image_url", "image_url": {"url": URL, "detail": "x"}}, "detail must be one of"),
        ({"type": "image_url", "image_url": URL, "uuid": " "}, "content[0]: uuid must be"),
        ({"image_url": {"url": URL}}, "content[0]: type must be one of"),
        ({"type": "hologram"}, "content[0]: type must be one of text, image_url"),
        ({"type": ["text"]}, "content[0]: type must be one of"),
        ({"type": "text"}, "content[0]: text must be a string"),
        ({"type": "text", "text": 5}, "content[0]: text must be a string"),
        ({"type": "text", "text": "\ud800"}, "content[0]: no valid Unicode text"),
        ({"type": "input_audio", "input_audio": "QUJD"}, "content[0]: input_audio must be"),
        ({"type": "input_audio", "input_audio": {"format": "wav"}}, "input_audio.data must be"),
        ({"type": "input_audio", "input_audio": {"data": ""}}, "input_audio.data must be"),
        ({"type": "input_audio", "input_audio": {"data": "A", "format": 1}}, "format must be"),
        (17, "content[0]: must be an object"),
        (None, "content[0]: must be an object"),
    ],
)
def test_a_wrong_part_is_named(part: object, where: str) -> None:
    message = refusal({"role": "user", "content": [part]})
    assert message.startswith("messages[1].content[0]")
    assert where in message


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ({"content": "x"}, "messages[1].role: must be one of"),
        ({"role": "function", "content": "x"}, "messages[1].role: must be one of"),
        ({"role": ["user"], "content": "x"}, "messages[1].role: must be one of"),
        ({"role": "user"}, "messages[1].content: must be text or a list"),
        ({"role": "user", "content": []}, "messages[1].content: must be text or a list"),
        ({"role": "user", "content": {"a": 1}}, "messages[1].content: must be text or a list"),
        ({"role": "user", "content": "x", "hue": 1}, "messages[1].hue: unknown field"),
        (
            {"role": "assistant", "content": "x", "tool_calls": [{}]},
            "messages[1].tool_calls[0].function",
        ),
    ],
)
def test_a_wrong_message_is_named(message: dict, expected: str) -> None:
    assert refusal(message).startswith(expected)


def test_an_answer_may_be_sent_back_as_it_came() -> None:
    echoed = {"role": "assistant", "content": "x", "refusal": None, "tool_calls": None}
    (message,) = parse_messages([echoed], BOTH, 8)
    assert (message.role, message.content, message.media) == ("assistant", "x", ())


def test_developer_is_system() -> None:
    (message,) = parse_messages([{"role": "developer", "content": "x"}], BOTH, 8)
    assert message.role == "system"


@pytest.mark.parametrize(
    ("part", "modality", "modalities"),
    [
        ({"type": "video_url", "video_url": {"url": "http://x/y.mp4"}}, "video", BOTH),
        ({"type": "image_url", "image_url": URL}, "image", ("audio",)),
        ({"type": "input_audio", "input_audio": {"data": "QUJD"}}, "audio", ()),
    ],
)
def test_a_modality_that_the_model_lacks(part: dict, modality: str, modalities: tuple) -> None:
    with pytest.raises(UnsupportedModalityError, match=f"does not take {modality}") as caught:
        parts_of(part, modalities=modalities)
    assert caught.value.supported == modalities
    assert caught.value.part == "messages[0].content[0]"


def test_the_number_of_items_is_bounded_over_all_messages() -> None:
    one = {"role": "user", "content": [{"type": "image_url", "image_url": URL}]}
    assert len(parse_messages([one] * 3, BOTH, 3)) == 3
    with pytest.raises(LimitExceededError, match=r"4 items exceed max_media_items \(3 items\)"):
        parse_messages([one] * 4, BOTH, 3)


def test_each_modality_may_have_a_limit_of_its_own() -> None:
    image = {"type": "image_url", "image_url": {"url": "data:,x"}}
    audio = {"type": "audio_url", "audio_url": {"url": "data:,x"}}
    messages = [{"role": "user", "content": [image, audio, image]}]
    for limits in ({}, {"image": 2}, {"image": 2, "audio": 1, "video": 0}):
        assert len(parse_messages(messages, BOTH, 3, limits)[0].media) == 3
    for limits, text in (
        ({"image": 1}, r"2 items exceed limit_mm_per_prompt\.image \(1 items\)"),
        ({"image": 2, "audio": 0}, r"1 items exceed limit_mm_per_prompt\.audio \(0 items\)"),
    ):
        with pytest.raises(LimitExceededError, match=text) as raised:
            parse_messages(messages, BOTH, 3, limits)
        assert raised.value.part == "messages"
