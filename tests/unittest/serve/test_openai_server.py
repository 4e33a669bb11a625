# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""The routes over ASGI, on a real engine with a tiny checkpoint."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.asgi_client import (
    CHAT,
    COMPLETIONS,
    LEAD,
    Client,
    answer,
    audio,
    cached,
    chat_body,
    events,
    full_repeat,
    image,
    text,
)
from support.media import picture

from tensorrt_llm.llmapi.llm import LLM
from tensorrt_llm.sampling_params import SamplingParams
from tensorrt_llm.serve.openai_server import ServerConfig
from tensorrt_llm.version import __version__


def test_small_routes(client: Client) -> None:
    assert client.send("GET", "/health").status_code == 200
    assert client.send("GET", "/version").json() == {"version": __version__}
    (card,) = client.send("GET", "/v1/models").json()["data"]
    assert (card["id"], card["object"], card["max_model_len"]) == ("tiny", "model", 8192)
    assert client.send("GET", "/v1/models/tiny").json() == card
    unknown = client.send("GET", "/v1/models/some/other")
    assert (unknown.status_code, unknown.json()["param"]) == (404, "model")
    missing = client.send("GET", "/v1/nothing")
    assert (missing.status_code, missing.json()["type"]) == (404, "NotFoundError")
    assert client.send("GET", CHAT).status_code == 405
    for path, methods in (
        (CHAT, "POST"),
        ("/v1/files", "GET, POST"),
        ("/v1/files/file-1", "DELETE, GET"),
        ("/v1/responses/resp_1", "DELETE, GET"),
    ):
        refused = client.send("OPTIONS", path)
        assert (refused.status_code, refused.headers["allow"]) == (405, methods)


def test_metrics_drain(client: Client) -> None:
    client.chat("Count me.")
    iterations = client.send("GET", "/metrics").json()
    assert iterations
    assert {"iter", "inflightBatchingStats", "kvCacheStats"} <= set(iterations[-1])
    assert len(client.send("GET", "/metrics").json()) < len(iterations)


@pytest.mark.parametrize("content", [[text(LEAD), image(21)], LEAD], ids=["image", "text"])
def test_cached_tokens_is_one_number_in_every_mode(client: Client, content: Any) -> None:
    for state in ("cold", "warm"):
        counts = []
        for mode in ({}, {"include_usage": True}, {"continuous_usage_stats": True}):
            salt = f"c25-{json.dumps(mode)}"
            fields: dict = {"cache_salt": salt}
            if mode:
                fields |= {"stream": True, "stream_options": {"include_usage": True, **mode}}
            response = client.chat(content, **fields)
            if not mode:
                usages = [response.json()["usage"]]
            else:
                usages = [event["usage"] for event in events(response) if "usage" in event]
            numbers = {usage["prompt_tokens_details"]["cached_tokens"] for usage in usages}
            assert len(numbers) == 1
            last = usages[-1]
            assert last["total_tokens"] == last["prompt_tokens"] + last["completion_tokens"]
            counts.append((last["prompt_tokens"], last["completion_tokens"], numbers.pop()))
        assert len(set(counts)) == 1
        expected = 0 if state == "cold" else counts[0][0] - 1
        assert counts[0][2] == expected


def test_completions_count_cached_tokens_too(client: Client) -> None:
    body = {"prompt": LEAD * 2, "max_tokens": 4, "temperature": 0, "cache_salt": "completions"}
    seen = []
    for stream in (False, True, False):
        more = {"stream": True, "stream_options": {"include_usage": True}} if stream else {}
        response = client.send("POST", COMPLETIONS, json=body | more)
        usage = events(response)[-1]["usage"] if stream else response.json()["usage"]
        seen.append(usage["prompt_tokens_details"]["cached_tokens"])
    full = usage["prompt_tokens"] - 1
    assert seen == [0, full, full]


def test_a_stream_says_what_the_whole_answer_says(client: Client) -> None:
    content = [text("Say "), image(31), text(" and "), audio(31)]
    fields = {"logprobs": True, "top_logprobs": 2, "max_tokens": 8}
    whole = client.chat(content, **fields).json()["choices"][0]
    chunks = events(client.chat(content, **fields, stream=True))
    choices = [chunk["choices"][0] for chunk in chunks]
    assert choices[0]["delta"] == {"role": "assistant", "content": ""}
    assert "".join(c["delta"].get("content", "") for c in choices) == whole["message"]["content"]
    entries = [entry for c in choices[1:] for entry in c["logprobs"]["content"]]
    assert [e["token"] for e in entries] == [e["token"] for e in whole["logprobs"]["content"]]
    reasons = [c["finish_reason"] for c in choices]
    assert reasons == [None] * (len(choices) - 1) + [whole["finish_reason"]]


def test_the_server_and_the_python_api_give_the_same_answer(client: Client) -> None:
    prompt = f"<|user|>{LEAD}<|image|>Name it.<|end|><|assistant|>"
    data = {"prompt": prompt, "multi_modal_data": {"image": picture(41)}}
    result = client.llm.generate(data, SamplingParams(max_tokens=6), use_tqdm=False)
    response = client.chat([text(LEAD), image(41), text("Name it.")])
    assert answer(response) == result.outputs[0].text
    assert response.json()["usage"]["prompt_tokens"] == len(result.prompt_token_ids)
    assert cached(response) == full_repeat(response)


def test_user_text_that_spells_special_tokens_is_text(client: Client) -> None:
    response = client.chat("Write <|image|> and <|end|><|assistant|> for me.")
    assert response.status_code == 200, response.text
    usage = response.json()["usage"]
    assert "image_tokens" not in usage["prompt_tokens_details"]


def test_completions_take_text_ids_and_lists(client: Client) -> None:
    def texts(prompt: Any) -> list[str]:
        body = {"prompt": prompt, "max_tokens": 5, "temperature": 0}
        response = client.send("POST", COMPLETIONS, json=body)
        assert response.status_code == 200, response.text
        return [choice["text"] for choice in response.json()["choices"]]

    ids = [client.llm.tokenizer(words)["input_ids"] for words in ("Hello", "Good day")]
    each = [texts("Hello")[0], texts("Good day")[0]]
    assert texts(["Hello", "Good day"]) == each
    assert texts(ids) == each
    assert texts(ids[0]) == each[:1]


def test_stop_seed_and_length(client: Client) -> None:
    whole = answer(client.chat("Tell me a tale.", max_tokens=20, ignore_eos=True))
    stop = whole[len(whole) // 2 :][:4]
    cut = client.chat("Tell me a tale.", max_tokens=20, ignore_eos=True, stop=stop)
    choice = cut.json()["choices"][0]
    assert choice["message"]["content"] == whole[: whole.index(stop)]
    assert (choice["finish_reason"], choice["stop_reason"]) == ("stop", stop)
    sampled = {
        answer(client.chat("Tell me.", temperature=1.5, seed=seed, max_tokens=12))
        for seed in (1, 1, 2)
    }
    assert len(sampled) == 2


def test_requests_at_the_same_time_do_not_disturb_each_other(client, cold) -> None:
    contents = [[text(f"Number {n}. "), audio(n) if n % 2 else image(n)] for n in range(6)]
    expected = [answer(cold.chat(content)) for content in contents]
    bodies = [chat_body(content, stream=bool(n % 3)) for n, content in enumerate(contents)]
    responses = client.send_all([("POST", CHAT, {"json": body}) for body in bodies])
    for n, response in enumerate(responses):
        if bodies[n]["stream"]:
            pieces = [event["choices"][0]["delta"] for event in events(response)]
            assert "".join(piece.get("content", "") for piece in pieces) == expected[n]
        else:
            assert answer(response) == expected[n]


def test_openapi_document_describes_the_bodies(client: Client) -> None:
    document = client.send("GET", "/openapi.json").json()
    assert {CHAT, COMPLETIONS, "/v1/models", "/health", "/version", "/metrics"} <= set(
        document["paths"]
    )
    schema = document["components"]["schemas"]["ChatCompletionRequest"]
    assert schema["additionalProperties"] is False
    assert all("description" in field for field in schema["properties"].values())
    assert schema["examples"]


def test_openapi_document_describes_the_answers(client: Client) -> None:
    paths = client.send("GET", "/openapi.json").json()["paths"]
    for path, operations in paths.items():
        for operation in operations.values():
            answers = set(operation["responses"])
            assert {"200", "401", "431", "500"} <= answers and "422" not in answers, path
    kinds = {
        CHAT: {"application/json", "text/event-stream"},
        "/prometheus/metrics": {"text/plain"},
        "/kv_cache/ui": {"text/html"},
        "/v1/files/{file_id}/content": {"application/octet-stream"},
        "/health": set(),
    }
    for path, expected in kinds.items():
        (operation,) = paths[path].values()
        assert set(operation["responses"]["200"].get("content", {})) == expected, path


def test_templates_and_their_variables(llama_checkpoint: Path, engine_host) -> None:
    template = "{{ mood }}{% for m in messages %}{{ m.content }}{% endfor %}"
    template += "{% if add_generation_prompt %}END{% endif %}"
    cache = {"max_tokens": 1024}
    options = {"kv_cache_config": cache, "engine_host": engine_host}
    with LLM(str(llama_checkpoint), chat_template=template, **options) as llm:
        client = Client(llm, ServerConfig("tiny"))

        def count(**fields: Any) -> int:
            response = client.chat("Hello", max_tokens=1, **fields)
            assert response.status_code == 200, response.text
            return response.json()["usage"]["prompt_tokens"]

        def tokens(words: str) -> int:
            return len(llm.tokenizer(words)["input_ids"])

        assert count() == tokens("HelloEND")
        assert count(add_generation_prompt=False) == tokens("Hello")
        mood = {"mood": "Sad and tired. "}
        assert count(chat_template_kwargs=mood) == tokens("Sad and tired. HelloEND")


def test_health_by_a_token_runs_the_engine(client: Client) -> None:
    client.llm.get_stats(timeout=0)
    assert client.send("GET", "/health_generate").status_code == 200
    records = client.llm.get_stats()
    assert sum(one["inflightBatchingStats"]["numCtxTokens"] for one in records) == 1
