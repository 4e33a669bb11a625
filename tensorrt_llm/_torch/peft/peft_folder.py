# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Reads an adapter as PEFT saves it: ``adapter_config.json`` and ``adapter_model.safetensors``.

What an adapter asks for and cannot be had is refused by name, never left out: an answer without a
part of an adapter is a wrong answer.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file

from tensorrt_llm._torch.peft.adapter import LoraAdapter, LoraWeights
from tensorrt_llm.errors import ConfigurationError

CONFIG_NAME = "adapter_config.json"
WEIGHTS_NAME = "adapter_model.safetensors"

# Settings that change what the matrices mean, and the values at which they do not.
_PLAIN: Mapping[str, tuple[Any, ...]] = {
    "bias": ("none", None),
    "use_dora": (False, None),
    "lora_bias": (False, None),
    "fan_in_fan_out": (False, None),
    "modules_to_save": (None, []),
    "trainable_token_indices": (None, [], {}),
    "target_parameters": (None, []),
    "alora_invocation_tokens": (None, []),
    "use_qalora": (False, None),
    "use_bdlora": (None, False),
    "arrow_config": (None,),
}
_KEY = re.compile(
    r"(?:base_model\.model\.)?(?P<layer>.+)\.lora_(?P<side>[AB])(?:\.default)?\.weight"
)


def read_peft_folder(folder: str | Path) -> LoraAdapter:
    """Reads an adapter; whether it fits a model is for ``LoraLayers.fitted`` to say.

    Raises:
        ConfigurationError: If a file is missing or unreadable, or the adapter is of a kind that
            cannot be applied. Says what.
    """
    path = Path(folder)
    config = _read_config(path)
    tensors = _read_weights(path / WEIGHTS_NAME)
    pairs: dict[str, dict[str, torch.Tensor]] = {}
    for name, tensor in tensors.items():
        match = _KEY.fullmatch(name)
        if match is None or tensor.ndim != 2 or not tensor.is_floating_point():
            raise ConfigurationError(
                f"{path}: {name} {list(tensor.shape)} is no part of an adapter of linear layers"
            )
        pairs.setdefault(match["layer"], {})[match["side"]] = tensor
    if not pairs:
        raise ConfigurationError(f"{path}: {WEIGHTS_NAME} holds no matrices")
    return LoraAdapter.of(
        {layer: _weights(path, config, layer, pair) for layer, pair in pairs.items()}
    )


def _read_config(path: Path) -> Mapping[str, Any]:
    if not path.is_dir():
        raise ConfigurationError(f"{path}: there is no such folder (an adapter saved by PEFT)")
    file = path / CONFIG_NAME
    try:
        config = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"{path}: {CONFIG_NAME} cannot be read: {error}") from error
    kind = config.get("peft_type") if isinstance(config, dict) else None
    if kind != "LORA":
        raise ConfigurationError(f"{path}: an adapter of type {kind!r}; only LORA can be applied")
    for name, plain in _PLAIN.items():
        if config.get(name, plain[0]) not in plain:
            raise ConfigurationError(
                f"{path}: {name} is {config[name]!r} in {CONFIG_NAME}, which cannot be applied"
            )
    for name in ("r", "lora_alpha"):
        value = config.get(name)
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 2**31:
            raise ConfigurationError(
                f"{path}: {name} in {CONFIG_NAME} must be a number above 0, not {value!r}"
            )
    return config


def _read_weights(file: Path) -> dict[str, torch.Tensor]:
    if not file.is_file():
        raise ConfigurationError(
            f"{file.parent}: there is no {file.name}; weights are read in this format only"
        )
    try:
        return load_file(file)
    except (OSError, SafetensorError) as error:
        raise ConfigurationError(f"{file}: cannot read weights: {error}") from error


def _weights(
    path: Path, config: Mapping[str, Any], layer: str, pair: Mapping[str, torch.Tensor]
) -> LoraWeights:
    if pair.keys() != {"A", "B"}:
        (side,) = pair
        raise ConfigurationError(f"{path}: {layer} has lora_{side} and not the other half")
    rank = _by_pattern(config.get("rank_pattern"), layer, config["r"])
    alpha = _by_pattern(config.get("alpha_pattern"), layer, config["lora_alpha"])
    down, up = pair["A"], pair["B"]
    if down.shape[0] != rank or up.shape[1] != rank:
        raise ConfigurationError(
            f"{path}: {layer} is of rank {down.shape[0]} in lora_A {list(down.shape)} and "
            f"{up.shape[1]} in lora_B {list(up.shape)}, and {CONFIG_NAME} says {rank}"
        )
    return LoraWeights(down, up, alpha / (math.sqrt(rank) if config.get("use_rslora") else rank))


def _by_pattern(patterns: Mapping[str, Any] | None, layer: str, default: Any) -> Any:
    """The value of the first pattern that a layer's name ends with, as PEFT looks it up."""
    for pattern, value in (patterns or {}).items():
        if re.fullmatch(rf"(.*\.)?({pattern})", layer):
            return value
    return default
