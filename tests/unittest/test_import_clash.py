# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Importing the package: refused beside NVIDIA's distribution, light and lazy otherwise."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def _run(code: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Runs code in a fresh interpreter that has a folder, then this checkout, on its path."""
    path = os.pathsep.join([str(folder), str(ROOT)])
    return subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": path},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def _install_fake(folder: Path, name: str) -> None:
    # Installers write the folder with underscores, whatever spelling the distribution itself has.
    info = folder / f"{name.replace('-', '_')}-1.2.3.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.2.3\n")


@pytest.mark.parametrize("name", ["tensorrt_llm", "tensorrt-llm"])
def test_import_fails_beside_the_namesake(tmp_path: Path, name: str) -> None:
    _install_fake(tmp_path, name)
    result = _run("import tensorrt_llm", tmp_path)
    assert result.returncode == 1
    last = result.stderr.strip().splitlines()[-1]
    assert last.startswith("ImportError: NVIDIA's tensorrt-llm 1.2.3 is installed")
    assert "pip uninstall tensorrt-llm" in last


@pytest.mark.parametrize("name", ["tensorrt_llm_bench", "tensorrt", "tensorrt_llm_independent"])
def test_import_works_beside_other_distributions(tmp_path: Path, name: str) -> None:
    _install_fake(tmp_path, name)
    result = _run("import tensorrt_llm; print(tensorrt_llm.__version__)", tmp_path)
    assert (result.returncode, result.stderr) == (0, "")


def test_import_loads_nothing_heavy(tmp_path: Path) -> None:
    code = (
        "import sys, tensorrt_llm\n"
        "print([m for m in ('torch', 'transformers', 'numpy', 'pydantic') if m in sys.modules])"
    )
    result = _run(code, tmp_path)
    assert (result.returncode, result.stdout.strip()) == (0, "[]")


def test_public_names_load_on_first_use(tmp_path: Path) -> None:
    code = (
        "import tensorrt_llm\n"
        "from tensorrt_llm import *\n"
        "assert all(n in dir(tensorrt_llm) for n in tensorrt_llm.__all__)\n"
        "print(LLM.__name__, KvCacheConfig.__name__, SamplingParams.__name__)"
    )
    result = _run(code, tmp_path)
    assert result.stdout.strip() == "LLM KvCacheConfig SamplingParams", result.stderr


def test_an_unknown_name_is_an_attribute_error() -> None:
    import tensorrt_llm

    with pytest.raises(AttributeError, match="'tensorrt_llm' has no attribute 'Engine'"):
        tensorrt_llm.Engine  # noqa: B018
