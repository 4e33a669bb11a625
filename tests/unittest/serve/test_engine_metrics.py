# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Under pressure the metrics of blocks move by what two requests and a small pool come to."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import torch
from support.asgi_client import Client

from tensorrt_llm.llmapi.llm import LLM
from tensorrt_llm.sampling_params import SamplingParams
from tensorrt_llm.serve.openai_server import ServerConfig
from tests.unittest.serve.test_metrics import moved, read

BLOCK = 16
POOL = 8
ONE = SamplingParams(max_tokens=1, ignore_eos=True)


def bytes_per_block(checkpoint: Path) -> int:
    config = json.loads((checkpoint / "config.json").read_text(encoding="utf-8"))
    head = config["hidden_size"] // config["num_attention_heads"]
    values = 2 * config["num_hidden_layers"] * BLOCK * config["num_key_value_heads"] * head
    return values * getattr(torch, config["dtype"]).itemsize


def causes(change: dict[str, float]) -> dict[str, float]:
    found = {}
    for name, count in change.items():
        if match := re.fullmatch(r"kv_blocks_evicted_total\{cause=(\w+)\}", name):
            found[match[1]] = count
    return found


@pytest.mark.parametrize("host_blocks", [0, 2])
def test_blocks_given_up_are_counted_by_cause(
    phi4mm_checkpoint: Path, engine_host, host_blocks: int
) -> None:
    cache = {"max_tokens": POOL * BLOCK, "tokens_per_block": BLOCK}
    options = {"kv_cache_config": cache, "max_seq_len": 128, "engine_host": engine_host}
    cache["host_cache_size"] = host_blocks * bytes_per_block(phi4mm_checkpoint)
    with LLM(str(phi4mm_checkpoint), **options) as llm:
        client = Client(llm, ServerConfig("tiny"))
        start = read(client)
        # Four blocks, the last one incomplete; all of them stay findable.
        llm.generate([300] * (3 * BLOCK + 4), ONE)
        cold = read(client)
        assert cold["kv_blocks_findable{tier=device}"] == 4
        assert not any("evicted" in name for name in moved(start, cold))
        # Seven blocks, and four are empty.
        other = [301] * (6 * BLOCK + 4)
        llm.generate(other, ONE)
        pressed = read(client)
        change = moved(cold, pressed)
        lost = {"device_full": 3}
        if host_blocks:
            # Two move, the third finds no room, and with it goes what continues it there.
            assert change["kv_blocks_offloaded_total{}"] == 2
            lost = {"device_full": 1, "parent_evicted": 2}
        assert causes(change) == lost
        assert change["kv_evicted_idle_seconds_count{}"] == 3
        assert "kv_reuse_gap_seconds_count{}" not in change
        llm.generate(other, ONE)
        warm = moved(pressed, read(client))
        assert warm["kv_blocks_reused_total{}"] == 6
        assert warm["kv_reuse_gap_seconds_count{}"] == 7, "six whole ones and a part"
        if host_blocks:
            before = read(client)
            for token in (302, 303):
                llm.generate([token] * (BLOCK + 4), ONE)
            change = moved(before, read(client))
            assert change["kv_blocks_offloaded_total{}"] == 4
            assert causes(change) == {"host_full": 2}
        full = read(client)
        assert full["kv_blocks{state=free,tier=host}"] == host_blocks
        response = client.send("POST", "/kv_cache/flush")
        assert response.status_code == 200, response.text
        flushed = moved(full, read(client))
        findable = {tier: full[f"kv_blocks_findable{{tier={tier}}}"] for tier in ("device", "host")}
        assert causes(flushed) == {"flushed": sum(findable.values())}
        assert findable["host"] == host_blocks
        assert "kv_evicted_idle_seconds_count{}" not in flushed
        assert (
            full["kv_evicted_idle_seconds_bucket{le=+Inf}"]
            == (full["kv_evicted_idle_seconds_count{}"])
        )


def test_blocks_that_come_back_from_the_host_are_counted(
    phi4mm_checkpoint: Path, engine_host
) -> None:
    size = POOL * bytes_per_block(phi4mm_checkpoint)
    cache = {"max_tokens": POOL * BLOCK, "tokens_per_block": BLOCK, "host_cache_size": size}
    options = {"kv_cache_config": cache, "max_seq_len": 128, "engine_host": engine_host}
    with LLM(str(phi4mm_checkpoint), **options) as llm:
        client = Client(llm, ServerConfig("tiny"))
        prompt = [300] * (3 * BLOCK + 4)
        llm.generate(prompt, ONE)
        before = read(client)
        # Seven blocks where four are empty: three of the first prompt's move, from its end on.
        llm.generate([301] * (6 * BLOCK + 4), ONE)
        moved_out = moved(before, read(client))
        assert moved_out["kv_blocks_offloaded_total{}"] == 3 and not causes(moved_out)
        assert "kv_blocks_onboarded_total{}" not in moved_out
        before = read(client)
        llm.generate(prompt, ONE)
        back = moved(before, read(client))
        # The first block stayed. Two come back whole; of the last, a part is copied out of it.
        assert back["kv_blocks_onboarded_total{}"] == 2
        assert back["kv_blocks_reused_total{}"] == 3
        assert back["kv_blocks_partly_reused_total{}"] == 1
        assert not causes(back)
