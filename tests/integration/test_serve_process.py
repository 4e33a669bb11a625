# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""The life of a server process: what it says at start, and how it stops."""

from __future__ import annotations

import contextlib
import re
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from support.engine import wait_until
from support.server import Server

from tensorrt_llm.serve.http_server import FORCED_EXIT

LONG = {
    "messages": [{"role": "user", "content": "Go on."}],
    "ignore_eos": True,
    "max_tokens": 16_000,
}


@contextlib.contextmanager
def started(checkpoint: Path, log: Path, *options: object) -> Iterator[Server]:
    words = [str(checkpoint), "--kv_cache_max_tokens", "16384", *map(str, options)]
    with Server(words, log) as server:
        server.wait_until_ready()
        yield server


def wait_for_log(server: Server, pattern: str, seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not re.search(pattern, server.log_text()):
        assert time.monotonic() < end, f"never printed {pattern!r}:\n{server.log_tail()}"
        time.sleep(0.02)


def test_what_is_printed_at_start(reuse_on: Server, media_dir: Path) -> None:
    for line in (
        "kv_cache_config:\n  enable_block_reuse: true\n",
        "  free_gpu_memory_fraction: 0.5\n",
        "max_seq_len: 8192\n",
        "block reuse: on; reuse-safe: text, image, audio\n",
        f"at {reuse_on.url}\n",
    ):
        assert line in reuse_on.log_text(), line


def test_stopping_lets_requests_finish_and_takes_no_new_ones(llama_checkpoint, tmp_path) -> None:
    """And what else a command line may say: no reuse, another name."""
    options = ("--no_enable_block_reuse", "--served_model_name", "mine", "--grace_seconds", 60)
    with started(llama_checkpoint, tmp_path / "log", *options) as server:
        assert "  enable_block_reuse: false\n" in server.log_text()
        assert "block reuse: off" in server.log_text()
        replies = [server.chat("The same again. " * 20) for _ in range(2)]
        assert [reply.cached for reply in replies] == [0, 0]
        assert replies[0].text == replies[1].text
        models = httpx.get(f"{server.url}/v1/models", trust_env=False).json()
        assert [card["id"] for card in models["data"]] == ["mine"]
        with server.open_stream({**LONG, "max_tokens": 800}) as events:
            next(events)
            server.process.send_signal(signal.SIGTERM)
            wait_for_log(server, "Shutting down")
            with pytest.raises(httpx.TransportError):
                server.chat("late")
            rest = list(events)
        assert rest[-1]["choices"][0]["finish_reason"] == "length"
        assert server.process.wait(60) == 0, server.log_tail()
        wait_until(lambda: server.processes() == [], "nothing of it stays")
        assert "Traceback" not in server.log_text()


def test_after_the_time_of_grace_streams_end_with_an_error(llama_checkpoint, tmp_path) -> None:
    with started(llama_checkpoint, tmp_path / "log", "--grace_seconds", 0) as server:
        with server.open_stream(LONG) as events:
            next(events)
            server.process.send_signal(signal.SIGINT)
            rest = list(events)
        assert "stopped" in rest[-1]["error"]["message"]
        assert server.process.wait(60) == 0, server.log_tail()
        assert "Traceback" not in server.log_text()


def test_a_second_interrupt_waits_for_nothing(llama_checkpoint: Path, tmp_path: Path) -> None:
    with started(llama_checkpoint, tmp_path / "log", "--grace_seconds", 60) as server:

        def hold_on() -> None:
            # The connection breaks, as it should.
            with (
                contextlib.suppress(httpx.TransportError),
                server.open_stream(LONG) as events,
            ):
                list(events)

        client = threading.Thread(target=hold_on)
        client.start()
        wait_for_log(server, "POST /v1/chat/completions .* 200")
        server.process.send_signal(signal.SIGINT)
        wait_for_log(server, "Shutting down")
        server.process.send_signal(signal.SIGINT)
        assert server.process.wait(60) == FORCED_EXIT
        assert "Traceback" not in server.log_text()
        client.join()


def test_a_signal_while_loading_is_no_failure(phi4mm_checkpoint: Path, tmp_path: Path) -> None:
    with Server([str(phi4mm_checkpoint)], tmp_path / "log") as server:
        wait_for_log(server, "configuration:")
        assert server.stop(signal.SIGTERM) == 0, server.log_tail()
        assert "Traceback" not in server.log_text()
