# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""What programs may use changes only where somebody decides it."""

from __future__ import annotations

import importlib.util
from importlib.resources import files
from pathlib import Path

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "api_surface.py"


def test_the_public_surface_is_the_one_written_down() -> None:
    spec = importlib.util.spec_from_file_location("api_surface", SCRIPT)
    assert spec is not None and spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    written = script.SNAPSHOT.read_text(encoding="utf-8")
    assert script.surface() == written, "python scripts/api_surface.py --write, and the changelog"


def test_the_package_says_that_it_is_typed() -> None:
    assert files("tensorrt_llm").joinpath("py.typed").is_file()
