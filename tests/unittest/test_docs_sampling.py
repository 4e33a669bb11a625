# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""``docs/sampling.md`` lists exactly the options that there are."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

from tensorrt_llm.sampling_params import GuidedDecodingParams, SamplingParams
from tensorrt_llm.serve.openai_protocol import ChatCompletionRequest

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "sampling.md").read_text(encoding="utf-8")


def section(title: str) -> str:
    return PAGE.split(f"\n## {title}\n")[1].split("\n## ")[0]


def first_cells(text: str) -> set[str]:
    return set(re.findall(r"^\| `(\w+)`", text, re.MULTILINE))


def test_every_option_is_documented() -> None:
    assert first_cells(section("Options")) == {
        field.name for field in dataclasses.fields(SamplingParams)
    }


def test_every_kind_of_guide_is_documented() -> None:
    guided = section("Guided answers")
    kinds = {field.name for field in dataclasses.fields(GuidedDecodingParams)}
    assert first_cells(guided) - {"GuidedDecodingParams"} == kinds
    fields = {name for name in ChatCompletionRequest.model_fields if name.startswith("guided_")}
    assert set(re.findall(r"`(guided_\w+)`", guided)) == fields


def test_options_of_the_same_name_over_http_are_as_the_page_says() -> None:
    for line in section("Options").splitlines():
        option = re.match(r"\| `(\w+)`", line)
        if option and option[1] != "guided_decoding":
            python_only = "Python only" in line
            assert (option[1] in ChatCompletionRequest.model_fields) is not python_only, line
