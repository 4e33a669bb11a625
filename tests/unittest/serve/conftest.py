# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""One server with block reuse and one without, for all tests of the routes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.asgi_client import (
    Client,
)
from support.scripted import SCRIPTS, TEMPLATE, build_scripted

from tensorrt_llm.inputs.media_access import MediaAccess
from tensorrt_llm.llmapi.llm import LLM
from tensorrt_llm.serve.openai_server import ServerConfig


@pytest.fixture(scope="package", name="client")
def running_client(phi4mm_checkpoint: Path, tmp_path_factory, engine_host) -> Iterator[Client]:
    allowed = tmp_path_factory.mktemp("allowed")
    access = MediaAccess(allowed_local_media_path=allowed)
    config = ServerConfig("tiny", access, max_request_bytes=4 * 2**20, max_media_items=4)
    options = {
        "kv_cache_config": {"max_tokens": 16_384},
        "max_seq_len": 8192,
        "engine_host": engine_host,
    }
    with LLM(str(phi4mm_checkpoint), enable_chunked_prefill=True, **options) as llm:
        client = Client(llm, config)
        client.allowed = allowed
        yield client


@pytest.fixture(scope="package", name="cold")
def client_without_reuse(phi4mm_checkpoint: Path, engine_host) -> Iterator[Client]:
    cache = {"max_tokens": 16_384, "enable_block_reuse": False}
    media = {"encoder_cache_max_bytes": 0}
    with LLM(
        str(phi4mm_checkpoint),
        kv_cache_config=cache,
        multimodal_config=media,
        max_seq_len=8192,
        engine_host=engine_host,
    ) as llm:
        yield Client(llm, ServerConfig("tiny"))


@pytest.fixture(scope="package", name="tools")
def client_of_a_model_that_calls(tmp_path_factory, engine_host) -> Iterator[Client]:
    folder = build_scripted(tmp_path_factory.mktemp("scripted"), TEMPLATE, SCRIPTS)
    with LLM(str(folder), kv_cache_config={"max_tokens": 2048}, engine_host=engine_host) as llm:
        yield Client(llm, ServerConfig("tiny"))
