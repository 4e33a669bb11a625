# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Each metric moves by what really happened; the page and the dashboard name those there are."""

from __future__ import annotations

import json
import logging
import re
from pathlib import Path

import numpy as np
import pytest
from prometheus_client.parser import text_string_to_metric_families
from support.asgi_client import CHAT, LEAD, Client, audio, cached, chat_body, image, text
from support.engine import held, running, start, text_prompt, total
from support.media import image_bytes, picture

from tensorrt_llm.errors import MediaFetchError
from tensorrt_llm.executor.request import GenerationRequest
from tensorrt_llm.executor.result import RequestEnd, RequestTimes
from tensorrt_llm.inputs.data import Digest, PlaceholderRun, ProcessedItem, ProcessedPrompt
from tensorrt_llm.inputs.media_access import MediaAccess
from tensorrt_llm.sampling_params import SamplingParams
from tensorrt_llm.serve.metrics import ServerMetrics
from tensorrt_llm.serve.openai_server import ServerConfig
from tensorrt_llm.serve.prompt_rows import place_of, rows_by_modality

ROOT = Path(__file__).resolve().parents[3]
ROUTE = "/prometheus/metrics"


def read(client: Client) -> dict[str, float]:
    """Values by sample, written as Prometheus does."""
    response = client.send("GET", ROUTE)
    assert response.status_code == 200, response.text
    assert response.headers["content-type"].startswith("text/plain")
    return values(response.text)


def values(page: str) -> dict[str, float]:
    found = {}
    for family in text_string_to_metric_families(page):
        for sample in family.samples:
            labels = ",".join(f"{name}={value}" for name, value in sorted(sample.labels.items()))
            found[f"{sample.name.removeprefix('trtllm_')}{{{labels}}}"] = sample.value
    return found


def moved(before: dict[str, float], after: dict[str, float]) -> dict[str, float]:
    gone = {name: after[name] - before.get(name, 0.0) for name in after}
    return {
        name: by
        for name, by in gone.items()
        if by and not re.search(r"_(created|bucket|sum)\{", name)
    }


@pytest.fixture(scope="module", name="server")
def server_of_its_own(client: Client) -> Client:
    """Counts only what these tests ask."""
    return Client(client.llm, ServerConfig("tiny", max_media_items=4))


def test_each_counter_moves_by_what_happened(server: Client) -> None:
    content = [text(LEAD), image(71), text(" and "), audio(72)]
    fields = {"cache_salt": "metrics", "max_tokens": 5, "ignore_eos": True}
    start = read(server)
    first = server.chat(content, **fields)
    middle = read(server)
    second = server.chat(content, **fields)
    end = read(server)
    details = second.json()["usage"]["prompt_tokens_details"]
    rows = {kind: details[f"{kind}_tokens"] for kind in ("image", "audio")}
    total = second.json()["usage"]["prompt_tokens"]
    texts = total - sum(rows.values())
    cold, warm = moved(start, middle), moved(middle, end)
    for change in (cold, warm):
        assert change["requests_total{outcome=length}"] == 1
        assert change["generated_tokens_total{}"] == 5
        assert change["time_to_first_token_seconds_count{}"] == 1
        assert change["request_seconds_count{}"] == change["queue_seconds_count{}"] == 1
        assert change["http_responses_total{route=/v1/chat/completions,status=200}"] == 1
        assert change["prompt_tokens_total{modality=text}"] == texts
        for kind, count in rows.items():
            assert change[f"prompt_tokens_total{{modality={kind}}}"] == count
            assert change[f"media_items_total{{modality={kind}}}"] == 1
        assert change["step_tokens_total{phase=generation}"] == 4
        assert change["step_seconds_count{}"] >= 5
    for kind, count in rows.items():
        assert cold[f"encoder_runs_total{{modality={kind}}}"] == 1
        assert cold[f"media_decode_seconds_count{{modality={kind}}}"] == 1
        assert warm[f"cached_tokens_total{{modality={kind}}}"] == count
        assert warm[f"media_items_cached_total{{modality={kind}}}"] == 1
        assert warm[f"media_decodes_avoided_total{{modality={kind}}}"] == 1
        assert f"media_decodes_avoided_total{{modality={kind}}}" not in cold
        for name in ("encoder_runs_total", "media_decode_seconds_count"):
            assert f"{name}{{modality={kind}}}" not in warm, "a repeat costs neither"
    assert cached(first) == 0
    assert not any(name.startswith(("cached_tokens", "kv_blocks_reused")) for name in cold)
    assert cold["step_tokens_total{phase=context}"] == total
    assert cold["kv_blocks_missed_total{}"] == -(-total // 32)
    assert cold["embedding_misses_total{}"] == 2
    assert cold["kv_blocks_findable{tier=device}"] == -(-(total + 4) // 32)
    assert warm["cached_tokens_total{modality=text}"] == texts - 1
    assert warm["step_tokens_total{phase=context}"] == 1
    assert warm["kv_blocks_reused_total{}"] == (total - 1) // 32
    assert warm["kv_reuse_gap_seconds_count{}"] == -(-(total - 1) // 32)
    assert "kv_reuse_gap_seconds_count{}" not in cold
    assert warm["memo_hits_total{}"] > 0
    assert end["engine_up{}"] == 1
    assert end["kv_blocks{state=held,tier=device}"] == end["engine_requests{state=active}"] == 0
    assert end["kv_blocks{state=free,tier=device}"] == server.llm.model_info.kv_cache_blocks


def test_refusals_are_counted_by_route_and_paths_add_no_labels(server: Client) -> None:
    start = read(server)
    bad = {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGVsbG8="}}
    away = {"type": "image_url", "image_url": {"url": "http://127.0.0.1:1/x.png"}}
    for part in (bad, away):
        assert server.send("POST", CHAT, json=chat_body([part])).status_code == 400
    for path in ("/nowhere", "/nowhere/else"):
        assert server.send("GET", path).status_code == 404
    change = moved(start, read(server))
    assert change["http_responses_total{route=/v1/chat/completions,status=400}"] == 2
    assert change["http_responses_total{route=other,status=404}"] == 2
    assert change["media_errors_total{kind=MediaError,stage=decode}"] == 1
    assert change["media_errors_total{kind=MediaBlockedError,stage=fetch}"] == 1
    assert change["media_fetch_seconds_count{}"] == 1


def test_what_is_stored_is_counted_by_store(server: Client) -> None:
    start = read(server)
    data = image_bytes(picture(74))
    file = server.send("POST", "/v1/files", files={"file": ("a.png", data)}).json()["id"]
    kept = read(server)
    assert moved(start, kept)["stored_bytes{store=files}"] == len(data)
    for wanted, status in ((file, 200), ("file-none", 400)):
        named = {"type": "image_url", "file_id": wanted}
        assert server.chat([text(LEAD), named]).status_code == status
    change = moved(kept, read(server))
    assert change["stored_hits_total{store=files}"] == 1
    assert change["stored_misses_total{store=files}"] == 1
    body = {"input": "Hi.", "max_output_tokens": 4}
    answer = server.send("POST", "/v1/responses", json=body).json()["id"]
    assert server.send("GET", f"/v1/responses/{answer}").status_code == 200
    assert moved(kept, read(server))["stored_hits_total{store=responses}"] == 1
    assert server.send("DELETE", f"/v1/files/{file}").status_code == 200
    assert read(server)["stored_bytes{store=files}"] == start["stored_bytes{store=files}"]


def test_a_request_that_ends_early_is_counted_too(server: Client) -> None:
    start = read(server)
    result = server.llm.generate_async([300] * 50, SamplingParams(max_tokens=5000, ignore_eos=True))
    result.abort()
    assert result.result().outputs[0].finish_reason == "cancelled"
    assert moved(start, read(server))["requests_total{outcome=cancelled}"] == 1


def prompt(identity: Digest | None) -> ProcessedPrompt:
    runs = (PlaceholderRun(40, 10), PlaceholderRun(60, 5))
    item = ProcessedItem("image", identity, runs, {})
    return ProcessedPrompt(np.zeros(100, np.int32), (item,))


def ended(metrics: ServerMetrics, identity: Digest | None, error: Exception | None) -> None:
    times = RequestTimes(arrival=1.0, first_token=2.0, finished=3.0)
    request = GenerationRequest(prompt(identity), SamplingParams())
    reason = None if error else "stop"
    metrics.request_ended(RequestEnd(5, request, 45, 7, times, reason, error))


def test_tokens_that_nobody_can_share_are_counted_with_the_reason() -> None:
    def unshared(metrics: ServerMetrics, reason: str) -> float | None:
        return metrics.registry.get_sample_value("trtllm_unshared_tokens_total", {"reason": reason})

    known, unknown, off = (ServerMetrics(reuses, 32) for reuses in (True, True, False))
    ended(known, Digest(bytes(32)), None)
    ended(unknown, None, ZeroDivisionError("x"))
    ended(off, Digest(bytes(32)), MediaFetchError("x"))
    assert unshared(known, "unidentified_media") is None
    assert unshared(unknown, "unidentified_media") == 100 - 32
    assert unshared(off, "reuse_disabled") == 100
    for metrics, kind in ((unknown, "other"), (off, "MediaFetchError")):
        value = metrics.registry.get_sample_value("trtllm_request_errors_total", {"kind": kind})
        assert value == 1


def test_each_request_is_one_line_of_the_log_without_its_words(
    server: Client, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, "tensorrt_llm.serve.request_log"):
        reply = server.chat([text("A secret. " + LEAD), image(73)], cache_salt="also secret")
    (line,) = [
        record.getMessage() for record in caplog.records if "request_id" in record.getMessage()
    ]
    assert "secret" not in line
    told = json.loads(line.removeprefix("request "))
    usage = reply.json()["usage"]
    rows = usage["prompt_tokens_details"]["image_tokens"]
    assert told["prompt_tokens"] == {"text": usage["prompt_tokens"] - rows, "image": rows}
    assert told["cached_tokens"] == {"text": 0}
    assert told["generated_tokens"] == usage["completion_tokens"]
    assert 0 < told["first_token_ms"] <= told["total_ms"]
    assert told["outcome"] in ("stop", "length")


def test_rows_are_counted_up_to_where_a_match_ends() -> None:
    counts = {end: rows_by_modality(prompt(None), end) for end in (0, 40, 45, 55, 62, 100)}
    assert {end: found.get("image", 0) for end, found in counts.items()} == {
        0: 0,
        40: 0,
        45: 5,
        55: 10,
        62: 12,
        100: 15,
    }
    assert all(sum(found.values()) == end for end, found in counts.items())


def test_a_match_ends_in_text_or_in_an_item() -> None:
    places = {at: place_of(prompt(None), at) for at in (39, 40, 49, 50, 59, 60, 64, 65)}
    inside = {at for at, place in places.items() if place == "image 1"}
    counts = {at: rows_by_modality(prompt(None), at + 1).get("image", 0) for at in places}
    before = {at: rows_by_modality(prompt(None), at).get("image", 0) for at in places}
    assert inside == {at for at in places if counts[at] > before[at]}
    assert set(places.values()) == {"text", "image 1"}


def test_pauses_are_counted(llama_checkpoint: Path) -> None:
    rng = np.random.default_rng(0)
    policy = {"capacity_scheduler_policy": "MAX_UTILIZATION"}
    metrics = ServerMetrics(True, 32)
    with running(llama_checkpoint, kv_max_tokens=288, scheduler_config=policy) as executor:
        executor.listen(metrics)
        prompts = [text_prompt(rng.integers(5, 1200, 40)) for _ in range(6)]
        with held(executor):
            results = [start(executor, prompt, 80) for prompt in prompts]
        for result in results:
            result.result(timeout=60)
        pauses = total(executor.iteration_stats(), "numPausedRequests")
    assert pauses > 0, "no pressure"
    assert metrics.registry.get_sample_value("trtllm_request_pauses_total") == pauses


def test_fetching_is_timed() -> None:
    metrics = ServerMetrics(True, 32)
    access = MediaAccess(allow_loopback=True)
    with pytest.raises(MediaFetchError):
        metrics.fetcher(access).fetch("http://127.0.0.1:1/gone")
    count = metrics.registry.get_sample_value("trtllm_media_fetch_seconds_count")
    assert count == 1


def names(server: Client) -> set[str]:
    """Every metric there is, by the name that queries use."""
    kinds = text_string_to_metric_families(server.send("GET", ROUTE).text)
    found = {f"{kind.name}_total" if kind.type == "counter" else kind.name for kind in kinds}
    # Beside each metric the library tells when it was made.
    return {name for name in found if not name.endswith("_created")}


def test_the_page_names_every_metric_and_no_other(server: Client) -> None:
    page = (ROOT / "docs" / "metrics.md").read_text(encoding="utf-8")
    tables = "\n".join(line for line in page.splitlines() if line.startswith("| `trtllm"))
    first_cells = "\n".join(line.split(" | ")[0] for line in tables.splitlines())
    assert set(re.findall(r"`(trtllm_\w+)`", first_cells)) == names(server)


def test_the_dashboard_asks_for_every_metric_and_no_other(server: Client) -> None:
    dashboard = json.loads((ROOT / "examples" / "grafana_dashboard.json").read_text())
    asked: set[str] = set()
    for panel in dashboard["panels"]:
        for target in panel["targets"]:
            asked.update(re.findall(r"trtllm_\w+", target["expr"]))
    histograms = {re.sub(r"_(bucket|count|sum)$", "", name) for name in asked}
    assert histograms == names(server)
