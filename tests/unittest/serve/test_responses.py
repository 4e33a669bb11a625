# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""``/v1/responses`` on a real engine: what is kept, and that going on equals saying all again."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import httpx
import openai
import pytest
from support.asgi_client import LEAD, Client, answer, audio, image, text
from support.media import image_bytes, picture

from tensorrt_llm.serve.api_keys import ApiKeys
from tensorrt_llm.serve.openai_server import ServerConfig

RESPONSES = "/v1/responses"


def create(client: Client, given: Any, status: int = 200, **fields: Any) -> dict:
    body = {"input": given, "temperature": 0, "max_output_tokens": 8, **fields}
    response = client.send("POST", RESPONSES, json=body)
    assert response.status_code == status, response.text
    return response.json()


def text_of(response: dict) -> str:
    (message,) = response["output"]
    return message["content"][0]["text"]


def cached(response: dict) -> int:
    return response["usage"]["input_tokens_details"]["cached_tokens"]


def streamed(client: Client, given: Any, **fields: Any) -> list[dict]:
    body = {"input": given, "temperature": 0, "max_output_tokens": 8, "stream": True, **fields}
    response = client.send("POST", RESPONSES, json=body)
    assert response.headers["content-type"].startswith("text/event-stream"), response.text
    events = []
    for block in response.text.strip().split("\n\n"):
        kind, data = block.split("\n")
        events.append(json.loads(data.removeprefix("data: ")))
        assert kind == f"event: {events[-1]['type']}"
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    return events


def user(content: Any) -> dict:
    return {"role": "user", "content": content}


def test_an_answer_is_the_chats(client: Client) -> None:
    content = [text(LEAD), image(81), text("What is it?")]
    whole = create(client, [user(content)], cache_salt="r")
    chat = client.chat(content, max_tokens=8, cache_salt="r2")
    assert text_of(whole) == answer(chat)
    usage = chat.json()["usage"]
    assert whole["usage"]["input_tokens"] == usage["prompt_tokens"]
    assert whole["usage"]["input_tokens_details"] == usage["prompt_tokens_details"]
    assert (whole["status"], whole["incomplete_details"]) == (
        "incomplete",
        {"reason": "max_output_tokens"},
    )
    again = create(client, [user(content)], cache_salt="r")
    assert cached(again) == usage["prompt_tokens"] - 1 and again["id"] != whole["id"]


def test_a_stream_tells_each_step_and_ends_with_the_whole(client: Client) -> None:
    whole = create(client, "Tell me a tale.")
    events = streamed(client, "Tell me a tale.")
    deltas = [event["delta"] for event in events if event["type"] == "response.output_text.delta"]
    # A delta holds what came since the last one, so their number is the engine's pace, not checked.
    assert "".join(deltas) == text_of(whole) and all(deltas)
    kinds = list(dict.fromkeys(event["type"].removeprefix("response.") for event in events))
    assert kinds == [
        *("created", "in_progress", "output_item.added", "content_part.added"),
        *("output_text.delta", "output_text.done", "content_part.done", "output_item.done"),
        "incomplete",
    ]
    assert events[0]["response"]["output"] == []
    last = events[-1]["response"]
    assert text_of(last) == text_of(whole)
    assert client.send("GET", f"{RESPONSES}/{last['id']}").json() == last


@pytest.mark.parametrize("stream", [False, True])
def test_going_on_needs_no_old_media(client: Client, cold: Client, stream: bool) -> None:
    file = client.allowed / f"kept-{stream}.png"
    file.write_bytes(image_bytes(picture(82 + stream)))
    first = [text(LEAD), {"type": "input_image", "image_url": str(file)}, audio(82), text("What?")]
    one = create(client, [user(first)], cache_salt=f"on-{stream}")
    file.unlink()
    decodes = client.server.media_loader.decodes
    fields = {"previous_response_id": one["id"], "cache_salt": f"on-{stream}"}
    two = (
        streamed(client, "And why?", **fields)[-1]["response"]
        if stream
        else create(client, "And why?", **fields)
    )
    assert client.server.media_loader.decodes == decodes
    assert cached(two) >= one["usage"]["input_tokens"]
    three = create(client, "So?", **fields | {"previous_response_id": two["id"]})
    assert cached(three) >= two["usage"]["input_tokens"]
    said = [text(LEAD), image(82 + stream), audio(82), text("What?")]
    messages: list[dict] = [user(said)]
    for response, question in ((one, "And why?"), (two, "So?")):
        messages += [{"role": "assistant", "content": text_of(response)}, user(question)]
    expected = cold.chat("", messages=messages, max_tokens=8)
    assert answer(expected) == text_of(three)
    assert expected.json()["usage"]["prompt_tokens"] == three["usage"]["input_tokens"]


def test_instructions_are_not_carried_over(client: Client) -> None:
    one = create(client, "Hello.", instructions="Speak like a sailor.")
    two = create(client, "Go on.", previous_response_id=one["id"])
    said = [user("Hello."), {"role": "assistant", "content": text_of(one)}, user("Go on.")]
    assert two["usage"]["input_tokens"] == create(client, said)["usage"]["input_tokens"]
    system = {"role": "system", "content": "Speak like a sailor."}
    again = create(client, [system, user("Hello.")])
    assert (again["output"][0]["content"], again["usage"]["input_tokens"]) == (
        one["output"][0]["content"],
        one["usage"]["input_tokens"],
    )
    assert (one["instructions"], two["instructions"]) == ("Speak like a sailor.", None)


def test_what_is_gone_or_anothers_is_unknown(client: Client) -> None:
    one = create(client, "Hello.", cache_salt="mine")
    path = f"{RESPONSES}/{one['id']}"
    for params in ({}, {"cache_salt": "other"}):
        for method in ("GET", "DELETE"):
            response = client.send(method, path, params=params)
            assert response.status_code == 404
            assert response.json()["type"] == "InvalidRequestError"
    error = create(client, "x", 404, previous_response_id=one["id"], cache_salt="other")
    assert error["param"] == "previous_response_id"
    create(client, "x", previous_response_id=one["id"], cache_salt="mine")
    mine = {"cache_salt": "mine"}
    assert client.send("GET", path, params=mine).json() == one
    deleted = client.send("DELETE", path, params=mine).json()
    assert deleted == {"id": one["id"], "object": "response", "deleted": True}
    assert client.send("GET", path, params=mine).status_code == 404
    create(client, "x", 404, previous_response_id=one["id"], cache_salt="mine")
    unstored = create(client, "x", store=False)
    assert client.send("GET", f"{RESPONSES}/{unstored['id']}").status_code == 404


def test_answers_belong_to_their_key(client: Client) -> None:
    keys = ApiKeys.parse(["alpha team", "beta team", "gamma"])
    keyed = Client(client.llm, ServerConfig("tiny", api_keys=keys))

    def get(key: str, name: str) -> int:
        headers = {"Authorization": f"Bearer {key}"}
        return keyed.send("GET", f"{RESPONSES}/{name}", headers=headers).status_code

    body = {"input": "Hello.", "max_output_tokens": 2}
    headers = {"Authorization": "Bearer alpha"}
    name = keyed.send("POST", RESPONSES, json=body, headers=headers).json()["id"]
    assert [get(key, name) for key in ("alpha", "beta", "gamma")] == [200, 200, 404]


def test_the_store_is_bounded(client: Client) -> None:
    small = Client(client.llm, ServerConfig("tiny", max_stored_bytes=12_000))
    names = [create(small, f"Hello {n}. {LEAD}", max_output_tokens=1)["id"] for n in range(8)]
    found = [small.send("GET", f"{RESPONSES}/{name}").status_code for name in names]
    assert found[0] == 404 and found[-1] == 200
    none = Client(client.llm, ServerConfig("tiny", max_stored_bytes=0))
    name = create(none, "Hello.")["id"]
    assert none.send("GET", f"{RESPONSES}/{name}").status_code == 404


def test_tools(tools: Client) -> None:
    offered = [{"type": "function", "name": name} for name in ("look_up", "add")]
    whole = create(tools, "Where?", tools=offered, max_output_tokens=32)
    said, *calls = whole["output"]
    assert said["content"][0]["text"] == "I look." and whole["status"] == "completed"
    asked = [(call["name"], json.loads(call["arguments"])) for call in calls]
    assert asked == [("look_up", {"city": "Oslo"}), ("add", {})]
    events = streamed(tools, "Where?", tools=offered, max_output_tokens=32)
    done = [e["item"] for e in events if e["type"] == "response.output_item.done"]
    ids = ("id", "call_id")
    strip = lambda items: [{k: v for k, v in i.items() if k not in ids} for i in items]  # noqa: E731
    assert strip(done) == strip(whole["output"]) == strip(events[-1]["response"]["output"])
    result = {"type": "function_call_output", "call_id": calls[0]["call_id"], "output": "North."}
    on = create(tools, [result], previous_response_id=whole["id"], tools=offered)
    again = create(tools, [user("Where?"), *whole["output"], result], tools=offered)
    assert on["usage"]["input_tokens"] == again["usage"]["input_tokens"]
    assert cached(again) == again["usage"]["input_tokens"] - 1


def test_an_answer_may_have_to_follow_a_schema(client: Client) -> None:
    schema = {"type": "object", "properties": {"a": {"enum": [1]}}, "required": ["a"]}
    schema["additionalProperties"] = False
    form = {"type": "json_schema", "name": "x", "strict": True, "schema": schema}
    whole = create(client, "Go.", text={"format": form}, max_output_tokens=64, temperature=1)
    assert json.loads(text_of(whole))["a"] == 1


def test_the_official_client(client: Client) -> None:
    async def run() -> None:
        http = httpx.AsyncClient(transport=httpx.ASGITransport(client.app))
        api = openai.AsyncOpenAI(base_url="http://test/v1", api_key="none", http_client=http)
        fields: dict[str, Any] = {"model": "tiny", "max_output_tokens": 8, "temperature": 0}
        one = await api.responses.create(input="Tell me.", **fields)
        assert one.output_text and one.usage and one.usage.input_tokens
        pieces, last = [], None
        stream = await api.responses.create(
            input="Go on.", previous_response_id=one.id, stream=True, **fields
        )
        async for event in stream:
            if event.type == "response.output_text.delta":
                pieces.append(event.delta)
            last = event
        assert last is not None and last.type == "response.incomplete"
        assert last.response.output_text == "".join(pieces)
        assert (await api.responses.retrieve(one.id)).output_text == one.output_text
        await api.responses.delete(one.id)
        with pytest.raises(openai.NotFoundError):
            await api.responses.retrieve(one.id)
        await api.close()

    asyncio.run(run())


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"input": []}, "input"),
        ({"input": 5}, "input"),
        ({"input": [{"type": "reasoning"}]}, "input[0].type"),
        ({"input": [user([{"type": "input_file", "file_url": "x"}])]}, "input[0].content[0]"),
        ({"input": [user("x"), user([image(1), {"type": "input_text"}])]}, "input[1].content[1]"),
        ({"input": "x" * 100_000}, "input"),
        ({"input": [user([{"type": "input_image", "image_url": "/no/such"}])]}, "input[0].content"),
        ({"nonsense": 1}, "nonsense"),
        ({"max_output_tokens": 0}, "max_"),
        ({"temperature": -1}, "temperature"),
        ({"tools": [{"type": "web_search"}]}, "tools"),
        ({"background": True}, "background"),
        ({"text": {"format": {"type": "yaml"}}}, "text"),
        ({"text": {"format": {"type": "json_schema"}}}, "response_format"),
        ({"n": 2}, "n"),
    ],
)
def test_mistakes_are_named(client: Client, fields: dict, param: str) -> None:
    error = create(client, "x", 400, **fields)
    assert error["param"].startswith(param), error
