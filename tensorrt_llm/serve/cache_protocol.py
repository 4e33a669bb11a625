# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""The shapes of requests that change what is cached, and of their answers."""

from __future__ import annotations

from pydantic import Field

from tensorrt_llm.serve.openai_protocol import Answer, ChatCompletionRequest

WARM_PRIORITY = 80


class WarmRequest(ChatCompletionRequest):
    """Body of ``POST /kv_cache/warm``: that of a chat, and how long its prompt is kept."""

    retention_priority: int = Field(
        WARM_PRIORITY,
        ge=0,
        le=100,
        description="0, given up first, to 100; what nobody says anything about has 35.",
    )
    retention_seconds: float | None = Field(
        None, ge=0.001, description="After so long unused the priority is 35 again; null: never."
    )


class WarmResponse(Answer):
    """Answer of ``POST /kv_cache/warm``.

    Attributes:
        prompt_tokens: Tokens of the prompt.
        cached_tokens: Of these, what was there already.
    """

    prompt_tokens: int
    cached_tokens: int


class FlushResponse(Answer):
    """Answer of ``POST /kv_cache/flush``: what was dropped.

    Attributes:
        blocks: Cached blocks that are free now; what running requests hold is free when they end.
        embeddings: Encoded items.
        memo_entries: Facts about media and prompts that spared decoding and tokenising.
    """

    blocks: int
    embeddings: int
    memo_entries: int
