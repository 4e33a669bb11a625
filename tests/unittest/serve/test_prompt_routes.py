# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""What the prompt routes show is what the engine is asked, and showing it runs nothing."""

from __future__ import annotations

from typing import Any

import pytest
from support.asgi_client import (
    CHAT,
    COMPLETIONS,
    LEAD,
    Client,
    audio,
    cached,
    chat_body,
    full_repeat,
    image,
    text,
)
from support.media import data_uri, image_bytes, picture

from tensorrt_llm.serve.openai_protocol import ChatCompletionRequest, CompletionRequest
from tensorrt_llm.serve.prompt_protocol import DetokenizeRequest, TokenizeRequest

TOKENIZE, DETOKENIZE = "/tokenize", "/detokenize"
RENDER = "/v1/chat/completions/render"


def asked(client: Client, path: str, **body: Any) -> dict:
    response = client.send("POST", path, json=body)
    assert response.status_code == 200, response.text
    return response.json()


def rendered(client: Client, content: Any, **fields: Any) -> dict:
    return asked(client, RENDER, **chat_body(content, **fields))


@pytest.mark.parametrize("special", [None, True, False])
def test_a_text_has_the_tokenizers_tokens(client: Client, special: bool | None) -> None:
    words = "Grüße, <|end|> ends a turn."
    fields = {} if special is None else {"add_special_tokens": special}
    answer = asked(client, TOKENIZE, prompt=words, return_token_strs=True, **fields)
    body = {"prompt": words, "max_tokens": 1, "add_special_tokens": special is not False}
    usage = client.send("POST", COMPLETIONS, json=body).json()["usage"]
    assert answer["count"] == len(answer["tokens"]) == usage["prompt_tokens"]
    assert answer["max_model_len"] == 8192
    names = client.llm.tokenizer.convert_ids_to_tokens(answer["tokens"])
    assert answer["token_strs"] == names
    plain = client.llm.tokenizer("Hello there.", add_special_tokens=False).input_ids
    assert asked(client, TOKENIZE, prompt="Hello there.", add_special_tokens=False) == {
        "count": len(plain),
        "max_model_len": 8192,
        "tokens": plain,
    }


def test_text_comes_back_from_its_tokens(client: Client) -> None:
    words = "Grüße an alle. 你好!"
    tokens = asked(client, TOKENIZE, prompt=words, add_special_tokens=False)["tokens"]
    assert asked(client, DETOKENIZE, tokens=tokens) == {"prompt": words}
    assert asked(client, DETOKENIZE, tokens=[]) == {"prompt": ""}
    end = client.llm.tokenizer.eos_token
    special = client.llm.tokenizer.convert_tokens_to_ids([end])
    assert asked(client, DETOKENIZE, tokens=[*special, *tokens]) == {"prompt": end + words}


def test_null_is_the_default_as_for_a_chat(client: Client) -> None:
    nulls = dict.fromkeys(("model", "messages", "add_generation_prompt", "media_io_kwargs"))
    assert asked(client, TOKENIZE, prompt="Hi.", **nulls) == asked(client, TOKENIZE, prompt="Hi.")


def test_bodies_of_megabytes_reach_the_routes_without_the_framework(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    by_hand = []
    for kind in (TokenizeRequest, DetokenizeRequest, ChatCompletionRequest, CompletionRequest):
        monkeypatch.setattr(
            kind, "model_validate", lambda value, kind=kind: by_hand.append(kind) or kind(**value)
        )
    asked(client, TOKENIZE, prompt="Hi.")
    asked(client, DETOKENIZE, tokens=[])
    asked(client, RENDER, **chat_body("Hi."))
    asked(client, CHAT, **chat_body("Hi."))
    asked(client, COMPLETIONS, prompt="Hi.", max_tokens=1)
    kinds = [TokenizeRequest, DetokenizeRequest, *[ChatCompletionRequest] * 2, CompletionRequest]
    assert by_hand == kinds, "the framework does not validate by this method"


def test_a_conversation_has_the_templates_tokens(client: Client) -> None:
    messages = [
        {"role": "user", "content": "What is it?"},
        {"role": "assistant", "content": "A tree."},
        {"role": "user", "content": [text("Which "), text("one?")]},
    ]
    joined = [*messages[:2], {"role": "user", "content": "Which one?"}]
    for ends_open in (True, False):
        expected = client.llm.tokenizer.apply_chat_template(
            joined, add_generation_prompt=ends_open, tokenize=True, return_dict=False
        )
        answer = asked(client, TOKENIZE, messages=messages, add_generation_prompt=ends_open)
        assert answer["tokens"] == expected
    assert rendered(client, "What is it?") == {
        "model": "tiny",
        "token_ids": asked(client, TOKENIZE, messages=messages[:1])["tokens"],
        "features": None,
        "cache_salt": None,
        "adapter": None,
        "adapter_mode": "",
        "tokens_per_block": client.llm.args.kv_cache_config.tokens_per_block,
    }


def test_media_stand_where_the_engine_has_them(client: Client) -> None:
    content = [text(LEAD), image(31), text(" and "), audio(32), text(" and "), image(33)]
    shown = rendered(client, content, cache_salt="shown")
    ids, features = shown["token_ids"], shown["features"]
    assert asked(client, TOKENIZE, messages=chat_body(content)["messages"])["tokens"] == ids
    assert {kind: len(hashes) for kind, hashes in features["mm_hashes"].items()} == {
        "image": 2,
        "audio": 1,
    }
    reply = client.chat(content, cache_salt="shown")
    assert cached(reply) == 0, "showing it filled no block"
    assert cached(client.chat(content, cache_salt="shown")) == full_repeat(reply)
    usage = reply.json()["usage"]
    assert usage["prompt_tokens"] == len(ids)
    for kind, runs in features["mm_runs"].items():
        count = sum(run["length"] for item in runs for run in item)
        assert count == usage["prompt_tokens_details"][f"{kind}_tokens"]
        for item in runs:
            rows = [ids[run["offset"] :][: run["length"]] for run in item]
            assert len(set().union(*rows)) == 1, "every row stands at the same placeholder token"


def test_hashes_are_those_of_the_content(client: Client) -> None:
    def hashes(part: dict, **fields: Any) -> list[str]:
        (found,) = rendered(client, [part, text("Go on.")], **fields)["features"][
            "mm_hashes"
        ].values()
        return found

    other_file = data_uri(image_bytes(picture(41), "BMP"), "image/bmp")
    same = {"type": "image_url", "image_url": {"url": other_file}}
    assert hashes(image(41)) == hashes(same) == hashes(image(41), cache_salt="another")
    others = [
        hashes(image(42)),
        hashes(image(41, uuid="a")),
        hashes(image(41), mm_processor_kwargs={"dynamic_hd": 1}),
    ]
    assert len({tuple(one) for one in (hashes(image(41)), *others)}) == 4


@pytest.mark.parametrize(
    ("path", "body", "param"),
    [
        (TOKENIZE, {}, "prompt"),
        (TOKENIZE, {"prompt": "a", "messages": [{"role": "user", "content": "a"}]}, "prompt"),
        (TOKENIZE, {"prompt": "a", "nonsense": 1}, "nonsense"),
        (TOKENIZE, {"prompt": "<|image|> without one"}, "prompt"),
        (TOKENIZE, {"messages": [{"role": "user", "content": [{"type": "x"}]}]}, "messages[0]"),
        (
            TOKENIZE,
            {
                "messages": [{"role": "user", "content": "a"}],
                "chat_template_kwargs": {"tokenize": True},
            },
            "chat_template_kwargs",
        ),
        (DETOKENIZE, {}, "tokens"),
        (DETOKENIZE, {"tokens": [10**9]}, "tokens"),
        (DETOKENIZE, {"tokens": [-1]}, "tokens"),
        (DETOKENIZE, {"tokens": ["a"]}, "tokens"),
        (RENDER, chat_body("a", temperature=-1), "temperature"),
        (RENDER, chat_body([{"type": "image_url", "image_url": {"url": "http://10.0.0.1/"}}]), "m"),
    ],
)
def test_mistakes_are_named(client: Client, path: str, body: dict, param: str) -> None:
    response = client.send("POST", path, json=body)
    assert response.status_code == 400, response.text
    assert response.json()["param"].startswith(param), response.text
    assert asked(client, TOKENIZE, prompt="Fine.")["count"]
