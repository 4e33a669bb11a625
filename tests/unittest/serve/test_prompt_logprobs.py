# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""How likely a prompt's tokens were, over the routes, against transformers' own model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from support.asgi_client import (
    CHAT,
    COMPLETIONS,
    LEAD,
    Client,
    answer,
    cached,
    chat_body,
    events,
    full_repeat,
    image,
    text,
)
from support.reference import ReferenceModel, assert_same_logits

WORDS = f"{LEAD} Which of these words are likely?"


@pytest.fixture(scope="module")
def reference(phi4mm_checkpoint: Path) -> ReferenceModel:
    return ReferenceModel(phi4mm_checkpoint)


def assert_scored(
    client: Client, reference: ReferenceModel, entries: list, ids: list[int], most: int
) -> None:
    """That the entries are what the stock model thinks of these tokens."""
    with torch.no_grad():
        logits = reference.model(torch.tensor([ids])).logits[0, :-1]
    scores = logits.log_softmax(-1)
    assert entries[0] is None and len(entries) == len(ids)
    own, likeliest = [], []
    for entry, token, row in zip(entries[1:], ids[1:], scores, strict=True):
        assert int(next(iter(entry))) == token
        given = entry[str(token)]
        own.append(given["logprob"])
        # Where the stock model has others within rounding, either may come first.
        near = (row > row[token] - 1e-4).sum(), (row > row[token] + 1e-4).sum()
        assert near[1] + 1 <= given["rank"] <= max(near[0], 1)
        ranked = sorted(entry.values(), key=lambda one: one["rank"])[:most]
        likeliest.append([one["logprob"] for one in ranked])
        assert len(entry) == most + (given["rank"] > most)
        assert all(
            one["decoded_token"] == client.llm.tokenizer.decode([int(token_id)])
            for token_id, one in entry.items()
        )
    assert_same_logits(torch.tensor(own), scores.gather(1, torch.tensor(ids)[1:, None])[:, 0])
    if most:
        assert_same_logits(torch.tensor(likeliest), scores.topk(most).values)


def rendered(client: Client, content: Any) -> list[int]:
    response = client.send("POST", f"{CHAT}/render", json=chat_body(content))
    assert response.status_code == 200, response.text
    return response.json()["token_ids"]


@pytest.mark.parametrize("most", [0, 3])
def test_a_chats_prompt_is_scored_as_by_transformers(client, reference, most: int) -> None:
    plain = client.chat(WORDS, cache_salt=f"scored-{most}")
    for _ in range(2):  # what is cached by then must not be found
        response = client.chat(WORDS, cache_salt=f"scored-{most}", prompt_logprobs=most, n=2)
        body = response.json()
        assert answer(response) == answer(plain) and len(body["choices"]) == 2
        assert_scored(client, reference, body["prompt_logprobs"], rendered(client, WORDS), most)
        usage, count = body["usage"], len(body["prompt_logprobs"])
        assert (usage["prompt_tokens"], usage["total_tokens"]) == (count, count + 12)
        details = usage["prompt_tokens_details"]
        assert details == {"cached_tokens": 0, "unshared_tokens": {"prompt_logprobs": count}}
    # Its twin, which does not ask, finds all that the first one left.
    twin = client.chat(WORDS, cache_salt=f"scored-{most}")
    assert "prompt_logprobs" not in twin.json()
    assert cached(twin) == full_repeat(twin)


def test_each_prompt_of_a_completion_is_scored(client: Client, reference) -> None:
    ids = [client.llm.tokenizer(words)["input_ids"] for words in (WORDS, "Good day")]
    body = {"prompt": [*ids, ids[1][:1]], "max_tokens": 2, "temperature": 0}
    choices = client.send("POST", COMPLETIONS, json={**body, "prompt_logprobs": 2}).json()[
        "choices"
    ]
    plain = client.send("POST", COMPLETIONS, json=body).json()["choices"]
    for choice, own in zip(choices, ids, strict=False):
        assert_scored(client, reference, choice["prompt_logprobs"], own, 2)
    assert choices[2]["prompt_logprobs"] == [None]
    assert [choice["text"] for choice in choices] == [choice["text"] for choice in plain]
    assert all("prompt_logprobs" not in choice for choice in plain)


def test_a_prompt_with_a_picture_has_an_entry_for_each_of_its_tokens(client: Client) -> None:
    content = [text(LEAD), image(91), text("Name it.")]
    plain = client.chat(content)
    scored = [client.chat(content, prompt_logprobs=1).json() for _ in range(2)]
    assert scored[0]["prompt_logprobs"] == scored[1]["prompt_logprobs"]
    assert len(scored[0]["prompt_logprobs"]) == plain.json()["usage"]["prompt_tokens"]
    other = client.chat([text(LEAD), image(92), text("Name it.")], prompt_logprobs=1).json()
    assert other["prompt_logprobs"] != scored[0]["prompt_logprobs"]
    assert scored[0]["choices"][0]["message"]["content"] == answer(plain)


@pytest.mark.parametrize("path", [CHAT, COMPLETIONS])
@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"prompt_logprobs": -1}, "in [0, 20], got -1"),
        ({"prompt_logprobs": 21}, "in [0, 20], got 21"),
        ({"prompt_logprobs": "many"}, "valid integer"),
        ({"prompt_logprobs": 1, "stream": True}, "not streamed"),
    ],
)
def test_what_cannot_be_told_is_refused_by_name(client, path, fields: dict, message: str) -> None:
    body = chat_body(WORDS) if path == CHAT else {"prompt": WORDS}
    response = client.send("POST", path, json=body | fields)
    assert response.status_code == 400
    assert response.json()["param"] == "prompt_logprobs"
    assert message in response.json()["message"]


def test_null_asks_for_nothing(client: Client) -> None:
    assert "prompt_logprobs" not in client.chat(WORDS, prompt_logprobs=None).json()
    assert events(client.chat(WORDS, prompt_logprobs=None, stream=True))


def test_the_route_of_responses_refuses_it(client: Client) -> None:
    body = {"input": "Hello.", "prompt_logprobs": 1}
    response = client.send("POST", "/v1/responses", json=body)
    assert (response.status_code, response.json()["param"]) == (400, "prompt_logprobs")
