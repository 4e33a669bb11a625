# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""A checkpoint's configuration is read, or refused for a reason; its code never runs."""

from __future__ import annotations

import json

import pytest

from tensorrt_llm.errors import ConfigurationError
from tensorrt_llm.inputs.model_config import load_config


def test_reads_a_checkpoint(phi4mm_checkpoint) -> None:
    assert load_config(str(phi4mm_checkpoint)).model_type == "phi4_multimodal"


@pytest.mark.parametrize("content", [None, "", "[]", "{}", '{"model_type": '])
def test_a_folder_without_a_usable_configuration_is_refused(tmp_path, content) -> None:
    if content is not None:
        (tmp_path / "config.json").write_text(content)
    with pytest.raises(ConfigurationError, match="no usable checkpoint"):
        load_config(str(tmp_path))


def test_code_in_the_folder_is_named_as_the_reason_and_not_run(tmp_path) -> None:
    config = {"model_type": "phi4mm", "auto_map": {"AutoConfig": "configuration_mine.Mine"}}
    (tmp_path / "config.json").write_text(json.dumps(config))
    (tmp_path / "configuration_mine.py").write_text("raise SystemExit('executed')")
    with pytest.raises(ConfigurationError, match=r"no model of type 'phi4mm'\. Code .* never"):
        load_config(str(tmp_path))
