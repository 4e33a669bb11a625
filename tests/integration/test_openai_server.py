# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""The official client's habits, and clients that hang up, against a real server."""

from __future__ import annotations

import asyncio
import base64
import json
import socket
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import openai
import pytest
from support.media import clip, data_uri, image_bytes, picture, wav_bytes
from support.server import Server

BLOCK = 32


def question(seed: int, salt: str) -> dict[str, Any]:
    """Arguments of a chat call about a picture and a clip."""
    url = data_uri(image_bytes(picture(seed)), "image/png")
    data = base64.b64encode(wav_bytes(clip(seed))).decode()
    content = [
        {"type": "text", "text": "Compare them."},
        {"type": "image_url", "image_url": {"url": url, "detail": "low"}},
        {"type": "input_audio", "input_audio": {"data": data, "format": "wav"}},
    ]
    return {
        "model": "tiny",
        "messages": [{"role": "user", "content": content}],
        "max_tokens": 8,
        "temperature": 0,
        "extra_body": {"cache_salt": salt},
    }


def test_the_official_client_whole_streamed_and_async(reuse_on: Server, salt: str) -> None:
    ask = question(5, salt)
    address: Any = {"base_url": f"{reuse_on.url}/v1", "api_key": "none", "max_retries": 0}
    with openai.OpenAI(**address) as client:
        whole = client.chat.completions.create(**ask, logprobs=True, top_logprobs=1)
        details = whole.usage.prompt_tokens_details
        assert details.cached_tokens == 0
        assert details.audio_tokens > 0
        assert len(whole.choices[0].logprobs.content) == whole.usage.completion_tokens
        text, last = "", None
        with client.chat.completions.create(
            **ask, stream=True, stream_options={"include_usage": True}
        ) as stream:
            for chunk in stream:
                last = chunk
                text += "".join(choice.delta.content or "" for choice in chunk.choices)
        assert text == whole.choices[0].message.content
        full = whole.usage.prompt_tokens - 1
        assert last.usage.prompt_tokens_details.cached_tokens == full

    async def play() -> str:
        async with openai.AsyncOpenAI(**address) as client:
            answer, stream = await asyncio.gather(
                client.chat.completions.create(**ask),
                client.chat.completions.create(**ask, stream=True),
            )
            pieces = [chunk.choices[0].delta.content or "" async for chunk in stream]
            assert "".join(pieces) == text
            return answer.choices[0].message.content

    assert asyncio.run(play()) == text


def test_an_answer_sent_back_as_it_came_continues_the_conversation(reuse_on, salt) -> None:
    ask = question(6, salt)
    address: Any = {"base_url": f"{reuse_on.url}/v1", "api_key": "none", "max_retries": 0}
    with openai.OpenAI(**address) as client:
        first = client.chat.completions.create(**ask)
        turn = {"role": "user", "content": "And now?"}
        ask["messages"] = [*ask["messages"], first.choices[0].message, turn]
        second = client.chat.completions.create(**ask)
    assert second.usage.prompt_tokens_details.cached_tokens > first.usage.prompt_tokens - BLOCK


def test_completions_by_the_official_client(reuse_on: Server) -> None:
    with openai.OpenAI(base_url=f"{reuse_on.url}/v1", api_key="none", max_retries=0) as client:
        (model,) = client.models.list()
        ask: Any = {"model": model.id, "prompt": "Once", "max_tokens": 4, "temperature": 0}
        whole = client.completions.create(**ask, logprobs=1)
        assert "".join(whole.choices[0].logprobs.tokens) == whole.choices[0].text
        assert whole.choices[0].finish_reason == "length"
        with client.completions.create(**ask, stream=True) as stream:
            assert "".join(chunk.choices[0].text for chunk in stream) == whole.choices[0].text


def eventually(condition: Callable[[], bool], seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "the condition never held"
        time.sleep(0.05)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_a_client_that_hangs_up_frees_its_request(reuse_on: Server, stream: bool) -> None:
    messages = [{"role": "user", "content": "Go on."}]
    fields = {"max_tokens": 8000, "ignore_eos": True, "temperature": 0, "stream": stream}
    request = json.dumps({"messages": messages, **fields}).encode()
    address = urlsplit(reuse_on.url)
    head = (
        "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(request)}\r\n\r\n"
    )
    reuse_on.metrics()
    with socket.create_connection((address.hostname, address.port)) as connection:
        connection.sendall(head.encode() + request)
        if stream:
            assert b"200 OK" in connection.recv(1000)
        eventually(lambda: any(one["numActiveRequests"] for one in reuse_on.metrics()))
    # Only a running request makes iterations.
    eventually(lambda: reuse_on.metrics() == [] and reuse_on.metrics() == [])
    assert reuse_on.chat("Still there?").status == 200
