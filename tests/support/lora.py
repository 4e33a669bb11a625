# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Random adapters in PEFT's format, and what they make of a stock model: ``W + scale * B @ A``."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import nn

from support.reference import ReferenceModel

DECODER = r"(^|\.)layers\.\d+\.(self_attn|mlp)\.\w+_proj"


def write_adapter(
    folder: Path,
    model: nn.Module,
    seed: int,
    *,
    layers: str = DECODER,
    rank: int = 4,
    alpha: float = 8.0,
    strength: float = 1.0,
    **config: Any,
) -> Path:
    """Writes an adapter of the linear layers whose names a pattern is found in."""
    generator = torch.Generator().manual_seed(seed)

    def normal(rows: int, columns: int, deviation: float) -> torch.Tensor:
        return torch.randn(rows, columns, generator=generator) * deviation

    tensors = {}
    for name, module in model.named_modules():
        if isinstance(module, nn.Linear) and re.search(layers, name):
            wide = module.in_features
            tensors[f"base_model.model.{name}.lora_A.weight"] = normal(rank, wide, wide**-0.5)
            tensors[f"base_model.model.{name}.lora_B.weight"] = normal(
                module.out_features, rank, 0.3 * strength / rank**0.5
            )
    assert tensors
    save_adapter(folder, tensors, {"r": rank, "lora_alpha": alpha, **config})
    return folder


def save_adapter(
    folder: Path, tensors: Mapping[str, torch.Tensor], config: Mapping[str, Any]
) -> None:
    """Writes these matrices with these settings."""
    folder.mkdir(parents=True, exist_ok=True)
    settings = {"peft_type": "LORA", "bias": "none", "target_modules": "all-linear", **config}
    (folder / "adapter_config.json").write_text(json.dumps(settings))
    save_file(dict(tensors), folder / "adapter_model.safetensors")


@torch.no_grad()
def merged(reference: ReferenceModel, *folders: Path) -> ReferenceModel:
    """A stock model with adapters added to its weights, for an answer to compare with."""
    result = copy.copy(reference)
    result.model = copy.deepcopy(reference.model)
    result._answers = {}
    for folder in folders:
        config = json.loads((folder / "adapter_config.json").read_text())
        tensors = load_file(folder / "adapter_model.safetensors")
        for name in tensors:
            if ".lora_A." not in name:
                continue
            layer = name.removeprefix("base_model.model.").removesuffix(".lora_A.weight")
            change = tensors[name.replace("lora_A", "lora_B")] @ tensors[name]
            weight = result.model.get_submodule(layer).weight
            weight += change * (config["lora_alpha"] / config["r"])
    return result
