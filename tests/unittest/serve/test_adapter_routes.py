# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Adapters over HTTP: loaded on loopback, named as a model, seen by render, gone when unloaded."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.asgi_client import CHAT, COMPLETIONS, Client, cached, chat_body, full_repeat
from support.checkpoints import build_checkpoint
from support.lora import merged, write_adapter
from support.reference import ReferenceModel

from tensorrt_llm.llmapi.llm import LLM
from tensorrt_llm.serve.openai_server import ServerConfig

LOAD, UNLOAD = "/v1/load_lora_adapter", "/v1/unload_lora_adapter"
RENDER = "/v1/chat/completions/render"
HERE = {"host": "localhost"}
QUESTION = "Tell me about a thing that is not far from here, please. " * 3


@pytest.fixture(scope="module")
def checkpoint(checkpoint_root: Path) -> Path:
    return build_checkpoint("qwen2", checkpoint_root)


@pytest.fixture(scope="module")
def server(checkpoint: Path, engine_host) -> Iterator[Client]:
    options: dict[str, Any] = {"kv_cache_config": {"max_tokens": 4096}, "device": "cpu"}
    with LLM(str(checkpoint), engine_host=engine_host, **options) as llm:
        yield Client(llm, ServerConfig("tiny"))


def change(server: Client, path: str, name: str, **body: Any) -> dict[str, Any]:
    reply = server.send("POST", path, json={"lora_name": name, **body}, headers=HERE)
    assert reply.status_code == 200, reply.text
    return reply.json()


def test_a_loaded_adapter_is_a_model(server: Client, checkpoint, tmp_path) -> None:
    stock = ReferenceModel(checkpoint)
    folder = write_adapter(tmp_path / "adapter", stock.model, 1)
    models = {"tiny": stock, "fine": merged(stock, folder)}
    card = change(server, LOAD, "fine", lora_path=str(folder))
    assert (card["id"], card["parent"]) == ("fine", "tiny")
    listed = server.send("GET", "/v1/models").json()["data"]
    assert [(entry["id"], entry.get("parent")) for entry in listed] == [
        ("tiny", None),
        ("fine", "tiny"),
    ]
    body = chat_body(QUESTION, ignore_eos=True)
    ids = server.send("POST", RENDER, json=body).json()["token_ids"]
    prompt = server.llm.preprocess({"prompt_token_ids": ids}).prompt
    decode = server.llm.tokenizer.decode
    expected = {
        name: decode(model.greedy(prompt, 6).tokens, skip_special_tokens=True)
        for name, model in models.items()
    }
    assert expected["tiny"] != expected["fine"]
    for repeat in (False, True):
        for name in models:
            reply = server.send("POST", CHAT, json={**body, "model": name})
            assert reply.json()["model"] == name
            assert reply.json()["choices"][0]["message"]["content"] == expected[name]
            assert cached(reply) == (full_repeat(reply) if repeat else 0)
    # By TensorRT-LLM's field, and in a completion.
    named = {"lora_request": {"lora_name": "fine", "lora_int_id": 1, "lora_path": ""}}
    fields = {"prompt": ids, "max_tokens": 6, "temperature": 0, "ignore_eos": True, **named}
    reply = server.send("POST", COMPLETIONS, json=fields)
    assert reply.json()["choices"][0]["text"] == expected["fine"]
    # A router sees what tells the blocks apart: the content, not the name.
    change(server, LOAD, "alias", lora_path=str(folder))
    shown = [
        server.send("POST", RENDER, json={**body, "model": name}).json()
        for name in ("tiny", "fine", "alias")
    ]
    assert [one["model"] for one in shown] == ["tiny", "fine", "alias"]
    assert shown[0]["adapter"] is None
    assert shown[1]["adapter"] == shown[2]["adapter"]
    assert len(shown[1]["adapter"]) == 32
    alias = server.send("POST", CHAT, json={**body, "model": "alias"})
    assert cached(alias) == full_repeat(alias)
    # Gone is gone: the model's own answer under that name would be a wrong one.
    change(server, UNLOAD, "fine")
    for path in (CHAT, RENDER):
        reply = server.send("POST", path, json={**body, "model": "fine"})
        assert reply.status_code == 400
        assert "the adapter 'fine' was unloaded" in reply.json()["message"]
    assert server.send("POST", CHAT, json={**body, "model": "alias"}).status_code == 200
    change(server, UNLOAD, "alias")


def test_who_and_what_is_refused(server: Client, tmp_path) -> None:
    def refused(path: str, headers: dict[str, str] = HERE, **body: Any) -> tuple[int, str]:
        reply = server.send("POST", path, json=body, headers=headers)
        return reply.status_code, reply.json()["message"]

    for headers in ({"host": "example.org"}, {**HERE, "origin": "https://example.org"}):
        for path in (LOAD, UNLOAD):
            status, message = refused(path, headers, lora_name="x", lora_path=str(tmp_path))
            if path == UNLOAD:
                status, message = refused(path, headers, lora_name="x")
            assert (status, "loopback only" in message) == (403, True)
    for path, body, words in (
        (LOAD, {"lora_name": "x"}, "lora_path: missing"),
        (LOAD, {"lora_name": "tiny", "lora_path": "y"}, "name of the model itself"),
        (LOAD, {"lora_name": "x", "lora_path": str(tmp_path / "no")}, "no such folder"),
        (UNLOAD, {"lora_name": "x"}, "no adapter 'x' is loaded"),
        (CHAT, chat_body("Hi", lora_request={"lora_name": "x"}), "load_lora_adapter loads one"),
        (
            CHAT,
            chat_body("Hi", lora_request={"lora_name": "x", "lora_path": str(tmp_path)}),
            "load_lora_adapter loads one",
        ),
    ):
        status, message = refused(path, **body)
        assert (status, words in message) == (400, True), message
    assert server.send("POST", CHAT, json=chat_body("Hi")).status_code == 200
