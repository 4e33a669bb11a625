# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""A family that cannot identify one kind of media: told, refused if asked, not shared."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError
from support.asgi_client import Client, audio, cached, image, text

from tensorrt_llm.errors import ConfigurationError
from tensorrt_llm.inputs.processors.phi4mm import Phi4MultimodalInputProcessor
from tensorrt_llm.llmapi import KvCacheConfig
from tensorrt_llm.llmapi.llm import LLM
from tensorrt_llm.serve.openai_server import ServerConfig

LEAD = "Read these notes with great care before you answer. " * 4


@pytest.fixture(name="deaf")
def family_that_cannot_identify_sounds(monkeypatch) -> None:
    monkeypatch.setattr(Phi4MultimodalInputProcessor, "unidentified_modalities", ("audio",))


def unshared(response) -> dict | None:
    return response.json()["usage"]["prompt_tokens_details"].get("unshared_tokens")


def test_only_what_is_unidentified_is_not_shared(deaf, phi4mm_checkpoint, engine_host) -> None:
    options = {"kv_cache_config": {"max_tokens": 4096}, "engine_host": engine_host}
    with LLM(str(phi4mm_checkpoint), **options) as llm:
        told = "block reuse: on; reuse-safe: text, image; never shared: audio"
        assert llm.reuse_policy.describe() == told
        client = Client(llm, ServerConfig("tiny"))
        heard = [client.chat([text(LEAD), audio(1)]) for _ in range(2)]
        seen = [client.chat([text(LEAD), image(1)]) for _ in range(2)]
        streamed = client.chat(
            [text(LEAD), audio(1)], stream=True, stream_options={"include_usage": True}
        )
    assert heard[0].json()["choices"] == heard[1].json()["choices"]
    total = heard[1].json()["usage"]["prompt_tokens"]
    # Whole blocks of the text before it, no more.
    assert 0 < cached(heard[1]) < total - 16 and cached(heard[1]) % 32 == 0
    assert unshared(heard[1]) == {"unidentified_media": total - cached(heard[1])}
    assert f'"unshared_tokens":{{"unidentified_media":{total - cached(heard[1])}}}' in streamed.text
    assert cached(seen[1]) == seen[1].json()["usage"]["prompt_tokens"] - 1
    assert unshared(seen[1]) is None


def test_strict_reuse_refuses_to_start_such_a_model(deaf, phi4mm_checkpoint: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"^strict_reuse: .* does not identify audio"):
        LLM(str(phi4mm_checkpoint), kv_cache_config={"strict_reuse": True})


def test_strict_reuse_starts_a_model_that_identifies_all(phi4mm_checkpoint, engine_host) -> None:
    cache = KvCacheConfig(strict_reuse=True, max_tokens=2048)
    with LLM(str(phi4mm_checkpoint), kv_cache_config=cache, engine_host=engine_host) as llm:
        assert llm.reuse_policy.describe() == "block reuse: on; reuse-safe: text, image, audio"


def test_strict_reuse_without_reuse_is_a_mistake() -> None:
    with pytest.raises(ValidationError, match=r"strict_reuse: needs enable_block_reuse"):
        KvCacheConfig(strict_reuse=True, enable_block_reuse=False)
