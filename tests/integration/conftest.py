# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Servers that the integration tests share: starting one takes longer than most tests."""

from __future__ import annotations

import signal
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import pytest
from support.chat_oracle import ChatOracle
from support.checkpoints import build_checkpoint
from support.reference import ReferenceModel
from support.served import Served
from support.server import TIMEOUT_SECONDS, Server

StartServers = Callable[[dict[str, Sequence[str]]], dict[str, Server]]


class FamilyByFamily:
    """Lets the tests of one family's server follow one another, whatever files they are in."""

    # Behind pytest, which orders by fixture within a file.
    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        places = [
            i for i, item in enumerate(items) if "served" in getattr(item, "fixturenames", ())
        ]
        served = sorted(
            (items[place] for place in places), key=lambda one: one.callspec.params["served"]
        )
        for place, item in zip(places, served, strict=True):
            items[place] = item


def pytest_configure(config: pytest.Config) -> None:
    """Registers the order."""
    config.pluginmanager.register(FamilyByFamily())


@pytest.fixture(scope="session")
def media_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder whose files requests may name."""
    return tmp_path_factory.mktemp("media")


@pytest.fixture(scope="session")
def issue_options(phi4mm_checkpoint: Path, media_dir: Path) -> list[str]:
    """The command line of issue 14125, on the tiny checkpoint."""
    return [
        *(str(phi4mm_checkpoint), "--allowed_local_media_path", str(media_dir)),
        *("--max_seq_len", "8192", "--kv_cache_free_gpu_memory_fraction", "0.5"),
        "--trust_remote_code",
    ]


@pytest.fixture(scope="session")
def start_servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StartServers]:
    """Starts servers side by side, given options by name, and ends them with the session."""
    running: list[Server] = []
    with ExitStack() as stack:

        def start(arguments: dict[str, Sequence[str]]) -> dict[str, Server]:
            folder = tmp_path_factory.mktemp("servers")
            servers = {
                name: stack.enter_context(Server(given, folder / f"{name}.log"))
                for name, given in arguments.items()
            }
            running.extend(servers.values())
            for server in servers.values():
                server.wait_until_ready()
            return servers

        yield start
        # All at once: the end of each takes a second or two.
        for server in running:
            server.process.send_signal(signal.SIGINT)
        assert [server.process.wait(TIMEOUT_SECONDS) for server in running] == [0] * len(running)


@pytest.fixture(scope="session")
def pair(
    issue_options: list[str], start_servers: StartServers, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Server]:
    """One server as in the issue, and one whose YAML switches block reuse off."""
    config = tmp_path_factory.mktemp("config") / "off.yaml"
    config.write_text("kv_cache_config:\n  enable_block_reuse: false\n")
    return start_servers(
        {"on": issue_options, "off": [*issue_options, "--config", str(config)]},
    )


@pytest.fixture(scope="session")
def all_media(checkpoint_root: Path, media_dir: Path, start_servers: StartServers) -> Server:
    """A server whose model takes images, audio and video, for the clients that people use."""
    checkpoint = build_checkpoint("qwen2_5_omni", checkpoint_root)
    options = [str(checkpoint), "--max_seq_len", "4096"]
    options += ["--allowed_local_media_path", str(media_dir)]
    return start_servers({"all": options})["all"]


@pytest.fixture(scope="session")
def serve_family(
    checkpoint_root: Path, media_dir: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[str], Served]]:
    """Gives the server of a family. It ends when that of another one is asked for."""
    running: dict[str, Served] = {}
    logs = tmp_path_factory.mktemp("families")

    def end() -> None:
        _, last = running.popitem()
        with last.server as server:
            assert server.stop() == 0

    def serve(name: str) -> Served:
        if name in running:
            return running[name]
        if running:
            end()
        checkpoint = build_checkpoint(name, checkpoint_root)
        options = [
            *(str(checkpoint), "--max_seq_len", "4096", "--allow_loopback_media"),
            *("--allowed_local_media_path", str(media_dir)),
        ]
        server = Server(options, logs / f"{name}-{uuid.uuid4().hex}.log")
        oracles = ChatOracle(checkpoint), ReferenceModel(checkpoint)
        running[name] = Served(name, server, *oracles)
        server.wait_until_ready()
        return running[name]

    yield serve
    if running:
        end()


@pytest.fixture
def reuse_on(pair: dict[str, Server]) -> Server:
    """The server of the issue, block reuse on."""
    return pair["on"]


@pytest.fixture
def reuse_off(pair: dict[str, Server]) -> Server:
    """What every answer is compared with."""
    return pair["off"]


@pytest.fixture(scope="session")
def oracle(phi4mm_checkpoint: Path) -> ChatOracle:
    """Brute force over what was asked; a test uses it with a ``salt`` of its own."""
    return ChatOracle(phi4mm_checkpoint)


@pytest.fixture
def salt() -> str:
    """A cache salt of the test's own, so that no other test has filled the cache for it."""
    return f"test-{uuid.uuid4().hex}"
