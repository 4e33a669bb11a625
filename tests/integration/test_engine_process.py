# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""A server whose engine is killed or stuck, and a server that is killed itself."""

from __future__ import annotations

import contextlib
import re
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import psutil
import pytest
from support.chat_oracle import content_json
from support.engine import names_left, wait_until
from support.media import clip, picture
from support.server import Server

STALL_SECONDS = 6
# From the end of the engine's process to the last byte of a stream. Only a stream that is forgotten
# takes so long: a busy machine must not look like one.
NOTICE_SECONDS = 60
LONG = {
    "messages": [{"role": "user", "content": "Go on."}],
    "ignore_eos": True,
    "max_tokens": 6000,
}


@pytest.fixture(scope="module", name="server")
def running_server(phi4mm_checkpoint: Path, tmp_path_factory) -> Iterator[Server]:
    words = [str(phi4mm_checkpoint), "--kv_cache_max_tokens", "32768", "--max_seq_len", "8192"]
    words += ["--engine_stall_seconds", str(STALL_SECONDS), "--max_engine_restarts", "50"]
    with Server(words, tmp_path_factory.mktemp("server") / "log") as server:
        server.wait_until_ready()
        yield server


def engine_of(server: Server) -> psutil.Process:
    """The engine: what the host was forked to."""
    hosts = [
        process
        for process in psutil.Process(server.process.pid).children()
        if "engine_host" in " ".join(process.cmdline())
    ]
    assert len(hosts) == 1
    (engine,) = hosts[0].children()
    return engine


def health(server: Server) -> httpx.Response:
    return httpx.get(f"{server.url}/health", trust_env=False, timeout=60)


def hold_streams(server: Server, count: int, strike, seconds: float) -> list[dict]:
    """Opens streams, strikes once all of them flow, and gives the last event of each.

    They end within so many seconds.
    """

    def hold(_: int) -> dict:
        with server.open_stream(LONG) as events:
            next(events)
            flowing.append(1)
            last = {}
            for event in events:
                last = event
            return last

    flowing: list[int] = []
    with ThreadPoolExecutor(count) as clients:
        pending = [clients.submit(hold, number) for number in range(count)]
        wait_until(
            lambda: len(flowing) == count or any(future.done() for future in pending),
            "streams flow",
        )
        assert len(flowing) == count, [future.exception() for future in pending if future.done()]
        began = time.monotonic()
        strike()
        last = [future.result() for future in pending]
    took = time.monotonic() - began
    print(f"all streams had ended after {took:.2f} s")
    assert took < seconds
    return last


def counted(server: Server) -> dict[str, float]:
    """What was counted of engines and of requests that they took along."""
    page = httpx.get(f"{server.url}/prometheus/metrics", trust_env=False, timeout=30).text
    found = dict(re.findall(r"^trtllm_(\w+(?:\{[^}]*\})?) (\S+)$", page, re.M))
    names = (
        "engine_restarts_total",
        'requests_total{outcome="error"}',
        'request_errors_total{kind="EngineDiedError"}',
    )
    return {name: float(found.get(name, 0)) for name in names}


def wait_until_healthy(server: Server, seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while health(server).status_code != 200:
        assert time.monotonic() < deadline, server.log_tail()
        time.sleep(0.02)


def test_streams_of_a_killed_engine_end_with_an_error_and_the_next_request_is_right(
    server: Server, reuse_off: Server
) -> None:
    wait_until_healthy(server)
    content = content_json(picture(91), clip(91), "What is this?")
    truth = reuse_off.chat(content).text
    assert server.chat(content).text == truth
    for _ in range(2):
        before = counted(server)
        last = hold_streams(server, 4, lambda: engine_of(server).kill(), NOTICE_SECONDS)
        for event in last:
            assert event["error"]["code"] == 500
            assert "signal 9 (SIGKILL)" in event["error"]["message"]
        wait_until_healthy(server)
        after = counted(server)
        assert [after[name] - before[name] for name in before] == [1, 4, 4]
        # Whatever the memo of the door remembers, the new engine has nothing.
        replies = [server.chat(content) for _ in range(2)]
        assert [reply.text for reply in replies] == [truth, truth]
        assert replies[0].cached == 0 < replies[1].cached
    assert "Traceback" not in server.log_text()


def test_while_there_is_no_engine_the_server_says_so(server: Server) -> None:
    wait_until_healthy(server)
    engine_of(server).kill()
    seen: list[tuple[int, str]] = []
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        reply = server.chat("Hello")
        if reply.status == 200:
            break
        seen.append((reply.status, reply.error["message"]))
        if reply.status == 503:
            assert int(reply.headers["retry-after"]) >= 1
            state = health(server)
            assert state.status_code == 200 or "signal 9" in state.json()["message"]
    assert reply.status == 200
    assert {status for status, _ in seen} <= {500, 503}
    assert any(status == 503 and "started again" in message for status, message in seen)


def test_a_stuck_engine_is_replaced_and_health_never_waits_for_it(server: Server) -> None:
    wait_until_healthy(server)
    engine = engine_of(server)
    took: list[float] = []
    states: list[int] = []

    def strike() -> None:
        engine.suspend()
        with httpx.Client(trust_env=False, base_url=server.url, timeout=60) as client:
            client.get("/version")
            while engine.is_running():
                began = time.monotonic()
                states.append(client.get("/health").status_code)
                took.append(time.monotonic() - began)
                time.sleep(0.05)

    last = hold_streams(server, 2, strike, STALL_SECONDS + NOTICE_SECONDS)
    assert all("was stuck: no turn for" in event["error"]["message"] for event in last)
    took.sort()
    median = took[len(took) // 2]
    print(f"/health with a stuck engine: median {1e3 * median:.1f} ms, most {1e3 * took[-1]:.1f}")
    # One that waited for the engine would be answered when there is another.
    assert states[0] == 200 and len(took) > 3
    wait_until_healthy(server)
    assert not engine.is_running()
    assert server.chat("Hello").status == 200


def run_for(engine: psutil.Process, seconds: float) -> None:
    """Lets an engine have so much time of a processor, however busy the machine is."""
    begun = sum(engine.cpu_times()[:2])
    wait_until(lambda: sum(engine.cpu_times()[:2]) - begun >= seconds, "it runs")


def test_an_engine_that_is_slow_but_moves_is_never_taken_for_stuck(
    server: Server, reuse_off: Server
) -> None:
    """C28: it stands still again and again, altogether for longer than it may at once."""
    wait_until_healthy(server)
    engine, stood, states = engine_of(server), 0.0, set()
    counted = {"stream_options": {"include_usage": True, "continuous_usage_stats": True}}

    def slow_down() -> float:
        stood = 0.0
        while stood < STALL_SECONDS + 1:
            began = time.monotonic()
            engine.suspend()
            time.sleep(0.3)
            states.add(health(server).status_code)
            stood += time.monotonic() - began
            engine.resume()
            run_for(engine, 0.03)
        return stood

    with server.open_stream({**LONG, **counted}) as events, ThreadPoolExecutor(1) as other:
        text, count = "", 0
        slow = other.submit(slow_down)
        for event in events:
            assert "error" not in event, event
            text += event["choices"][0]["delta"].get("content") or ""
            count = event["usage"]["completion_tokens"]
            if slow.done():
                break
        stood = slow.result()
    assert stood > STALL_SECONDS and count > 20, "no pressure"
    assert states == {200}
    assert engine_of(server) == engine
    assert text
    assert reuse_off.post({**LONG, "max_tokens": count, "temperature": 0}).text.startswith(text)


@pytest.mark.parametrize(
    ("when", "number"),
    [
        ("stuck", signal.SIGKILL),
        ("stuck", signal.SIGTERM),
        ("loading", signal.SIGKILL),
    ],
)
def test_whatever_ends_the_server_nothing_of_it_stays(
    llama_checkpoint: Path, tmp_path: Path, when: str, number: signal.Signals
) -> None:
    before = names_left()
    options = [str(llama_checkpoint), "--kv_cache_max_tokens", "8192", "--grace_seconds", "1"]
    with Server(options, tmp_path / "log") as server:
        if when == "loading":
            deadline = time.monotonic() + 60
            while not psutil.Process(server.process.pid).children():
                assert time.monotonic() < deadline
                time.sleep(0.01)
        else:
            server.wait_until_ready()
        family = psutil.Process(server.process.pid).children(recursive=True)
        assert len(family) >= (1 if when == "loading" else 2)
        if when == "loading":
            ended(server, family, number)
            wait_until(lambda: names_left() <= before, "nothing is left")
            return
        with server.open_stream(LONG) as events, contextlib.suppress(httpx.TransportError):
            next(events)
            if when == "stuck":
                engine_of(server).suspend()
            ended(server, family, number)
            list(events)
    wait_until(lambda: names_left() <= before, "nothing is left")


def test_a_server_that_is_killed_while_it_serves_leaves_nothing(server: Server) -> None:
    """The last test here: it ends the server of the others."""
    wait_until_healthy(server)
    family = psutil.Process(server.process.pid).children(recursive=True)
    assert len(family) >= 2
    before = names_left()
    with server.open_stream(LONG) as events, contextlib.suppress(httpx.TransportError):
        next(events)
        ended(server, family, signal.SIGKILL)
        list(events)
    assert names_left() <= before, "an engine that is connected has no names to leave"


def ended(server: Server, family: list[psutil.Process], number: signal.Signals) -> None:
    server.process.send_signal(number)
    status = server.process.wait(60)
    assert status == (0 if number is signal.SIGTERM else -number), server.log_tail()
    _, alive = psutil.wait_procs(family, timeout=60)
    assert alive == []
