# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""LiteLLM asks about a picture twice; the repeat comes from the KV cache.

    python examples/clients/litellm_chat.py http://localhost:8000 picture.png

Needs the package litellm.
"""

from __future__ import annotations

import base64
import os
import sys
from pathlib import Path

# Its table of prices comes with the package; nothing is fetched.
os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")

import litellm


def main(server: str, picture: str) -> None:
    """Prints the answer and the cached tokens, both times."""
    data = base64.b64encode(Path(picture).read_bytes()).decode()
    content = [
        {"type": "text", "text": "Look at this picture with great care. What does it show?"},
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{data}"}},
    ]
    for _ in range(2):
        answer = litellm.completion(
            model="openai/any",
            api_base=f"{server}/v1",
            api_key="none",
            messages=[{"role": "user", "content": content}],
            max_tokens=16,
            temperature=0,
        )
        usage = answer.usage
        print(repr(answer.choices[0].message.content))
        cached = usage.prompt_tokens_details.cached_tokens
        print(f"cached {cached} of {usage.prompt_tokens} prompt tokens")


if __name__ == "__main__":
    main(*sys.argv[1:3])
