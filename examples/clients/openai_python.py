# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""The official Python client: chat, stream, many at once, upload once, and a conversation.

    python examples/clients/openai_python.py http://localhost:8000 picture.png

Needs the package openai.
"""

from __future__ import annotations

import asyncio
import base64
import sys
from pathlib import Path
from typing import Any

import openai

QUESTION = "Look at this picture with great care. What does it show?"


def main(server: str, picture: str) -> None:
    """Prints answers, and the cached tokens of those that repeat something."""
    address: Any = {"base_url": f"{server}/v1", "api_key": "none"}
    data = base64.b64encode(Path(picture).read_bytes()).decode()
    url = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{data}"}}
    ask: dict[str, Any] = {"model": "any", "max_tokens": 16, "temperature": 0}
    with openai.OpenAI(**address) as client:
        whole = client.chat.completions.create(messages=_user(url), **ask)
        print("chat:", repr(whole.choices[0].message.content))

        options: Any = {"include_usage": True}
        print("stream:", end=" ")
        for chunk in client.chat.completions.create(
            messages=_user(url), stream=True, stream_options=options, **ask
        ):
            for choice in chunk.choices:
                print(choice.delta.content or "", end="|")
            if chunk.usage is not None:
                print()
                _say_cached(chunk.usage.prompt_tokens_details, chunk.usage.prompt_tokens)

        # Sent once, then named: no bytes, no fetch, no hash.
        with open(picture, "rb") as file:
            uploaded = client.files.create(file=file, purpose="user_data")
        named = {"type": "file", "file": {"file_id": uploaded.id}}
        by_id = client.chat.completions.create(messages=_user(named), **ask)
        print("by file_id:", repr(by_id.choices[0].message.content))
        assert by_id.usage is not None
        _say_cached(by_id.usage.prompt_tokens_details, by_id.usage.prompt_tokens)
        client.files.delete(uploaded.id)

        options = {"model": "any", "max_output_tokens": 16, "temperature": 0}
        first = client.responses.create(input=_user(url), **options)
        second = client.responses.create(
            input="And what else?", previous_response_id=first.id, **options
        )
        print("conversation:", repr(second.output_text))
        assert second.usage is not None
        _say_cached(second.usage.input_tokens_details, second.usage.input_tokens)
    print("at once:", asyncio.run(_at_once(address, ask)))


async def _at_once(address: Any, ask: dict[str, Any]) -> list[str | None]:
    async with openai.AsyncOpenAI(**address) as client:
        answers = await asyncio.gather(
            *(
                client.chat.completions.create(
                    messages=[{"role": "user", "content": f"Count to {number}."}], **ask
                )
                for number in (3, 4, 5)
            )
        )
    return [answer.choices[0].message.content for answer in answers]


def _user(part: dict[str, Any]) -> list[Any]:
    return [{"role": "user", "content": [{"type": "text", "text": QUESTION}, part]}]


def _say_cached(details: Any, total: int) -> None:
    print(f"cached {details.cached_tokens} of {total} prompt tokens")


if __name__ == "__main__":
    main(*sys.argv[1:3])
