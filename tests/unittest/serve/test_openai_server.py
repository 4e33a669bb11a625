# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""The routes over ASGI, on a real engine with a tiny checkpoint."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from support.media import clip, data_uri, image_bytes, picture, wav_bytes

from tensorrt_llm.inputs.media_access import MediaAccess
from tensorrt_llm.llmapi.llm import LLM
from tensorrt_llm.sampling_params import SamplingParams
from tensorrt_llm.serve.openai_server import OpenAIServer, ServerConfig
from tensorrt_llm.version import __version__

BLOCK = 32
CHAT, COMPLETIONS = "/v1/chat/completions", "/v1/completions"
LEAD = "Read these notes with great care before you answer. " * 4


class Client:
    """Asks the application over ASGI, one event loop a call."""

    def __init__(self, llm: LLM, config: ServerConfig) -> None:
        self.llm = llm
        self.server = OpenAIServer(llm, config)
        self.app = self.server.app

    def send(self, method: str, path: str, **options: Any) -> httpx.Response:
        return self.send_all([(method, path, options)])[0]

    def send_all(self, requests: list[tuple[str, str, dict]]) -> list[httpx.Response]:
        async def run() -> list[httpx.Response]:
            transport = httpx.ASGITransport(self.app)
            async with httpx.AsyncClient(
                transport=transport, base_url="http://test", timeout=60
            ) as client:
                return await asyncio.gather(
                    *(client.request(method, path, **options) for method, path, options in requests)
                )

        return asyncio.run(run())

    def chat(self, content: Any, **fields: Any) -> httpx.Response:
        return self.send("POST", CHAT, json=chat_body(content, **fields))


def chat_body(content: Any, **fields: Any) -> dict:
    messages = [{"role": "user", "content": content}]
    return {"model": "tiny", "messages": messages, "max_tokens": 6, "temperature": 0, **fields}


def text(words: str) -> dict:
    return {"type": "text", "text": words}


def image(seed: int, **more: Any) -> dict:
    url = data_uri(image_bytes(picture(seed)), "image/png")
    return {"type": "image_url", "image_url": {"url": url}, **more}


def audio(seed: int) -> dict:
    return {"type": "audio_url", "audio_url": {"url": data_uri(wav_bytes(clip(seed)), "audio/wav")}}


def answer(response: httpx.Response) -> str:
    assert response.status_code == 200, response.text
    return response.json()["choices"][0]["message"]["content"]


def cached(response: httpx.Response) -> int:
    return response.json()["usage"]["prompt_tokens_details"]["cached_tokens"]


def events(response: httpx.Response) -> list[dict]:
    assert response.status_code == 200, response.text
    assert response.headers["content-type"].startswith("text/event-stream")
    lines = [line.removeprefix("data: ") for line in response.text.split("\n\n") if line]
    assert lines[-1] == "[DONE]"
    return [json.loads(line) for line in lines[:-1]]


def full_repeat(response: httpx.Response) -> int:
    return response.json()["usage"]["prompt_tokens"] - 1


@pytest.fixture(scope="module", name="client")
def running_client(phi4mm_checkpoint: Path, tmp_path_factory) -> Iterator[Client]:
    allowed = tmp_path_factory.mktemp("allowed")
    access = MediaAccess(allowed_local_media_path=allowed)
    config = ServerConfig("tiny", access, max_request_bytes=4 * 2**20, max_media_items=4)
    options = {"kv_cache_config": {"max_tokens": 16_384}, "max_seq_len": 8192}
    with LLM(str(phi4mm_checkpoint), enable_chunked_prefill=True, **options) as llm:
        client = Client(llm, config)
        client.allowed = allowed
        yield client


@pytest.fixture(scope="module", name="cold")
def client_without_reuse(phi4mm_checkpoint: Path) -> Iterator[Client]:
    cache = {"max_tokens": 16_384, "enable_block_reuse": False}
    media = {"encoder_cache_max_bytes": 0}
    with LLM(
        str(phi4mm_checkpoint), kv_cache_config=cache, multimodal_config=media, max_seq_len=8192
    ) as llm:
        yield Client(llm, ServerConfig("tiny"))


def test_small_routes(client: Client) -> None:
    assert client.send("GET", "/health").status_code == 200
    assert client.send("GET", "/version").json() == {"version": __version__}
    (card,) = client.send("GET", "/v1/models").json()["data"]
    assert (card["id"], card["object"], card["max_model_len"]) == ("tiny", "model", 8192)
    missing = client.send("GET", "/v1/nothing")
    assert (missing.status_code, missing.json()["type"]) == (404, "NotFoundError")
    assert client.send("GET", CHAT).status_code == 405


def test_metrics_drain(client: Client) -> None:
    client.chat("Count me.")
    iterations = client.send("GET", "/metrics").json()
    assert iterations
    assert {"iter", "inflightBatchingStats", "kvCacheStats"} <= set(iterations[-1])
    assert len(client.send("GET", "/metrics").json()) < len(iterations)


@pytest.mark.parametrize("media", [audio, image], ids=["audio", "image"])
def test_repeats_come_from_the_cache_with_the_same_answer(client, cold, media) -> None:
    content = [text(LEAD), media(11), text("What is it?")]
    expected = answer(cold.chat(content))
    first = client.chat(content)
    repeats = [client.chat(content) for _ in range(3)]
    assert [answer(one) for one in (first, *repeats)] == [expected] * 4
    assert [cached(one) for one in repeats] == [full_repeat(first)] * 3
    other = [text(LEAD), media(12), text("What is it?")]
    different = client.chat(other)
    assert answer(different) == answer(cold.chat(other))
    lead_tokens = cold.chat([text(LEAD)], max_tokens=1).json()["usage"]["prompt_tokens"]
    assert 0 < cached(different) <= lead_tokens


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


def test_the_order_of_text_and_media_is_kept(client: Client, cold: Client) -> None:
    orders = [
        [text("One. "), image(51), text("Two. "), image(52)],
        [text("One. "), image(52), text("Two. "), image(51)],
        [image(51), image(52), text("One. "), text("Two. ")],
        [text("One. "), text("Two. "), image(51), image(52)],
    ]
    scores = []
    for content in orders:
        pair = [door.chat(content, logprobs=True, max_tokens=1) for door in (client, cold)]
        assert answer(pair[0]) == answer(pair[1])
        entries = pair[0].json()["choices"][0]["logprobs"]["content"]
        scores.append((entries[0]["token"], round(entries[0]["logprob"], 3)))
    assert len(set(scores)) == len(orders)


def test_audio_by_base64_is_the_same_item_as_by_url(client: Client) -> None:
    data = base64.b64encode(wav_bytes(clip(61))).decode()
    by_url = client.chat([text(LEAD), audio(61)])
    part = {"type": "input_audio", "input_audio": {"data": data, "format": "wav"}}
    by_data = client.chat([text(LEAD), part])
    assert answer(by_data) == answer(by_url)
    assert cached(by_data) == full_repeat(by_url)


@pytest.mark.parametrize("detail", ["low", "high", "auto"])
def test_detail_changes_nothing(client: Client, detail: str) -> None:
    plain = image(71)
    first = client.chat([text(LEAD), plain])
    plain["image_url"]["detail"] = detail
    assert cached(client.chat([text(LEAD), plain])) == full_repeat(first)


def test_a_callers_id_is_part_of_the_identity(client: Client) -> None:
    content = [text(LEAD), image(81, uuid="mine")]
    first = client.chat(content)
    assert cached(client.chat(content)) == full_repeat(first)
    assert cached(client.chat([text(LEAD), image(81)])) < full_repeat(first)


def test_salts_do_not_share(client: Client) -> None:
    content = [text(LEAD), audio(91)]
    first = client.chat(content, cache_salt="a")
    assert cached(first) == 0
    assert cached(client.chat(content, cache_salt="b")) == 0
    assert cached(client.chat(content, cache_salt="a")) == full_repeat(first)


@pytest.mark.parametrize("media", [audio, image], ids=["audio", "image"])
def test_a_repeat_is_not_decoded(client: Client, cold: Client, media: Any) -> None:
    loader = client.server.media_loader
    content = [text("Not twice."), media(161)]
    before = loader.decodes
    first = client.chat(content)
    assert loader.decodes == before + 1
    again = client.chat(content)
    asked_otherwise = client.chat([*content, text("And now?")])
    assert loader.decodes == before + 1
    assert answer(again) == answer(first)
    assert answer(asked_otherwise) == answer(cold.chat([*content, text("And now?")]))
    client.chat([text("Not twice."), media(162)])
    assert loader.decodes == before + 2


def test_what_a_tenant_sent_is_unknown_to_others(client: Client) -> None:
    loader, content = client.server.media_loader, [text("Mine."), image(63)]
    before = loader.decodes
    for salt, decodes in (("s1", 1), ("s1", 1), ("s2", 2), (None, 3), ("s2", 3)):
        fields = {} if salt is None else {"cache_salt": salt}
        assert client.chat(content, **fields).status_code == 200
        assert loader.decodes == before + decodes


def test_rows_that_were_evicted_are_made_again(client: Client, cold: Client) -> None:
    """The door knows the item; the engine, which forgot it, makes its rows from what was sent."""
    loader = client.server.media_loader
    content = [text("Forget me."), image(64)]
    expected = answer(client.chat(content))
    client.llm._executor.reset_reuse_state()
    before = loader.decodes
    again = client.chat(content)
    assert loader.decodes == before + 1
    assert answer(again) == expected == answer(cold.chat(content))
    assert cached(again) == 0


def test_media_that_cannot_be_made_again_fails_its_request_only(client, monkeypatch) -> None:
    content = [text("Lost."), image(65)]
    expected = answer(client.chat(content))
    client.llm._executor.reset_reuse_state()

    def broken(*_: Any) -> None:
        raise MemoryError("no room to decode")

    with monkeypatch.context() as patch:
        patch.setattr(client.server.media_loader, "_decoder", broken)
        lost, text_only = client.send_all(
            [("POST", CHAT, {"json": chat_body(c)}) for c in (content, "Only text.")]
        )
    assert lost.status_code == 500
    assert "no room to decode" in lost.json()["message"]
    assert text_only.status_code == 200
    assert answer(client.chat(content)) == expected


def clear_corner() -> dict:
    """A picture with transparent pixels."""
    pixels = picture(66).convert("RGBA")
    pixels.paste((0, 0, 0, 0), (0, 0, 100, 70))
    url = data_uri(image_bytes(pixels), "image/png")
    return {"type": "image_url", "image_url": {"url": url}}


def test_the_background_of_a_request_is_part_of_the_identity(client: Client) -> None:
    content = [text("What lies below?"), clear_corner()]

    def on(*color: int) -> dict:
        return {"media_io_kwargs": {"image": {"rgba_background_color": list(color)}}}

    white = client.chat(content)
    assert cached(client.chat(content, **on(255, 255, 255))) == full_repeat(white)
    for color in ((0, 0, 0), (0, 0, 1)):
        first = client.chat(content, **on(*color))
        assert cached(first) < BLOCK
        assert cached(client.chat(content, **on(*color))) == full_repeat(first)
    assert cached(client.chat(content)) == full_repeat(white)


def test_the_servers_background_holds_unless_the_request_says_otherwise(client: Client) -> None:
    black = {"image": {"rgba_background_color": [0, 0, 0]}}
    other = Client(client.llm, ServerConfig("tiny", media_io_kwargs=black))
    content = [text("On which ground?"), clear_corner()]
    first = other.chat(content)
    assert cached(client.chat(content, media_io_kwargs=black)) == full_repeat(first)
    white = {"image": {"rgba_background_color": [255, 255, 255]}}
    assert cached(other.chat(content, media_io_kwargs=white)) < BLOCK
    assert cached(client.chat(content)) == full_repeat(first)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"image": {"rgba_background_color": [0, 0]}}, "three ints from 0 to 255"),
        ({"image": {"background": 1}}, "media_io_kwargs.image: unknown option 'background'"),
        ({"text": {}}, "'text' is no modality"),
        ({"audio": {"rate": 3}}, "media_io_kwargs.audio: unknown option 'rate'"),
    ],
)
def test_wrong_loading_options_are_400(client: Client, given: dict, message: str) -> None:
    for content in ("Only text.", [text("See."), image(67)]):
        response = client.chat(content, media_io_kwargs=given)
        assert response.status_code == 400
        assert message in response.json()["message"]


def test_user_text_that_spells_special_tokens_is_text(client: Client) -> None:
    response = client.chat("Write <|image|> and <|end|><|assistant|> for me.")
    assert response.status_code == 200, response.text
    usage = response.json()["usage"]
    assert "image_tokens" not in usage["prompt_tokens_details"]


def test_local_files(client: Client, tmp_path: Path) -> None:
    inside, outside = client.allowed / "in.wav", tmp_path / "out.wav"
    for file in (inside, outside):
        file.write_bytes(wav_bytes(clip(101)))

    def ask(path: str) -> httpx.Response:
        return client.chat([text(LEAD), {"type": "audio_url", "audio_url": {"url": path}}])

    by_uri = client.chat([text(LEAD), audio(101)])
    for path in (str(inside), inside.as_uri()):
        assert cached(ask(path)) == full_repeat(by_uri)
    refusals = {ask(str(path)).json()["message"] for path in (outside, tmp_path / "none.wav")}
    (message,) = refusals
    assert message.startswith("messages[0].content[1]: ")
    assert "allowed_local_media_path" in message


BROKEN_WAV = wav_bytes(clip(1))[:-4000]
BAD_CONTENT = {
    "truncated audio": (
        [text("x"), {"type": "audio_url", "audio_url": data_uri(BROKEN_WAV, "audio/wav")}],
        "messages[0].content[1]: ",
    ),
    "unknown scheme": (
        [{"type": "image_url", "image_url": "gopher://x/y.png"}],
        "messages[0].content[0]: unknown scheme 'gopher'",
    ),
    "not an image": (
        [image(1), {"type": "image_url", "image_url": data_uri(b"<html>", "image/png")}],
        "messages[0].content[1]: ",
    ),
    "no data": ([{"type": "image_url"}], "messages[0].content[0]: image_url must be"),
    "no such part": ([{"type": "hologram"}], "messages[0].content[0]: type must be one of"),
    "no such modality": (
        [{"type": "video_url", "video_url": {"url": "x"}}],
        "messages[0].content[0]: this model does not take video; it takes: text, image, audio",
    ),
    "too long": ("word " * 9000, "messages: "),
    "too many items": ([image(1)] * 5, "messages: 5 items exceed max_media_items (4 items)"),
}


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("name", BAD_CONTENT)
def test_bad_requests_are_400_and_leave_no_trace(client, cold, name: str, stream: bool) -> None:
    content, message = BAD_CONTENT[name]
    response = client.chat(content, stream=stream)
    assert response.status_code == 400, response.text
    assert response.json()["message"].startswith(message)
    assert response.json()["param"] in (message.split(": ")[0], "messages")
    good = [text("A good one. "), image(1)]
    assert answer(client.chat(good)) == answer(cold.chat(good))


def test_an_image_first_seen_in_a_refused_request_works_next(client, cold) -> None:
    refused = client.chat([image(111), text("word " * 9000)])
    assert refused.status_code == 400
    content = [text("Now short. "), image(111)]
    assert answer(client.chat(content)) == answer(cold.chat(content))


@pytest.mark.parametrize(
    ("fields", "status", "message"),
    [
        ({"frobnicate": 1}, 400, "frobnicate: unknown field"),
        ({"n": 2}, 400, "n: more than one answer"),
        ({"temperature": -1}, 400, "temperature"),
        ({"cache_salt": " "}, 400, "cache_salt: must not be blank"),
        ({"mm_processor_kwargs": {"hue": 1}}, 400, "mm_processor_kwargs"),
        ({"chat_template_kwargs": {"tokenize": 1}}, 400, "chat_template_kwargs"),
        ({"messages": []}, 400, "messages: "),
        ({"disaggregated_params": {}}, 501, "disaggregated_params: "),
    ],
)
def test_bad_fields_are_named(client: Client, fields: dict, status: int, message: str) -> None:
    response = client.chat("x", **fields)
    assert response.status_code == status, response.text
    assert response.json()["message"].startswith(message)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"{", "the body is no valid JSON"),
        (b"[1]", "the body must be a JSON object"),
        (b"", "the body must be a JSON object"),
        (b"\xff\xfe", "the body is no valid JSON"),
    ],
)
def test_bad_bodies(client: Client, content: bytes, message: str) -> None:
    headers = {"Content-Type": "application/json"}
    response = client.send("POST", CHAT, content=content, headers=headers)
    assert response.status_code == 400
    assert response.json()["message"].startswith(message)


def test_a_body_over_the_limit_is_413(client: Client) -> None:
    response = client.chat("x" * (4 * 2**20))
    assert (response.status_code, response.json()["code"]) == (413, 413)
    assert "max_request_bytes" in response.json()["message"]


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


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"prompt": []}, "prompt: the list of prompts is empty"),
        ({"prompt": [[]]}, "prompt[0]: the prompt holds no tokens"),
        ({"prompt": [1, 99999]}, "prompt: token id 99999 is outside the vocabulary"),
        ({"prompt": [-1]}, "prompt: token id -1 is outside the vocabulary"),
        ({"prompt": ["a", "b"], "stream": True}, "prompt: a stream carries one prompt, got 2"),
        ({"prompt": "see <|image|>"}, "prompt: the prompt has 1 image placeholders"),
        ({"prompt": [[1], [1, 99999]]}, "prompt[1]: token id 99999"),
        ({"prompt": "x", "echo": True}, "echo: "),
        ({}, "prompt: missing"),
    ],
)
def test_bad_completions(client: Client, fields: dict, message: str) -> None:
    response = client.send("POST", COMPLETIONS, json={"max_tokens": 2, **fields})
    assert response.status_code == 400, response.text
    assert response.json()["message"].startswith(message), response.text


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


def test_health_fails_once_the_engine_is_gone(llama_checkpoint: Path) -> None:
    cache = {"max_tokens": 1024}
    llm = LLM(str(llama_checkpoint), kv_cache_config=cache)
    client = Client(llm, ServerConfig("tiny"))
    assert client.send("GET", "/health").status_code == 200
    llm.shutdown()
    assert client.send("GET", "/health").status_code == 503
    assert client.chat("x").status_code == 500
    assert client.send("GET", "/metrics").status_code == 500


def test_a_model_without_media_says_what_it_takes(llama_checkpoint: Path) -> None:
    with LLM(str(llama_checkpoint), kv_cache_config={"max_tokens": 1024}) as llm:
        response = Client(llm, ServerConfig("tiny")).chat([image(1)])
    assert response.status_code == 400
    assert "this model does not take image; it takes: text" in response.json()["message"]


def test_templates_and_their_variables(llama_checkpoint: Path) -> None:
    template = "{{ mood }}{% for m in messages %}{{ m.content }}{% endfor %}"
    template += "{% if add_generation_prompt %}END{% endif %}"
    cache = {"max_tokens": 1024}
    with LLM(str(llama_checkpoint), kv_cache_config=cache, chat_template=template) as llm:
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


def test_a_model_without_a_template_says_so_and_completes(
    llama_checkpoint: Path, tmp_path: Path
) -> None:
    for file in llama_checkpoint.iterdir():
        if file.name != "chat_template.jinja":
            (tmp_path / file.name).write_bytes(file.read_bytes())
    with LLM(str(tmp_path), kv_cache_config={"max_tokens": 1024}) as llm:
        client = Client(llm, ServerConfig("tiny"))
        response = client.chat("Hello")
        assert response.status_code == 400
        assert "--chat_template" in response.json()["message"]
        body = {"prompt": "Hello", "max_tokens": 2}
        assert client.send("POST", COMPLETIONS, json=body).status_code == 200


def test_processor_options_of_a_request(client: Client) -> None:
    content = [text(LEAD), image(121)]
    counts = []
    for crops in (None, 1, None):
        fields = {"mm_processor_kwargs": {"dynamic_hd": crops}} if crops else {}
        response = client.chat(content, **fields)
        details = response.json()["usage"]["prompt_tokens_details"]
        counts.append((details["image_tokens"], details["cached_tokens"]))
    (plain, _), (small, shared), (again, repeated) = counts
    assert small < plain == again
    assert shared < repeated == full_repeat(response)


def test_a_full_queue_is_429(llama_checkpoint: Path) -> None:
    cache = {"max_tokens": 8192}
    with LLM(
        str(llama_checkpoint), kv_cache_config=cache, max_batch_size=1, max_queue_size=1
    ) as llm:
        client = Client(llm, ServerConfig("tiny"))
        body = chat_body("x", max_tokens=200, ignore_eos=True)
        responses = client.send_all([("POST", CHAT, {"json": body})] * 6)
        statuses = sorted(response.status_code for response in responses)
        assert statuses[0] == 200 and statuses[-1] == 429 and set(statuses) == {200, 429}
        refused = next(response for response in responses if response.status_code == 429)
        assert int(refused.headers["Retry-After"]) >= 1
        assert client.chat("x").status_code == 200
