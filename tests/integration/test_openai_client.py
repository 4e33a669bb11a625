# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""The official Python client through every feature of the HTTP door, on real servers."""

from __future__ import annotations

import asyncio
import base64
import io
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal

import numpy as np
import openai
import pytest
from pydantic import BaseModel
from support.av_media import video_bytes
from support.media import clip, data_uri, image_bytes, picture, wav_bytes
from support.scripted import SCRIPTS, TEMPLATE, build_scripted
from support.server import Server

BLOCK = 32
MODEL = "any"
LOOK_UP: Any = {
    "type": "function",
    "function": {"name": "look_up", "parameters": {"type": "object"}},
}
ADD: Any = {"type": "function", "function": {"name": "add"}}


class Place(BaseModel, extra="forbid"):
    """What an answer has to be. It holds no free text, which random weights may never end."""

    north: bool
    kind: Literal["town", "lake"]


@pytest.fixture(scope="module")
def calling(
    tmp_path_factory: pytest.TempPathFactory, start_servers: Callable[..., dict[str, Server]]
) -> Server:
    """A server whose model calls tools."""
    folder = build_scripted(tmp_path_factory.mktemp("scripted"), TEMPLATE, SCRIPTS)
    return start_servers({"calling": [str(folder), "--kv_cache_max_tokens", "2048"]})["calling"]


def address(server: Server) -> dict[str, Any]:
    return {"base_url": f"{server.url}/v1", "api_key": "none", "max_retries": 0, "timeout": 60}


@pytest.fixture(name="client")
def client_of_a_model_with_all_media(all_media: Server) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(**address(all_media)) as client:
        yield client


def user(content: Any) -> list[Any]:
    return [{"role": "user", "content": content}]


def media(seed: int) -> dict[str, tuple[str, bytes]]:
    """A file of each kind, with its name."""

    def pixels(number: int, total: int) -> np.ndarray:
        return np.random.default_rng(64 * seed + number).integers(0, 256, (64, 96, 3), np.uint8)

    film = video_bytes(frames=4, fps=2, pixels=pixels)
    return {
        "image": ("a.png", image_bytes(picture(seed))),
        "audio": ("a.wav", wav_bytes(clip(seed))),
        "video": ("a.mp4", film),
    }


def by_value(files: dict[str, tuple[str, bytes]], short: bool = False) -> list[Any]:
    """The same three files as content parts, in the long or in the short form."""
    types = {"image": "image/png", "audio": "audio/wav", "video": "video/mp4"}
    urls = {kind: data_uri(data, types[kind]) for kind, (_, data) in files.items()}
    sound = base64.b64encode(files["audio"][1]).decode()
    if short:
        return [
            {"type": "text", "text": "Compare them."},
            {"type": "input_image", "image_url": urls["image"]},
            {"type": "input_audio", "input_audio": {"data": sound, "format": "wav"}},
            {"type": "video_url", "video_url": urls["video"]},
        ]
    return [
        {"type": "text", "text": "Compare them."},
        {"type": "image_url", "image_url": {"url": urls["image"], "detail": "auto"}},
        {"type": "audio_url", "audio_url": {"url": urls["audio"]}},
        {"type": "video_url", "video_url": {"url": urls["video"]}},
    ]


def cached(usage: Any) -> int:
    """Cached tokens, whichever API's usage it is."""
    details = getattr(usage, "prompt_tokens_details", None) or usage.input_tokens_details
    return details.cached_tokens


def test_every_content_part_and_its_repeat(client: openai.OpenAI, salt: str) -> None:
    files = media(1)
    ask: dict[str, Any] = {"model": MODEL, "max_tokens": 8, "temperature": 0}
    ask["extra_body"] = {"cache_salt": salt}
    first = client.chat.completions.create(messages=user(by_value(files)), **ask)
    full = first.usage.prompt_tokens - 1
    details = first.usage.prompt_tokens_details
    assert details.cached_tokens == 0
    assert min(details.audio_tokens, details.image_tokens, details.video_tokens) > 0
    again = client.chat.completions.create(messages=user(by_value(files, short=True)), **ask)
    assert cached(again.usage) == full
    assert again.choices[0].message.content == first.choices[0].message.content
    other = client.chat.completions.create(
        messages=user(by_value({**files, "video": media(2)["video"]})), **ask
    )
    assert 0 < cached(other.usage) < full, "another video"

    with client.chat.completions.stream(
        messages=user(by_value(files)), stream_options={"include_usage": True}, **ask
    ) as stream:
        kinds = {event.type for event in stream}
        final = stream.current_completion_snapshot
    assert {"chunk", "content.delta", "content.done"} <= kinds
    assert final.choices[0].message.content == first.choices[0].message.content
    assert cached(final.usage) == full


def test_files_are_uploaded_once_and_named(client: openai.OpenAI, salt: str) -> None:
    files, scope = media(3), {"cache_salt": salt}
    made = {
        kind: client.files.create(file=(name, data), purpose="user_data", extra_body=scope)
        for kind, (name, data) in files.items()
    }
    listed = client.files.list(extra_query=scope)
    assert {one.id for one in listed} == {one.id for one in made.values()}
    one = client.files.retrieve(made["video"].id, extra_query=scope)
    assert (one.filename, one.bytes, one.status) == ("a.mp4", len(files["video"][1]), "processed")
    assert client.files.content(one.id, extra_query=scope).read() == files["video"][1]

    ask: dict[str, Any] = {"model": MODEL, "max_tokens": 8, "temperature": 0, "extra_body": scope}
    named: list[Any] = [{"type": "text", "text": "Compare them."}]
    named += [{"type": "file", "file": {"file_id": about.id}} for about in made.values()]
    first = client.chat.completions.create(messages=user(named), **ask)
    again = client.chat.completions.create(messages=user(by_value(files)), **ask)
    assert cached(first.usage) == 0 and cached(again.usage) == again.usage.prompt_tokens - 1
    assert client.files.delete(one.id, extra_query=scope).deleted
    with pytest.raises(openai.NotFoundError):
        client.files.retrieve(one.id, extra_query=scope)
    with pytest.raises(openai.BadRequestError, match=one.id):
        client.chat.completions.create(messages=user(named), **ask)
    with pytest.raises(openai.BadRequestError) as refused:
        client.files.create(file=("a.png", io.BytesIO(b"no picture")), purpose="user_data")
    assert refused.value.param == "file"


def test_responses_go_on_without_old_media(client: openai.OpenAI, salt: str) -> None:
    picture_url = data_uri(image_bytes(picture(4)), "image/png")
    parts: Any = [
        {"type": "input_text", "text": "Look at this picture with great care."},
        {"type": "input_image", "image_url": picture_url, "detail": "auto"},
    ]
    ask: dict[str, Any] = {"model": MODEL, "temperature": 0, "max_output_tokens": 8}
    ask["extra_body"], query = {"cache_salt": salt}, {"cache_salt": salt}
    one = client.responses.create(input=user(parts), **ask)
    assert one.status == "incomplete" and one.incomplete_details.reason == "max_output_tokens"
    two = client.responses.create(input="And now?", previous_response_id=one.id, **ask)
    assert cached(two.usage) >= one.usage.input_tokens
    assert two.previous_response_id == one.id

    with client.responses.stream(input="And now?", previous_response_id=one.id, **ask) as stream:
        text = "".join(e.delta for e in stream if e.type == "response.output_text.delta")
    assert text == two.output_text
    said: Any = [
        {"type": "text", "text": parts[0]["text"]},
        {"type": "image_url", "image_url": {"url": picture_url}},
    ]
    whole = client.chat.completions.create(
        model=MODEL,
        temperature=0,
        max_tokens=8,
        messages=[
            *user(said),
            {"role": "assistant", "content": one.output_text},
            *user("And now?"),
        ],
    )
    assert whole.choices[0].message.content == two.output_text
    assert client.responses.retrieve(two.id, extra_query=query) == two
    client.responses.delete(one.id, extra_query=query)
    with pytest.raises(openai.NotFoundError):
        client.responses.create(input="And now?", previous_response_id=one.id, **ask)


def test_answers_that_follow_a_schema(client: openai.OpenAI) -> None:
    ask: dict[str, Any] = {"model": MODEL, "messages": user("Where?"), "max_tokens": 400}
    form: Any = {"name": "place", "schema": Place.model_json_schema(), "strict": True}
    answer = client.chat.completions.create(
        **ask, seed=1, response_format={"type": "json_schema", "json_schema": form}
    )
    assert answer.choices[0].finish_reason == "stop"
    Place.model_validate_json(answer.choices[0].message.content)
    loose = client.chat.completions.create(**ask, seed=1, response_format={"type": "json_object"})
    # A model of random weights may never close what it opened.
    assert loose.choices[0].message.content.lstrip().startswith("{")


def test_the_parse_helpers(client: openai.OpenAI) -> None:
    chat = client.chat.completions.parse(
        model=MODEL, messages=user("Where?"), seed=2, response_format=Place
    )
    assert isinstance(chat.choices[0].message.parsed, Place)
    response = client.responses.parse(model=MODEL, input="Where?", text_format=Place)
    assert isinstance(response.output_parsed, Place)


def test_sampling_options(client: openai.OpenAI) -> None:
    ask: dict[str, Any] = {"model": MODEL, "messages": user("Once upon a time"), "max_tokens": 12}
    ask["extra_body"] = {"ignore_eos": True}
    several = [client.chat.completions.create(**ask, n=3, seed=7) for _ in range(2)]
    texts = [[choice.message.content for choice in one.choices] for one in several]
    assert texts[0] == texts[1] and len(set(texts[0])) == 3
    assert several[0].usage.completion_tokens == 36

    greedy = client.chat.completions.create(**ask, temperature=0, logprobs=True, top_logprobs=2)
    told = greedy.choices[0].logprobs.content
    assert len(told) == 12 and all(len(token.top_logprobs) == 2 for token in told)
    assert all(token.logprob == token.top_logprobs[0].logprob for token in told)
    text = greedy.choices[0].message.content
    stop = text[len(text) // 2 :][:3]
    stopped = client.chat.completions.create(**ask, temperature=0, stop=[stop])
    assert stopped.choices[0].message.content == text[: text.index(stop)]
    assert stopped.choices[0].finish_reason == "stop"

    with client.chat.completions.create(**ask, n=2, seed=7, stream=True) as stream:
        parts = ["", ""]
        for chunk in stream:
            for choice in chunk.choices:
                parts[choice.index] += choice.delta.content or ""
    assert parts == [
        choice.message.content
        for choice in client.chat.completions.create(**ask, n=2, seed=7).choices
    ]


def test_completions_and_models(client: openai.OpenAI, all_media: Server) -> None:
    (model,) = client.models.list()
    assert client.models.retrieve(model.id) == model
    with pytest.raises(openai.NotFoundError):
        client.models.retrieve("no-such-model")
    ask: dict[str, Any] = {"model": model.id, "max_tokens": 4, "temperature": 0}
    both = client.completions.create(prompt=["Once", "Twice"], logprobs=1, **ask)
    for index, prompt in enumerate(("Once", "Twice")):
        with client.completions.create(prompt=prompt, stream=True, **ask) as stream:
            text = "".join(choice.text for chunk in stream for choice in chunk.choices)
        assert both.choices[index].text == text == "".join(both.choices[index].logprobs.tokens)


def test_tools(calling: Server) -> None:
    with openai.OpenAI(**address(calling)) as client:
        ask: dict[str, Any] = {"model": MODEL, "tools": [LOOK_UP, ADD], "temperature": 0}
        messages = user("Where is it?")
        first = client.chat.completions.create(messages=messages, **ask)
        message = first.choices[0].message
        assert first.choices[0].finish_reason == "tool_calls" and message.content == "I look."
        calls = message.tool_calls
        assert [call.function.name for call in calls] == ["look_up", "add"]
        assert json.loads(calls[0].function.arguments) == {"city": "Oslo"}
        results = [{"role": "tool", "tool_call_id": call.id, "content": "Far."} for call in calls]
        second = client.chat.completions.create(messages=[*messages, message, *results], **ask)
        assert cached(second.usage) >= first.usage.prompt_tokens - BLOCK
        with client.chat.completions.stream(messages=messages, **ask) as stream:
            final = stream.get_final_completion().choices[0].message
        assert [call.function.arguments for call in final.tool_calls] == [
            call.function.arguments for call in calls
        ]
        forced = client.chat.completions.create(messages=messages, tool_choice="required", **ask)
        assert forced.choices[0].message.tool_calls[0].function.name == "add"

        flat: Any = [{"type": "function", "name": "look_up", "parameters": {}, "strict": False}]
        response = client.responses.create(
            model=MODEL, input="Where is it?", tools=flat, temperature=0
        )
        (call,) = [item for item in response.output if item.type == "function_call"]
        assert (call.name, json.loads(call.arguments)) == ("look_up", {"city": "Oslo"})
        output: Any = [{"type": "function_call_output", "call_id": call.call_id, "output": "Far."}]
        after = client.responses.create(
            model=MODEL, input=output, previous_response_id=response.id, tools=flat
        )
        assert after.status == "completed"


def test_errors_are_the_clients_classes(client: openai.OpenAI, tmp_path: Path) -> None:
    ask: dict[str, Any] = {"model": MODEL, "messages": user("Hi.")}
    with pytest.raises(openai.BadRequestError, match="colour") as refused:
        client.chat.completions.create(**ask, extra_body={"colour": "red"})
    assert (refused.value.param, refused.value.status_code) == ("colour", 400)
    with pytest.raises(openai.BadRequestError, match="temperature"):
        client.chat.completions.create(**ask, temperature=-1)
    with pytest.raises(openai.BadRequestError, match="tools"):
        client.chat.completions.create(**ask, tools=[ADD])
    with pytest.raises(openai.BadRequestError):
        client.completions.create(model=MODEL, prompt="word " * 5000)
    with pytest.raises(openai.NotFoundError):
        client.responses.retrieve("resp_none")
    with pytest.raises(openai.NotFoundError):
        client.embeddings.create(model=MODEL, input="There is no such route.")
    outside = {"type": "image_url", "image_url": {"url": str(tmp_path / "a.png")}}
    with pytest.raises(openai.BadRequestError, match=r"image_url|allowed"):
        client.chat.completions.create(model=MODEL, messages=user([outside]))


def test_the_async_client_streams_many_and_leaves_one(all_media: Server, salt: str) -> None:
    ask: dict[str, Any] = {"model": MODEL, "temperature": 0, "stream": True}

    async def play() -> list[str]:
        async with openai.AsyncOpenAI(**address(all_media)) as client:

            async def read(seed: int) -> str:
                url = data_uri(image_bytes(picture(seed)), "image/png")
                part = {"type": "image_url", "image_url": {"url": url}}
                stream = await client.chat.completions.create(
                    messages=user([part]), max_tokens=8, **ask
                )
                return "".join([c.choices[0].delta.content or "" async for c in stream])

            async def leave() -> None:
                endless = await client.chat.completions.create(
                    messages=user("Go on."),
                    max_tokens=4000,
                    extra_body={"ignore_eos": True, "cache_salt": salt},
                    **ask,
                )
                async with endless:
                    async for _ in endless:
                        break

            *texts, _ = await asyncio.gather(*(read(seed) for seed in (11, 12, 11)), leave())
            # What was left takes no more steps: an idle engine has nothing to tell.
            while all_media.metrics():
                await asyncio.sleep(0.05)
            return texts

    texts = asyncio.run(asyncio.wait_for(play(), 60))
    assert texts[0] == texts[2] and all(texts)
