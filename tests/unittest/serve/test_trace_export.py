# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Traces as a real collector gets them say what the answers say."""

from __future__ import annotations

import importlib.util
import itertools
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.asgi_client import CHAT, LEAD, Client, audio, cached, chat_body, events, image, text
from support.trace_collector import Span, TraceCollector

from tensorrt_llm.errors import ConfigurationError
from tensorrt_llm.llmapi.llm import LLM
from tensorrt_llm.serve.openai_server import ServerConfig
from tensorrt_llm.serve.trace_endpoint import check_tracing, traces_address

TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


@pytest.fixture(scope="module", name="collector")
def running_collector() -> Iterator[TraceCollector]:
    with TraceCollector() as collector:
        yield collector


@pytest.fixture(scope="module", name="traced")
def traced_client(phi4mm_checkpoint: Path, engine_host, collector) -> Iterator[Client]:
    options = {
        "kv_cache_config": {"max_tokens": 8192},
        "max_seq_len": 4096,
        "engine_host": engine_host,
        "otlp_traces_endpoint": collector.url,
    }
    with LLM(str(phi4mm_checkpoint), **options) as llm:
        client = Client(llm, ServerConfig("tiny"))
        yield client
        client.server.tracing.close()


def arrived(client: Client, collector: TraceCollector) -> dict[str, Span]:
    """The spans since the last call, of one request, by name."""
    client.server.tracing.flush()
    spans = {span.name: span for span in collector.spans}
    assert len(spans) == len(collector.spans)
    collector.spans.clear()
    return spans


def ask(client: Client, body: dict, flags: str = "01", path: str = CHAT):
    headers = {"traceparent": f"00-{TRACE}-{PARENT}-{flags}"}
    return client.send("POST", path, json=body, headers=headers)


def check_tree(spans: dict[str, Span], names: set[str], path: str = CHAT) -> None:
    root = spans[f"POST {path}"]
    assert set(spans) == {root.name, *names}
    assert {span.trace_id for span in spans.values()} == {TRACE}
    assert root.parent_id == PARENT
    for name in names:
        above = root if name in ("load", "engine") else spans["engine"]
        assert spans[name].parent_id == above.span_id
        assert above.began <= spans[name].began <= spans[name].ended <= above.ended
    order = [spans[name] for name in ("queue", "encode", "prefill", "decode") if name in names]
    for earlier, later in itertools.pairwise(order):
        assert earlier.ended <= later.began
    assert not any(span.failed for span in spans.values())
    assert abs(root.ended / 1e9 - time.time()) < 600


def test_spans_say_where_the_time_went_and_what_was_cached(
    traced: Client, collector: TraceCollector
) -> None:
    body = chat_body([text(LEAD), image(31), audio(32)], max_tokens=5, ignore_eos=True)
    stages = {"load", "engine", "queue", "prefill", "decode"}
    for repeat, names in enumerate((stages | {"encode"}, stages)):
        reply = ask(traced, body)
        usage = reply.json()["usage"]
        spans = arrived(traced, collector)
        check_tree(spans, names)
        root, engine = spans[f"POST {CHAT}"].attributes, spans["engine"].attributes
        assert root["http.route"] == CHAT
        assert root["http.response.status_code"] == 200
        assert engine["gen_ai.usage.input_tokens"] == usage["prompt_tokens"]
        assert engine["gen_ai.usage.output_tokens"] == usage["completion_tokens"] == 5
        asked, found = (
            {
                name.rsplit(".", 1)[1]: count
                for name, count in engine.items()
                if name.startswith(f"trtllm.{what}_tokens.")
            }
            for what in ("prompt", "cached")
        )
        assert sum(asked.values()) == usage["prompt_tokens"]
        assert sum(found.values()) == cached(reply) == repeat * (usage["prompt_tokens"] - 1)
        details = usage["prompt_tokens_details"]
        assert all(asked[kind] == details[f"{kind}_tokens"] for kind in ("image", "audio"))
        assert not repeat or found["image"] == asked["image"]
    assert set(collector.paths) == {"/v1/traces"}
    assert "notes" not in str(spans), "nothing that a caller wrote"


def test_streams_and_other_routes_are_traced_to_their_last_byte(
    traced: Client, collector: TraceCollector
) -> None:
    names = {"load", "engine", "queue", "prefill", "decode"}
    events(ask(traced, chat_body("Hello.", stream=True)))
    check_tree(arrived(traced, collector), names)
    for path, body in (
        ("/v1/completions", {"model": "tiny", "prompt": "Hello.", "max_tokens": 3}),
        ("/v1/responses", {"input": "Hello.", "max_output_tokens": 3}),
    ):
        assert ask(traced, body, path=path).status_code == 200
        check_tree(arrived(traced, collector), names, path)


def test_refusals_have_no_engine_and_paths_add_no_names(
    traced: Client, collector: TraceCollector
) -> None:
    bad = {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGVsbG8="}}
    assert ask(traced, chat_body([bad])).status_code == 400
    spans = arrived(traced, collector)
    check_tree(spans, {"load"})
    assert spans[f"POST {CHAT}"].attributes["http.response.status_code"] == 400
    assert ask(traced, {}, path="/v1/nowhere").status_code == 404
    assert set(arrived(traced, collector)) == {"POST other"}
    assert traced.send("GET", "/v1/models").status_code == 200
    assert arrived(traced, collector) == {}


def test_who_does_not_sample_is_not_traced(traced: Client, collector: TraceCollector) -> None:
    assert ask(traced, chat_body("Hello."), flags="00").status_code == 200
    assert arrived(traced, collector) == {}
    # Without a parent a request begins a trace of its own.
    assert traced.send("POST", CHAT, json=chat_body("Hello.")).status_code == 200
    (root,) = [span for span in arrived(traced, collector).values() if not span.parent_id]
    assert root.trace_id != TRACE


def test_a_wrong_endpoint_is_told_at_start(monkeypatch: pytest.MonkeyPatch) -> None:
    for wrong in ("localhost:4318", "ftp://host", "http://"):
        with pytest.raises(ConfigurationError, match="otlp_traces_endpoint"):
            check_tracing(wrong)
    check_tracing("http://localhost:4318")
    assert traces_address("http://a:1/") == traces_address("http://a:1") == "http://a:1/v1/traces"
    assert traces_address("http://a:1/x") == "http://a:1/x"
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ConfigurationError, match=r"extra \[otel\]"):
        check_tracing("http://localhost:4318")
