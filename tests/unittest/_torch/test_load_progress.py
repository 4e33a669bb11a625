# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Loading draws bars on a terminal and writes lines elsewhere, on a real checkpoint."""

from __future__ import annotations

import logging
import os
import pty
from pathlib import Path

import pytest
import torch
from transformers.utils import logging as transformers_logging

from tensorrt_llm._torch.load_progress import BARS_VARIABLE, draws_bars
from tensorrt_llm._torch.models.modeling_utils import load_model
from tensorrt_llm.inputs.model_config import load_config
from tensorrt_llm.logger import ROOT_NAME

BAR = "Loading weights"


def load(checkpoint: Path) -> None:
    options = {"dtype": torch.float32, "device": torch.device("cpu"), "max_seq_len": 64}
    load_model(str(checkpoint), load_config(str(checkpoint)), **options)


@pytest.mark.parametrize("asked", [False, True])
def test_bars_or_lines(
    llama_checkpoint: Path,
    asked: bool,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setenv(BARS_VARIABLE, "1") if asked else monkeypatch.delenv(
        BARS_VARIABLE, raising=False
    )
    caplog.set_level(logging.INFO, ROOT_NAME)
    before = transformers_logging.is_progress_bar_enabled()
    transformers_logging.enable_progress_bar()
    try:
        load(llama_checkpoint)
        assert transformers_logging.is_progress_bar_enabled(), "left as it was found"
    finally:
        if not before:
            transformers_logging.disable_progress_bar()
    lines = [r.getMessage() for r in caplog.records if r.name.endswith("load_progress")]
    assert (BAR in capfd.readouterr().err) == asked
    assert [line.split(":")[0] for line in lines] == (
        []
        if asked
        else ["loading weights"] * 2 + ["comparing the decoder with that of transformers"] * 2
    )


def test_a_terminal_has_bars_unless_told_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(BARS_VARIABLE, raising=False)
    controller, terminal = pty.openpty()
    with open(terminal, "w") as shown, open(os.devnull, "w") as hidden:
        for stream, bars in ((shown, True), (hidden, False)):
            monkeypatch.setattr("sys.stderr", stream)
            assert draws_bars() is bars
            for value in ("0", "1"):
                monkeypatch.setenv(BARS_VARIABLE, value)
                assert draws_bars() is (value == "1")
            monkeypatch.delenv(BARS_VARIABLE)
    os.close(controller)
