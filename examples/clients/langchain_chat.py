# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""LangChain asks about a picture twice; the repeat comes from the KV cache.

    python examples/clients/langchain_chat.py http://localhost:8000 picture.png

Needs the package langchain-openai.
"""

from __future__ import annotations

import base64
import sys
from pathlib import Path

from langchain_core.messages import AIMessage, HumanMessage
from langchain_openai import ChatOpenAI
from pydantic import SecretStr


def main(server: str, picture: str) -> None:
    """Prints the answer and the cached tokens, both times."""
    model = ChatOpenAI(
        base_url=f"{server}/v1", api_key=SecretStr("none"), model="any", temperature=0
    )
    data = base64.b64encode(Path(picture).read_bytes()).decode()
    message = HumanMessage(
        content=[
            {"type": "text", "text": "Look at this picture with great care. What does it show?"},
            {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{data}"}},
        ]
    )
    for _ in range(2):
        answer = model.invoke([message], max_tokens=16)
        assert isinstance(answer, AIMessage) and answer.usage_metadata is not None
        usage = answer.usage_metadata
        cached = usage["input_token_details"].get("cache_read", 0)
        print(repr(answer.content))
        print(f"cached {cached} of {usage['input_tokens']} prompt tokens")


if __name__ == "__main__":
    main(*sys.argv[1:3])
