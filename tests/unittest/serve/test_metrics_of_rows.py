# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Encoder rows, parts of blocks and lost events are counted as a few requests bring them about."""

from __future__ import annotations

import json
from pathlib import Path

from support.asgi_client import LEAD, Client, image, text

from tensorrt_llm.llmapi.llm import LLM
from tensorrt_llm.sampling_params import SamplingParams
from tensorrt_llm.serve.openai_server import ServerConfig
from tests.unittest.serve.test_metrics import moved, read

FLOAT32 = 4
ONE = SamplingParams(max_tokens=1, ignore_eos=True)


def test_rows_parts_and_lost_events(client: Client, phi4mm_checkpoint: Path, engine_host) -> None:
    reply = client.chat([text(LEAD), image(201)])
    rows = reply.json()["usage"]["prompt_tokens_details"]["image_tokens"]
    config = json.loads((phi4mm_checkpoint / "config.json").read_text(encoding="utf-8"))
    nbytes = rows * config["hidden_size"] * FLOAT32
    options = {
        "kv_cache_config": {"max_tokens": 8192, "event_buffer_max_size": 1},
        "multimodal_config": {"encoder_cache_max_bytes": nbytes},  # room for one picture
        "max_seq_len": 4096,
        "engine_host": engine_host,
        "dtype": "float32",
    }
    with LLM(str(phi4mm_checkpoint), **options) as llm:
        server = Client(llm, ServerConfig("tiny"))

        def change(words: str, seed: int) -> dict[str, float]:
            before = read(server)
            assert server.chat([text(words), image(seed)]).status_code == 200
            return moved(before, read(server))

        first = change(LEAD, 201)
        assert first["embedding_misses_total{}"] == 1
        assert first["embedding_bytes{tier=device}"] == nbytes
        assert first["memo_misses_total{}"] > 0 and first["memo_bytes{}"] > 0
        again = change(f"Otherwise. {LEAD}", 201)
        assert again["embedding_hits_total{}"] == 1
        assert "encoder_runs_total{modality=image}" not in again
        other = change(LEAD, 202)
        assert other["embedding_evictions_total{}"] == 1
        assert other["encoder_runs_total{modality=image}"] == 1
        assert "embedding_bytes{tier=device}" not in other, "one went, one came"
        before = read(server)
        # One of the two has room, the other is lent to the request.
        assert server.chat([text(LEAD), image(203), image(204)]).status_code == 200
        two = moved(before, read(server))
        assert two["embedding_rejected_total{}"] == 1
        assert two["embedding_misses_total{}"] == two["encoder_runs_total{modality=image}"] == 2
        llm.generate([300] * 50, ONE)
        before = read(server)
        llm.generate([300] * 50 + [301] * 20, ONE)
        partly = moved(before, read(server))
        assert partly["kv_blocks_reused_total{}"] == 1
        assert partly["kv_blocks_partly_reused_total{}"] == 1
        lost = read(server)["kv_events_dropped_total{}"]
        (kept,) = server.send("POST", "/kv_cache_events").json()
        assert lost == kept["event_id"] > 0, "all before the one that was kept"


def test_what_is_remembered_of_media_and_prompts(phi4mm_checkpoint: Path, engine_host) -> None:
    options = {
        "kv_cache_config": {"max_tokens": 8192},
        "max_seq_len": 4096,
        "engine_host": engine_host,
    }

    def changes(memo_bytes: int, seeds: list[int]) -> list[dict[str, float]]:
        media = {"media_memo_max_bytes": memo_bytes}
        found = []
        with LLM(str(phi4mm_checkpoint), multimodal_config=media, **options) as llm:
            server = Client(llm, ServerConfig("tiny"))
            for seed in seeds:
                before = read(server)
                assert server.chat([text(LEAD), image(seed)]).status_code == 200
                change = moved(before, read(server))
                found.append({name: n for name, n in change.items() if name.startswith("memo_")})
        return found

    # The text as sent, the file in it and the item: none is known. A repeat looks for the first
    # and the last.
    first, again, other = changes(2**20, [205, 205, 206])
    assert first["memo_misses_total{}"] == other["memo_misses_total{}"] == 3
    assert "memo_hits_total{}" not in first and "memo_evictions_total{}" not in other
    assert again == {"memo_hits_total{}": 2}
    # Room for what one request leaves: what the next one leaves takes the place of all of it.
    size = round(first["memo_bytes{}"])
    assert other["memo_bytes{}"] == size
    kept, replaced = changes(size, [205, 206])
    assert kept == first
    assert replaced == {"memo_misses_total{}": 3, "memo_evictions_total{}": 3}
