# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""The table of families in docs/supported-models.md says what the code does."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from support.families import Family
from support.prompts import PromptMaker

from tensorrt_llm._torch.models.modeling_utils import registered_models
from tensorrt_llm.errors import RequestError
from tensorrt_llm.inputs.processors import TextInputProcessor
from tensorrt_llm.inputs.registry import INPUT_PROCESSORS

PAGE = Path(__file__).resolve().parents[2] / "docs" / "supported-models.md"


def rows() -> dict[str, list[str]]:
    """Cells of the first table by ``model_type``."""
    text = PAGE.read_text(encoding="utf-8")
    lines = text[text.index("| `model_type` |") :].split("\n\n")[0].splitlines()[2:]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return {row[0].strip("`"): row[1:] for row in cells}


def test_every_family_is_there_and_takes_what_it_says() -> None:
    models = registered_models()
    assert list(rows()) == sorted(rows(), key=list(models).index)
    assert set(rows()) == set(models) == set(INPUT_PROCESSORS.model_types)
    for name, (takes, _, axes) in rows().items():
        assert tuple(takes.split(", ")) == models[name].modalities
        assert int(axes) == models[name].position_axes
    assert TextInputProcessor.modalities == ()


def test_options_are_those_a_request_may_set(family: Family, family_checkpoint: Path) -> None:
    processor = PromptMaker(family_checkpoint).processor
    with pytest.raises(RequestError) as refused:
        processor.resolve_options({"no such option": 1})
    known = re.sub("^.*takes: ", "", refused.value.message)
    written = rows()[processor.config.model_type][1].replace("`", "")
    assert written == known
