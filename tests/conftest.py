# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""What all tests share: no network for model files, few threads, GPU tests only with a GPU."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

# Before anything imports Torch or transformers, which read these once.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# Workers and servers run side by side on few processors: none may spin.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

import hypothesis
import pytest
from support.checkpoints import build_checkpoint
from support.families import FAMILIES, Family

if TYPE_CHECKING:
    from tensorrt_llm.executor.host_process import HostProcess

# Fixtures of tests/integration, each of them servers that take long to start.
SHARED_SERVERS = ("serve_family", "pair", "all_media")

# Wall time on a busy machine says nothing about an example, so it fails none; a failure prints how
# to run that very example again.
hypothesis.settings.register_profile("repository", deadline=None, print_blob=True)
hypothesis.settings.load_profile("repository")


def pytest_configure(config: pytest.Config) -> None:
    """Gives each parallel worker a temporary folder of its own: some tests look at what is left."""
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = tempfile.TemporaryDirectory(prefix="trtllm-tests-")
        config.add_cleanup(folder.cleanup)
        os.environ["TMPDIR"] = tempfile.tempdir = folder.name


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Says what runs in one process: a file's tests, and all files that share servers."""
    fixtures: dict[str, set[str]] = {}
    for item in items:
        fixtures.setdefault(item.location[0], set()).update(getattr(item, "fixturenames", ()))
    for item in items:
        file = item.location[0]
        group = next((name for name in SHARED_SERVERS if name in fixtures[file]), file)
        item.add_marker(pytest.mark.xdist_group(group))


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skips a test marked `gpu` where there is no CUDA device."""
    if item.get_closest_marker("gpu") is None:
        return
    import torch

    if not torch.cuda.is_available():
        pytest.skip("needs a CUDA device")


@pytest.fixture(scope="session")
def checkpoint_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where this run's tiny checkpoints are."""
    return tmp_path_factory.mktemp("checkpoints")


@pytest.fixture(scope="session")
def llama_checkpoint(checkpoint_root: Path) -> Path:
    """A tiny text model."""
    return build_checkpoint("llama", checkpoint_root)


@pytest.fixture(scope="session")
def phi4mm_checkpoint(checkpoint_root: Path) -> Path:
    """A tiny Phi-4-multimodal."""
    return build_checkpoint("phi4mm", checkpoint_root)


@pytest.fixture(scope="session")
def engine_host() -> Iterator[HostProcess]:
    """Forks engines for the tests that want one in a process of its own; starting it is slow."""
    from tensorrt_llm.executor.host_process import HostProcess

    with HostProcess() as host:
        yield host


@pytest.fixture(scope="session", params=FAMILIES, ids=str)
def family(request: pytest.FixtureRequest) -> Family:
    """Each multimodal family in turn."""
    return request.param


@pytest.fixture(scope="session")
def family_checkpoint(family: Family, checkpoint_root: Path) -> Path:
    """A tiny checkpoint of the family."""
    return build_checkpoint(family.name, checkpoint_root)
