# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""The version stands in two files that must agree."""

from __future__ import annotations

import re
from pathlib import Path

from tensorrt_llm import __version__
from tensorrt_llm.version import __version__ as version

ROOT = Path(__file__).resolve().parents[2]


def test_package_and_project_say_the_same_version() -> None:
    project = (ROOT / "pyproject.toml").read_text()
    stated = re.search(r'^version = "(.+)"$', project, re.MULTILINE)
    assert stated is not None
    assert stated[1] == version == __version__
