# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""What the routes refuse, and that a refusal leaves nothing behind."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.asgi_client import (
    CHAT,
    COMPLETIONS,
    Client,
    answer,
    chat_body,
    image,
    text,
)
from support.media import clip, data_uri, wav_bytes

from tensorrt_llm.llmapi.llm import LLM
from tensorrt_llm.serve.openai_server import ServerConfig

BROKEN_WAV = wav_bytes(clip(1))[:-4000]


BAD_CONTENT = {
    "truncated audio": (
        [text("x"), {"type": "audio_url", "audio_url": data_uri(BROKEN_WAV, "audio/wav")}],
        "messages[0].content[1]: ",
    ),
    "unknown scheme": (
        [{"type": "image_url", "image_url": "gopher://x/y.png"}],
        "messages[0].content[0]: unknown scheme 'gopher'",
    ),
    "not an image": (
        [image(1), {"type": "image_url", "image_url": data_uri(b"<html>", "image/png")}],
        "messages[0].content[1]: ",
    ),
    "no data": ([{"type": "image_url"}], "messages[0].content[0]: image_url must be"),
    "no such part": ([{"type": "hologram"}], "messages[0].content[0]: type must be one of"),
    "no such modality": (
        [{"type": "video_url", "video_url": {"url": "x"}}],
        "messages[0].content[0]: this model does not take video; it takes: text, image, audio",
    ),
    "too long": ("word " * 9000, "messages: "),
    "too many items": ([image(1)] * 5, "messages: 5 items exceed max_media_items (4 items)"),
}


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("name", BAD_CONTENT)
def test_bad_requests_are_400_and_leave_no_trace(client, cold, name: str, stream: bool) -> None:
    content, message = BAD_CONTENT[name]
    response = client.chat(content, stream=stream)
    assert response.status_code == 400, response.text
    assert response.json()["message"].startswith(message)
    assert response.json()["param"] in (message.split(": ")[0], "messages")
    good = [text("A good one. "), image(1)]
    assert answer(client.chat(good)) == answer(cold.chat(good))


def test_an_image_first_seen_in_a_refused_request_works_next(client, cold) -> None:
    refused = client.chat([image(111), text("word " * 9000)])
    assert refused.status_code == 400
    content = [text("Now short. "), image(111)]
    assert answer(client.chat(content)) == answer(cold.chat(content))


@pytest.mark.parametrize(
    ("fields", "status", "message"),
    [
        ({"frobnicate": 1}, 400, "frobnicate: unknown field"),
        ({"n": 0}, 400, "n: "),
        ({"temperature": -1}, 400, "temperature"),
        ({"cache_salt": " "}, 400, "cache_salt: must not be blank"),
        ({"mm_processor_kwargs": {"hue": 1}}, 400, "mm_processor_kwargs"),
        ({"chat_template_kwargs": {"tokenize": 1}}, 400, "chat_template_kwargs"),
        ({"messages": []}, 400, "messages: "),
        ({"disaggregated_params": {}}, 501, "disaggregated_params: "),
    ],
)
def test_bad_fields_are_named(client: Client, fields: dict, status: int, message: str) -> None:
    response = client.chat("x", **fields)
    assert response.status_code == status, response.text
    assert response.json()["message"].startswith(message)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"{", "the body is no valid JSON"),
        (b"[1]", "the body must be a JSON object"),
        (b"", "the body must be a JSON object"),
        (b"\xff\xfe", "the body is no valid JSON"),
    ],
)
def test_bad_bodies(client: Client, content: bytes, message: str) -> None:
    headers = {"Content-Type": "application/json"}
    response = client.send("POST", CHAT, content=content, headers=headers)
    assert response.status_code == 400
    assert response.json()["message"].startswith(message)


def test_a_body_over_the_limit_is_413(client: Client) -> None:
    response = client.chat("x" * (4 * 2**20))
    assert (response.status_code, response.json()["code"]) == (413, 413)
    assert "max_request_bytes" in response.json()["message"]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"prompt": []}, "prompt: the list of prompts is empty"),
        ({"prompt": [[]]}, "prompt[0]: the prompt holds no tokens"),
        ({"prompt": [1, 99999]}, "prompt: token id 99999 is outside the vocabulary"),
        ({"prompt": [-1]}, "prompt: token id -1 is outside the vocabulary"),
        ({"prompt": ["a", "b"], "stream": True}, "prompt: a stream carries one prompt, got 2"),
        ({"prompt": "see <|image|>"}, "prompt: the prompt has 1 image placeholders"),
        ({"prompt": [[1], [1, 99999]]}, "prompt[1]: token id 99999"),
        ({"prompt": "x", "echo": True}, "echo: "),
        ({}, "prompt: missing"),
    ],
)
def test_bad_completions(client: Client, fields: dict, message: str) -> None:
    response = client.send("POST", COMPLETIONS, json={"max_tokens": 2, **fields})
    assert response.status_code == 400, response.text
    assert response.json()["message"].startswith(message), response.text


def test_health_fails_once_the_engine_is_gone(llama_checkpoint: Path, engine_host) -> None:
    cache = {"max_tokens": 1024}
    llm = LLM(str(llama_checkpoint), kv_cache_config=cache, engine_host=engine_host)
    client = Client(llm, ServerConfig("tiny"))
    assert client.send("GET", "/health").status_code == 200
    llm.shutdown()
    assert client.send("GET", "/health").status_code == 503
    assert client.chat("x").status_code == 500
    assert client.send("GET", "/metrics").status_code == 500


def test_a_model_without_media_says_what_it_takes(llama_checkpoint: Path, engine_host) -> None:
    cache = {"max_tokens": 1024}
    with LLM(str(llama_checkpoint), kv_cache_config=cache, engine_host=engine_host) as llm:
        response = Client(llm, ServerConfig("tiny")).chat([image(1)])
    assert response.status_code == 400
    assert "this model does not take image; it takes: text" in response.json()["message"]


def test_a_model_without_a_template_says_so_and_completes(
    llama_checkpoint: Path, tmp_path: Path, engine_host
) -> None:
    for file in llama_checkpoint.iterdir():
        if file.name != "chat_template.jinja":
            (tmp_path / file.name).write_bytes(file.read_bytes())
    cache = {"max_tokens": 1024}
    with LLM(str(tmp_path), kv_cache_config=cache, engine_host=engine_host) as llm:
        client = Client(llm, ServerConfig("tiny"))
        response = client.chat("Hello")
        assert response.status_code == 400
        assert "--chat_template" in response.json()["message"]
        body = {"prompt": "Hello", "max_tokens": 2}
        assert client.send("POST", COMPLETIONS, json=body).status_code == 200


def test_a_full_queue_is_429(llama_checkpoint: Path, engine_host) -> None:
    cache = {"max_tokens": 8192}
    with LLM(
        str(llama_checkpoint),
        kv_cache_config=cache,
        max_batch_size=1,
        max_queue_size=1,
        engine_host=engine_host,
    ) as llm:
        client = Client(llm, ServerConfig("tiny"))
        body = chat_body("x", max_tokens=200, ignore_eos=True)
        responses = client.send_all([("POST", CHAT, {"json": body})] * 6)
        statuses = sorted(response.status_code for response in responses)
        assert statuses[0] == 200 and statuses[-1] == 429 and set(statuses) == {200, 429}
        refused = next(response for response in responses if response.status_code == 429)
        assert int(refused.headers["Retry-After"]) >= 1
        assert client.chat("x").status_code == 200
