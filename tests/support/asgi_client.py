# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Asks the server's application over ASGI, without a socket."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import httpx

from support.media import clip, data_uri, image_bytes, picture, wav_bytes
from tensorrt_llm.llmapi.llm import LLM
from tensorrt_llm.serve.openai_server import OpenAIServer, ServerConfig

BLOCK = 32
CHAT, COMPLETIONS = "/v1/chat/completions", "/v1/completions"
LEAD = "Read these notes with great care before you answer. " * 4


class Client:
    """Asks the application over ASGI, one event loop a call."""

    def __init__(self, llm: LLM, config: ServerConfig) -> None:
        self.llm = llm
        self.config = config
        self.server = OpenAIServer(llm, config)
        self.app = self.server.app

    def send(self, method: str, path: str, **options: Any) -> httpx.Response:
        return self.send_all([(method, path, options)])[0]

    def send_all(self, requests: list[tuple[str, str, dict]]) -> list[httpx.Response]:
        async def run() -> list[httpx.Response]:
            transport = httpx.ASGITransport(self.app)
            async with httpx.AsyncClient(
                transport=transport, base_url="http://localhost", timeout=60
            ) as client:
                return await asyncio.gather(
                    *(client.request(method, path, **options) for method, path, options in requests)
                )

        return asyncio.run(run())

    def chat(self, content: Any, **fields: Any) -> httpx.Response:
        return self.send("POST", CHAT, json=chat_body(content, **fields))


def chat_body(content: Any, **fields: Any) -> dict:
    messages = [{"role": "user", "content": content}]
    return {"model": "tiny", "messages": messages, "max_tokens": 6, "temperature": 0, **fields}


def text(words: str) -> dict:
    return {"type": "text", "text": words}


def image(seed: int, **more: Any) -> dict:
    url = data_uri(image_bytes(picture(seed)), "image/png")
    return {"type": "image_url", "image_url": {"url": url}, **more}


def audio(seed: int) -> dict:
    return {"type": "audio_url", "audio_url": {"url": data_uri(wav_bytes(clip(seed)), "audio/wav")}}


def answer(response: httpx.Response) -> str:
    assert response.status_code == 200, response.text
    return response.json()["choices"][0]["message"]["content"]


def cached(response: httpx.Response) -> int:
    return response.json()["usage"]["prompt_tokens_details"]["cached_tokens"]


def events(response: httpx.Response) -> list[dict]:
    assert response.status_code == 200, response.text
    assert response.headers["content-type"].startswith("text/event-stream")
    lines = [line.removeprefix("data: ") for line in response.text.split("\n\n") if line]
    assert lines[-1] == "[DONE]"
    return [json.loads(line) for line in lines[:-1]]


def full_repeat(response: httpx.Response) -> int:
    return response.json()["usage"]["prompt_tokens"] - 1
