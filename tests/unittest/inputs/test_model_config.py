# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""A checkpoint's configuration is read, or refused for a reason; its code never runs."""

from __future__ import annotations

import json
import shutil

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
    config = {"model_type": "mine", "auto_map": {"AutoConfig": "configuration_mine.Mine"}}
    (tmp_path / "config.json").write_text(json.dumps(config))
    (tmp_path / "configuration_mine.py").write_text("raise SystemExit('executed')")
    with pytest.raises(ConfigurationError, match=r"no model of type 'mine'\. Code .* never"):
        load_config(str(tmp_path))


@pytest.mark.parametrize(
    ("file", "content", "kind"),
    [
        ("config.json", {"quant_method": "fp8", "fmt": "e4m3"}, "quant_method fp8"),
        (
            "config.json",
            {"quant_method": "modelopt", "quant_algo": "NVFP4"},
            "quant_method modelopt, quant_algo NVFP4",
        ),
        ("hf_quant_config.json", {"quant_algo": "FP8"}, "quant_algo FP8"),
    ],
)
def test_quantised_weights_are_refused(llama_checkpoint, tmp_path, file, content, kind) -> None:
    folder = shutil.copytree(llama_checkpoint, tmp_path / "copy")
    load_config(str(folder))
    key = "quantization_config" if file == "config.json" else "quantization"
    path = folder / file
    present = json.loads(path.read_text()) if path.exists() else {}
    path.write_text(json.dumps({**present, key: content}))
    with pytest.raises(ConfigurationError, match=rf"quantised \({kind}\).* bfloat16 or float16"):
        load_config(str(folder))
