# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""schemathesis holds a real server to its own OpenAPI document."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from support.checkpoints import REPOSITORY
from support.server import Server

CONFIG = REPOSITORY / "tests" / "integration" / "schemathesis.toml"
COMMAND = Path(sys.executable).with_name("st")
SECONDS = 280


def test_no_answer_but_the_documented_ones(all_media: Server, tmp_path: Path) -> None:
    done = subprocess.run(
        [
            *(str(COMMAND), "--config-file", str(CONFIG)),
            *("run", f"{all_media.url}/openapi.json", "--max-examples", "6"),
            # The phase left out takes minutes and is run by hand.
            *("--phases", "examples,fuzzing,stateful"),
        ],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        cwd=tmp_path,
        env={**os.environ, "NO_PROXY": "localhost", "no_proxy": "localhost"},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    asked = re.search(r"(\d+) generated, (\d+) passed", done.stdout)
    assert asked is not None and asked[1] == asked[2] and int(asked[1]) > 100, done.stdout
    assert all_media.healthy()
    assert "Traceback" not in all_media.log_text()
