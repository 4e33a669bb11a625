# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""The demo model by its name."""

from __future__ import annotations

from pathlib import Path

import pytest

from tensorrt_llm.commands import demo_model
from tensorrt_llm.errors import ConfigurationError
from tensorrt_llm.llmapi.checkpoint import check_checkpoint


def test_the_name_means_the_model_of_the_source_tree() -> None:
    check_checkpoint(demo_model.demo_checkpoint())


def test_a_folder_of_that_name_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert demo_model.is_demo("demo")
    assert not demo_model.is_demo("./demo-of-mine")
    (tmp_path / "demo").mkdir()
    assert not demo_model.is_demo("demo")


def test_an_installation_without_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo_model, "_CHECKPOINT", Path("no/such"))
    with pytest.raises(ConfigurationError, match="part of the source tree"):
        demo_model.demo_checkpoint()
