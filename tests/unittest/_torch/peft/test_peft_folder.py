# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""What is read of a PEFT folder, and what is refused by name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from support.lora import save_adapter
from torch import nn

from tensorrt_llm._torch.peft import read_peft_folder
from tensorrt_llm.errors import ConfigurationError


def pair(layer: str, rank: int = 2, wide: int = 6, high: int = 4) -> dict[str, torch.Tensor]:
    torch.manual_seed(0)
    name = f"base_model.model.{layer}"
    return {
        f"{name}.lora_A.weight": torch.randn(rank, wide),
        f"{name}.lora_B.weight": torch.randn(high, rank),
    }


def test_scales_and_ranks_by_layer(tmp_path: Path) -> None:
    tensors = {**pair("a.one"), **pair("b.two", rank=4), **pair("a.two", rank=4)}
    config = {
        "r": 2,
        "lora_alpha": 8,
        "rank_pattern": {"two": 4},
        "alpha_pattern": {r"a\.two": 1},
    }
    save_adapter(tmp_path, tensors, config)
    layers = read_peft_folder(tmp_path).layers
    assert {name: weights.scale for name, weights in layers.items()} == {
        "a.one": 4.0,
        "b.two": 2.0,
        "a.two": 0.25,
    }
    save_adapter(tmp_path, tensors, {**config, "use_rslora": True})
    assert read_peft_folder(tmp_path).layers["b.two"].scale == 4.0
    rows, linear = torch.randn(3, 6), nn.Linear(6, 4, bias=False)
    one = layers["a.one"]
    change = rows @ (4.0 * tensors["base_model.model.a.one.lora_B.weight"] @ one.down).T
    assert torch.allclose(linear(rows) + one.delta(rows), linear(rows) + change, atol=1e-6)


def test_the_digest_is_of_the_content(tmp_path: Path) -> None:
    config = {"r": 2, "lora_alpha": 8}

    def digest(tensors: dict[str, torch.Tensor], **changes: Any) -> bytes:
        save_adapter(tmp_path, tensors, {**config, **changes})
        return read_peft_folder(tmp_path).digest

    plain = pair("a")
    same = digest(plain)
    # What says nothing about the answer, and another order.
    assert digest(dict(reversed(plain.items())), inference_mode=True, lora_dropout=0.1) == same
    value = {name: tensor.clone() for name, tensor in plain.items()}
    value["base_model.model.a.lora_B.weight"][0, 0] += 1e-3
    near = [
        digest(plain, lora_alpha=9),
        digest(value),
        digest(pair("b")),
        digest({name: tensor.bfloat16() for name, tensor in plain.items()}),
        digest({**plain, **pair("b")}),
    ]
    assert len({same, *near}) == 6


@pytest.mark.parametrize(
    ("config", "tensors", "message"),
    [
        ({"peft_type": "IA3"}, {}, "type 'IA3'; only LORA"),
        ({"use_dora": True}, {}, "use_dora is True"),
        ({"bias": "all"}, {}, "bias is 'all'"),
        ({"modules_to_save": ["lm_head"]}, {}, "modules_to_save is"),
        ({"r": 0}, {}, "r in adapter_config.json must be a number above 0, not 0"),
        ({"lora_alpha": "8"}, {}, "lora_alpha in adapter_config.json must be a number"),
        ({"r": 4}, {}, r"a is of rank 2 in lora_A \[2, 6\] and 2 in lora_B"),
        ({}, {"base_model.model.e.lora_embedding_A": torch.ones(2, 2)}, "lora_embedding_A"),
        ({}, {"base_model.model.b.lora_A.weight": torch.ones(2, 6)}, "b has lora_A and not"),
    ],
)
def test_what_cannot_be_applied_is_refused(
    tmp_path: Path, config: dict[str, Any], tensors: dict[str, torch.Tensor], message: str
) -> None:
    save_adapter(tmp_path, {**pair("a"), **tensors}, {"r": 2, "lora_alpha": 8, **config})
    with pytest.raises(ConfigurationError, match=message):
        read_peft_folder(tmp_path)


def test_missing_and_broken_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="no such folder"):
        read_peft_folder(tmp_path / "none")
    with pytest.raises(ConfigurationError, match=r"adapter_config\.json cannot be read"):
        read_peft_folder(tmp_path)
    (tmp_path / "adapter_config.json").write_text(
        json.dumps({"peft_type": "LORA", "r": 2, "lora_alpha": 2})
    )
    with pytest.raises(ConfigurationError, match=r"there is no adapter_model\.safetensors"):
        read_peft_folder(tmp_path)
    (tmp_path / "adapter_model.safetensors").write_bytes(b"nothing")
    with pytest.raises(ConfigurationError, match="cannot read weights"):
        read_peft_folder(tmp_path)
