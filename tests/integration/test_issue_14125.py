# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""The loop of issue 14125 over real HTTP: repeats succeed, and share exactly what is equal."""

from __future__ import annotations

import io
import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest
import soundfile
from support.chat_oracle import ChatOracle, content_json, messages_json
from support.media import RATE, clip, data_uri, image_bytes, picture, wav_bytes
from support.reference import ReferenceModel
from support.server import TIMEOUT_SECONDS, Server

# Longer than a block, so that there is text to share before the media.
WORDS = (
    "You are a helpful assistant. Answer briefly and say clearly when you are not sure. "
    "Please write down every word that the speaker says, with the time at which each word starts."
)
QUESTION = "What can you hear in this recording?"
REPEATS = 5


@pytest.fixture(scope="module")
def reuse_off_by_option(issue_options: list[str], start_servers: Any) -> Server:
    return start_servers({"option": [*issue_options, "--no_enable_block_reuse"]})["option"]


def curl(url: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
    """Posts with the program that the issue uses, or with httpx where it is missing."""
    if shutil.which("curl") is None:
        response = httpx.post(url, json=body, trust_env=False, timeout=TIMEOUT_SECONDS)
        return response.status_code, response.json()
    done = subprocess.run(
        [
            *("curl", "--silent", "--show-error", "--noproxy", "*"),
            *("--max-time", str(TIMEOUT_SECONDS), "--write-out", "\n%{http_code}"),
            *("--header", "Content-Type: application/json", "--data", json.dumps(body), url),
        ],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        timeout=TIMEOUT_SECONDS + 10,
    )
    answer, status = done.stdout.rsplit("\n", 1)
    return int(status), json.loads(answer)


def issue_body(url: str) -> dict[str, Any]:
    audio = {"type": "audio_url", "audio_url": {"url": url}}
    content = [{"type": "text", "text": QUESTION}, audio]
    messages = [{"role": "user", "content": content}]
    return {"model": "tiny", "messages": messages, "max_tokens": 16, "temperature": 0}


def play_issue(server: Server, url: str) -> tuple[list[str], list[int], list[int]]:
    """Sends the request five times; gives the texts, prompt tokens and cached tokens."""
    texts, prompts, cached = [], [], []
    for _ in range(REPEATS):
        status, answer = curl(f"{server.url}/v1/chat/completions", issue_body(url))
        assert status == 200, answer
        texts.append(answer["choices"][0]["message"]["content"])
        prompts.append(answer["usage"]["prompt_tokens"])
        cached.append(answer["usage"]["prompt_tokens_details"]["cached_tokens"])
    return texts, prompts, cached


@pytest.mark.parametrize(("form", "seed"), [("path", 101), ("file", 102)])
def test_the_loop_succeeds_and_repeats_come_from_the_cache(
    form: str,
    seed: int,
    reuse_on: Server,
    reuse_off: Server,
    reuse_off_by_option: Server,
    oracle: ChatOracle,
    media_dir: Path,
) -> None:
    sound = clip(seed, 16.0)
    path = media_dir / f"issue-{form}.wav"
    path.write_bytes(wav_bytes(sound))
    url = str(path) if form == "path" else path.as_uri()
    expected = [oracle.ask(("user", [QUESTION, sound])) for _ in range(REPEATS)]

    texts, prompts, cached = play_issue(reuse_on, url)
    assert list(zip(prompts, cached, strict=True))[1:] == expected[1:]
    # Other requests to this server may have begun with the same words.
    first_row = oracle.prompt(("user", [QUESTION, sound])).items[0].runs[0].position
    assert prompts[0] == expected[0][0] and cached[0] <= first_row
    assert cached[1] == prompts[0] - 1
    assert len(set(texts)) == 1 and texts[0]
    for server in (reuse_off, reuse_off_by_option):
        assert play_issue(server, url) == (texts, prompts, [0] * REPEATS)
    assert reuse_on.healthy()


def test_each_server_says_whether_it_reuses_blocks(
    reuse_on: Server, reuse_off: Server, reuse_off_by_option: Server
) -> None:
    assert "  enable_block_reuse: true\n" in reuse_on.log_text()
    for server in (reuse_off, reuse_off_by_option):
        assert "  enable_block_reuse: false\n" in server.log_text()


def make_media(kind: str, seed: int) -> Any:
    return clip(seed, 5.0) if kind == "clip" else picture(seed)


def other_container(kind: str, media: Any) -> dict[str, Any]:
    """The same samples or pixels in another lossless file format, sent as another type."""
    if kind == "image":
        return {"type": "image_url", "image_url": data_uri(image_bytes(media, "BMP"), "image/bmp")}
    samples, _ = soundfile.read(io.BytesIO(wav_bytes(media)), dtype="int16")
    buffer = io.BytesIO()
    soundfile.write(buffer, samples, RATE, format="FLAC", subtype="PCM_16")
    return {"type": "audio_url", "audio_url": data_uri(buffer.getvalue(), "audio/flac")}


@pytest.mark.parametrize("kind", ["clip", "image"])
def test_different_media_share_no_block_and_equal_media_share_all(
    kind: str, reuse_on: Server, reuse_off: Server, oracle: ChatOracle, salt: str
) -> None:
    first, second = make_media(kind, 111), make_media(kind, 112)
    texts = {}
    for turn, media in enumerate([first, second, first, second]):
        reply = reuse_on.chat(content_json(WORDS, media), cache_salt=salt)
        message = ("user", [WORDS, media])
        assert (reply.usage["prompt_tokens"], reply.cached) == oracle.ask(message, salt=salt)
        truth = reuse_off.chat(content_json(WORDS, media))
        assert reply.text == truth.text
        assert truth.cached == 0
        texts[turn] = reply.text
        words_only = oracle.prompt(("user", [WORDS, media])).items[0].runs[0].position
        assert turn != 1 or reply.cached == words_only > 0
    assert texts[0] == texts[2] != texts[1] == texts[3], "the media must decide the answer"

    twin = [content_json(WORDS)[0], other_container(kind, first)]
    reply = reuse_on.chat(twin, cache_salt=salt)
    assert reply.cached == oracle.expect(("user", [WORDS, first]), salt=salt)
    assert reply.text == texts[0]


def test_a_salt_keeps_equal_requests_apart(reuse_on: Server, salt: str) -> None:
    content = content_json(WORDS, clip(113))
    cached = [
        reuse_on.chat(content, cache_salt=name).cached
        for name in (salt, f"{salt}-other", salt, f"{salt}-other")
    ]
    assert cached[:2] == [0, 0]
    assert cached[2] == cached[3] > 0


@pytest.mark.parametrize("clips", [1, 2])
def test_a_clip_whose_head_is_equal_is_another_clip(
    clips: int, reuse_on: Server, reuse_off: Server, oracle: ChatOracle, salt: str
) -> None:
    """Reuse that ends within a clip, behind it, or before it."""
    first = clip(121, 6.0)
    second = first.copy()
    second[3 * RATE :] = clip(122, 6.0)[3 * RATE :]
    more = [clip(123, 2.0)] if clips == 2 else []
    transcribe, count = "Please write down every word.", "How many people are in the room?"
    for media, question in [
        *((first, transcribe), (first, transcribe), (first, count)),
        *((second, transcribe), (first, transcribe)),
    ]:
        parts = [media, *more, question]
        reply = reuse_on.chat(content_json(*parts), cache_salt=salt)
        expected = oracle.ask(("user", parts), salt=salt)
        assert (reply.status, reply.usage["prompt_tokens"], reply.cached) == (200, *expected)
        assert reply.text == reuse_off.chat(content_json(*parts)).text


def test_a_clip_beside_a_picture(
    reuse_on: Server, reuse_off: Server, oracle: ChatOracle, salt: str
) -> None:
    """The model projects sound in another way beside a picture, so nothing of it is shared."""
    sound, image = clip(131, 4.0), picture(131)
    for parts in [
        *([WORDS, sound], [WORDS, image], [WORDS, image, sound], [WORDS, sound, image]),
        *([WORDS, image, sound], [WORDS, sound]),
    ]:
        reply = reuse_on.chat(content_json(*parts), cache_salt=salt)
        expected = oracle.ask(("user", parts), salt=salt)
        assert (reply.usage["prompt_tokens"], reply.cached) == expected
        assert reply.text == reuse_off.chat(content_json(*parts)).text


def test_a_next_turn_with_another_picture_finds_the_first_turn(
    reuse_on: Server,
    reuse_off: Server,
    oracle: ChatOracle,
    salt: str,
    phi4mm_checkpoint: Path,
) -> None:
    count = 20
    reference = ReferenceModel(phi4mm_checkpoint)
    conversation: list[tuple[str, list[Any]]] = []
    encoded = []
    for turn in range(3):
        conversation.append(("user", ["Which colour is this?", picture(140 + turn, 300, 200)]))
        fields = {"max_tokens": count, "ignore_eos": True, "cache_salt": salt}
        reply = reuse_on.chat(messages_json(*conversation), **fields)
        encoded.append(reuse_on.metrics()[-1]["multimodalStats"]["encoderRuns"]["image"])
        expected = oracle.expect(*conversation, salt=salt)
        assert reply.cached == expected
        if turn:
            prompt = oracle.prompt(*conversation)
            last_picture_seen = prompt.items[turn - 1].runs[-1]
            assert expected > last_picture_seen.position + last_picture_seen.length - 1
            assert encoded[turn] - encoded[turn - 1] == 1, "only the new picture is encoded"
        answer = reference.greedy(oracle.prompt(*conversation), count)
        assert reply.text == oracle.make.tokenizer.decode(answer.tokens, skip_special_tokens=True)
        oracle.seen(*conversation, generated=answer.tokens[:-1], salt=salt)
        off = reuse_off.chat(messages_json(*conversation), max_tokens=count, ignore_eos=True)
        assert (off.text, off.cached) == (reply.text, 0)
        conversation.append(("assistant", [reply.text]))


def test_the_official_client_chats_about_audio(reuse_on: Server, reuse_off: Server) -> None:
    audio = data_uri(wav_bytes(clip(151, 3.0)), "audio/wav").partition(",")[2]
    part = {"type": "input_audio", "input_audio": {"data": audio, "format": "wav"}}
    ask: dict[str, Any] = {
        "model": "tiny",
        "messages": [{"role": "user", "content": [{"type": "text", "text": QUESTION}, part]}],
        "max_tokens": 16,
        "temperature": 0,
    }
    answers = []
    for server in (reuse_on, reuse_off):
        http = httpx.Client(trust_env=False, timeout=TIMEOUT_SECONDS)
        with openai.OpenAI(
            base_url=f"{server.url}/v1", api_key="none", http_client=http, max_retries=0
        ) as client:
            plain = client.chat.completions.create(**ask)
            assert plain.usage is not None and plain.usage.prompt_tokens_details is not None
            text, usage = "", None
            stream = client.chat.completions.create(
                **ask, stream=True, stream_options={"include_usage": True}
            )
            for chunk in stream:
                usage = chunk.usage or usage
                text += "".join(choice.delta.content or "" for choice in chunk.choices)
            assert text == plain.choices[0].message.content
            assert usage is not None and usage.prompt_tokens_details is not None
            repeat = usage.prompt_tokens - 1
            cached = [
                plain.usage.prompt_tokens_details.cached_tokens,
                usage.prompt_tokens_details.cached_tokens,
            ]
            if server is reuse_on:
                # The words in front may have been asked before, the clip was not.
                assert cached[0] < usage.prompt_tokens - usage.prompt_tokens_details.audio_tokens
                assert cached[1] == repeat
            else:
                assert cached == [0, 0]
            answers.append(text)
    assert answers[0] == answers[1]


def test_the_official_client_sees_our_errors_as_its_own(reuse_on: Server) -> None:
    http = httpx.Client(trust_env=False, timeout=TIMEOUT_SECONDS)
    part = {"type": "audio_url", "audio_url": {"url": "gopher://host/a.wav"}}
    with (
        openai.OpenAI(
            base_url=f"{reuse_on.url}/v1", api_key="none", http_client=http, max_retries=0
        ) as client,
        pytest.raises(openai.BadRequestError, match=r"messages\[0\]\.content\[0\]"),
    ):
        messages: Any = [{"role": "user", "content": [part]}]
        client.chat.completions.create(model="tiny", messages=messages)
