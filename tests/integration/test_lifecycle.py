# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Starting, stopping, hanging up, and many clients at once."""

from __future__ import annotations

import signal
import socket
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.chat_oracle import content_json
from support.media import clip, picture
from support.server import Server

from examples.demo_server import COMMAND

# Most seconds that the end of a server takes, whatever else the machine does.
STOP_SECONDS = 60


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    """Runs the command to its end."""
    words = [str(COMMAND), *map(str, arguments)]
    return subprocess.run(words, capture_output=True, text=True, timeout=60)


def test_help_names_the_options() -> None:
    done = run("--help")
    assert done.returncode == 0
    for option in (
        *("--host", "--port", "--max_batch_size", "--max_num_tokens", "--max_seq_len"),
        *("--enable_block_reuse / --no_enable_block_reuse", "--kv_cache_free_gpu_memory_fraction"),
        *("--allowed_local_media_path", "--trust_remote_code", "--config"),
        "--extra_llm_api_options",
    ):
        assert option in done.stdout


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["--port", "seventy"], "'--port'"),
        (["--max_seq_len", "-1"], "'--max_seq_len'"),
        (["--kv_cache_free_gpu_memory_fraction", "1.5"], "'--kv_cache_free_gpu_memory_fraction'"),
        (["--tokens_per_block", "33"], "'--tokens_per_block'"),
        (["--no_such_option"], "--no_such_option"),
        (["--allowed_local_media_path", "/no/such/folder"], "'--allowed_local_media_path'"),
    ],
)
def test_a_wrong_option_is_named(arguments: list[str], named: str, llama_checkpoint: Path) -> None:
    done = run(llama_checkpoint, *arguments)
    assert done.returncode == 2
    assert named in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("kv_cache_config: {enable_block_reuse: perhaps}", "kv_cache_config.enable_block_reuse"),
        ("kv_cache_config: {no_such_field: 1}", "kv_cache_config.no_such_field"),
        ("[", "--config"),
    ],
)
def test_a_mistake_in_the_yaml_is_named(
    text: str, named: str, llama_checkpoint: Path, tmp_path: Path
) -> None:
    config = tmp_path / "options.yaml"
    config.write_text(text)
    done = run(llama_checkpoint, "--config", config)
    assert done.returncode == 2
    assert named in done.stderr


def test_a_missing_model_folder_is_told_in_one_line(tmp_path: Path) -> None:
    done = run(tmp_path / "nowhere")
    assert done.returncode == 1
    assert str(tmp_path / "nowhere") in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_a_taken_port_is_told_before_the_model_loads(llama_checkpoint: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = run(llama_checkpoint, "--host", "127.0.0.1", "--port", port)
    assert done.returncode == 1
    assert f"127.0.0.1:{port}" in done.stderr
    assert "Loading" not in done.stderr


def test_the_effective_configuration_is_printed_at_start(reuse_on: Server) -> None:
    log = reuse_on.log_text()
    text = log[log.index("kv_cache_config:") : log.index("multimodal_config:")]
    printed = yaml.safe_load(text)["kv_cache_config"]
    assert printed["enable_block_reuse"] is True
    assert (printed["free_gpu_memory_fraction"], printed["tokens_per_block"]) == (0.5, 32)


def assert_ends(server: Server, number: signal.Signals) -> None:
    """A signal ends the server in time, without failure, and nothing of it stays."""
    assert server.process.pid in server.processes()
    assert len(server.processes()) >= 3, "door, host and engine"
    began = time.monotonic()
    assert server.stop(number) == 0
    assert time.monotonic() - began < STOP_SECONDS
    wait_until(lambda: server.processes() == [], STOP_SECONDS)
    assert "Traceback" not in server.log_text()


def test_a_full_queue_refuses_and_the_same_request_succeeds_later(
    phi4mm_checkpoint: Path, tmp_path: Path, reuse_off: Server
) -> None:
    """C16 with a queue that is full, and the end by SIGINT."""
    options = ["--max_batch_size", "1", "--max_queue_size", "1", "--kv_cache_max_tokens", "16384"]
    content = content_json(picture(61), "What is this?")
    endless = {
        "messages": [{"role": "user", "content": "Hello"}],
        "max_tokens": 6000,
        "ignore_eos": True,
    }
    with Server([str(phi4mm_checkpoint), *options], tmp_path / "log") as server:
        server.wait_until_ready()
        with ThreadPoolExecutor(1) as other_client:
            with server.open_stream(endless) as running:
                next(running)
                queued = other_client.submit(server.chat, "Hello")
                wait_until(lambda: server.metrics()[-1]["numQueuedRequests"] == 1)
                refused = server.chat(content)
                assert refused.status == 429
                assert int(refused.headers["retry-after"]) >= 1
                assert refused.error["code"] == 429
                assert not queued.done()
            # The running request has left, so the queued one can run.
            assert queued.result().status == 200
        reply = server.chat(content)
        assert (reply.status, reply.text) == (200, reuse_off.chat(content).text)
        assert_ends(server, signal.SIGINT)


def wait_until(condition: Any, seconds: float = 60) -> None:
    """Waits for something to become true."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            if condition():
                return
        except IndexError:  # no iteration since the last look
            pass
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.05)


def test_a_client_that_hangs_up_frees_its_request(reuse_on: Server) -> None:
    body = {
        "messages": [{"role": "user", "content": content_json(clip(62, 3.0), "Go on.")}],
        "max_tokens": 8000,
        "ignore_eos": True,
    }
    with reuse_on.open_stream(body) as events:
        for _ in range(3):
            next(events)
        wait_until(lambda: reuse_on.metrics()[-1]["numActiveRequests"] == 1)

    def alone() -> bool:
        assert reuse_on.chat("Hello").status == 200
        last.update(reuse_on.metrics()[-1])
        return (last["numActiveRequests"], last["numCompletedRequests"]) == (1, 1)

    last: dict[str, Any] = {}
    wait_until(alone)
    cache = last["kvCacheStats"]
    assert (cache["usedNumBlocks"], cache["freeNumBlocks"]) == (0, cache["maxNumBlocks"])
    assert last["multimodalStats"]["embeddingStore"]["pinnedCount"] == 0


def test_twenty_requests_at_once(reuse_on: Server, reuse_off: Server, salt: str) -> None:
    """Text, sound and pictures in one batch; every other one streamed, each asked twice."""
    contents: list[Any] = []
    for seed in range(70, 75):
        contents.append(f"How many people are in room {seed}?")
        contents.append(content_json("Who is speaking?", clip(seed % 72, 1.0 + seed % 3)))
    for seed in range(80, 85):
        contents.append(content_json(picture(seed), "What is this?"))
        contents.append(content_json(picture(seed), clip(seed, 1.0), "Compare."))
    assert len(contents) == 20
    truths = [reuse_off.chat(content).text for content in contents]

    def ask(index: int) -> tuple[int, int, str]:
        index %= len(contents)
        reply = reuse_on.chat(contents[index], stream=bool(index % 2), cache_salt=salt)
        return reply.status, index, reply.text

    reuse_on.metrics()
    with ThreadPoolExecutor(20) as clients:
        answers = list(clients.map(ask, range(2 * len(contents))))
    assert answers == [(200, index, truths[index]) for index in range(20)] * 2
    steps = [entry["inflightBatchingStats"] for entry in reuse_on.metrics()]
    assert max(step["numScheduledRequests"] for step in steps) > 1, "they ran together"
    assert reuse_on.healthy()
