# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""``make demo`` as a user runs it: it shows what it promises, and leaves nothing behind."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from support.checkpoints import REPOSITORY

DEMO = [sys.executable, str(REPOSITORY / "examples/demo.py")]
SECONDS = 180


def folder_of(output: str) -> str:
    """The demo's own folder, as its output names it."""
    found = re.search(r"\S*/trtllm-demo-[^/\s]+", output)
    assert found is not None, output
    return found[0]


def assert_nothing_left(folder: str) -> None:
    assert not Path(folder).exists()
    left = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            command = entry.read_bytes().decode(errors="replace")
        except OSError:  # it ended just now
            continue
        if folder in command:
            left.append(command.replace("\0", " "))
    assert left == []


def test_the_demo_keeps_its_promises() -> None:
    done = subprocess.run(DEMO, capture_output=True, text=True, timeout=SECONDS)
    assert done.returncode == 0, done.stdout + done.stderr
    row = r"^ *(\S.*?) +200 +\d+ ms +(\d+) +(\d+) +yes +(yes)? +yes +(I \w+ .*?\.) *$"
    rows = re.findall(row, done.stdout, re.M)
    assert len(rows) == 9, done.stdout
    repeats = [row for row in rows if row[0].startswith("time ")]
    assert len(repeats) == 4
    clip_a = rows[0][4]
    for _, prompt, cached, as_first, answer in repeats:
        assert int(cached) == int(prompt) - 1
        assert as_first == "yes"
        assert answer == clip_a
    assert rows[5][4] != clip_a, "another clip says something else"
    assert "Shown: one audio request, sent 5 times" in done.stdout
    assert_nothing_left(folder_of(done.stdout))


def test_a_server_that_does_not_start_is_shown_with_its_log() -> None:
    environment = {**os.environ, "TLLM_MULTIMODAL_DISAGGREGATED": "1"}
    done = subprocess.run(DEMO, capture_output=True, text=True, timeout=SECONDS, env=environment)
    assert done.returncode == 1
    assert "trtllm-serve ended with status 1" in done.stdout
    assert "TLLM_MULTIMODAL_DISAGGREGATED" in done.stdout
    assert_nothing_left(folder_of(done.stdout))


@contextmanager
def running_demo(log: Path) -> Iterator[subprocess.Popen[bytes]]:
    # Children of a shell's background job inherit that Ctrl-C is ignored; a terminal's do not.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with open(log, "wb") as output:
            demo = subprocess.Popen(DEMO, stdout=output, stderr=subprocess.STDOUT)
    finally:
        signal.signal(signal.SIGINT, before)
    try:
        yield demo
    finally:
        demo.kill()
        demo.wait()


def test_ctrl_c_ends_the_servers(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with running_demo(log) as demo:
        deadline = time.monotonic() + SECONDS
        while "--enable_block_reuse" not in log.read_text():
            assert demo.poll() is None and time.monotonic() < deadline, log.read_text()
            time.sleep(0.1)
        demo.send_signal(signal.SIGINT)
        assert demo.wait(60) == 130
    assert "interrupted" in log.read_text()
    assert_nothing_left(folder_of(log.read_text()))
