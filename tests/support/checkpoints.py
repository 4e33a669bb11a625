# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Tiny checkpoints, built once for a test run."""

from __future__ import annotations

import functools
import importlib.util
import json
import shutil
from pathlib import Path
from types import ModuleType
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[2]


def load_script(path: str) -> ModuleType:
    """A script of the repository, such as ``examples/tiny_checkpoints.py``, as a module."""
    file = REPOSITORY / path
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@functools.cache
def build_checkpoint(family: str, root: Path, seed: int = 0) -> Path:
    """Writes a tiny checkpoint below ``root``, once, and returns its folder."""
    out = root / f"{family}-{seed}"
    load_script("examples/tiny_checkpoints.py").build(family, out, seed)
    return out


def altered(
    checkpoint: Path, folder: Path, file: str = "preprocessor_config.json", **values: Any
) -> Path:
    """Copies a checkpoint to a new folder with other values in one of its JSON files."""
    shutil.copytree(checkpoint, folder)
    path = folder / file
    path.write_text(json.dumps(json.loads(path.read_text()) | values))
    return folder
