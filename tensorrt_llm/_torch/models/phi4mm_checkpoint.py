# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Weights and adapters of Phi-4-multimodal in both layouts that are about.

| | published (``phi4mm``) | transformers' own (``phi4_multimodal``) |
|---|---|---|
| a decoder's linear layer | ``NAME.base_layer.weight`` | ``NAME.weight`` |
| adapters | ``NAME.lora_A.vision.weight``, in the same files | folder ``vision-lora``, as PEFT's |
| encoders | names of the published code | names of transformers |
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open

from tensorrt_llm._torch.peft import LoraAdapter, LoraWeights, read_peft_folder
from tensorrt_llm.errors import ConfigurationError

ADAPTER_NAMES = ("vision", "speech")

_AUDIO = r"model\.embed_tokens_extend\.audio_embed\."
_BLOCK = _AUDIO + r"encoder\.encoders\.\d+\."
_IMAGE = r"model\.embed_tokens_extend\.image_embed\."
# What comes before, the published name, transformers' name.
_NAMES = tuple(
    (re.compile(rf"({before}){published}(?=\.|$)"), native)
    for before, published, native in (
        (_BLOCK + r"feed_forward_(?:in|out)\.", r"net\.0\.linear", "gate_up_proj"),
        (_BLOCK + r"feed_forward_(?:in|out)\.", r"net\.2", "down_proj"),
        (_BLOCK + r"self_attn\.", "linear_q", "q_proj"),
        (_BLOCK + r"self_attn\.", "linear_k", "k_proj"),
        (_BLOCK + r"self_attn\.", "linear_v", "v_proj"),
        (_BLOCK + r"self_attn\.", "linear_out", "o_proj"),
        (_AUDIO, r"audio_projection\.speech\.0", "up_proj_for_speech"),
        (_AUDIO, r"audio_projection\.speech\.2", "down_proj_for_speech"),
        (_AUDIO, r"audio_projection\.vision\.0", "up_proj_for_vision_speech"),
        (_AUDIO, r"audio_projection\.vision\.2", "down_proj_for_vision_speech"),
        (_IMAGE, r"img_projection\.0", "img_projection_up"),
        (_IMAGE, r"img_projection\.2", "img_projection_down"),
        (_IMAGE, "glb_GN", "global_img_feature_extensor"),
        (_IMAGE, "sub_GN", "sub_img_feature_extensor"),
        (r"model\.layers\..*\.", r"base_layer\.weight", "weight"),
    )
)
_ADAPTER_PART = re.compile(r"(?P<layer>.+)\.lora_(?P<side>[AB])\.(?P<adapter>\w+)\.weight")


def native_name(name: str) -> str:
    """What transformers calls a weight of the published checkpoint."""
    for pattern, native in _NAMES:
        match = pattern.match(name)
        if match is not None:
            return match[1] + native + name[match.end() :]
    return name


def published_weights(folder: str) -> dict[str, torch.Tensor]:
    """The model's weights without its adapters, under transformers' names.

    Raises:
        ConfigurationError: If a file is missing or cannot be read.
    """
    weights: dict[str, torch.Tensor] = {}
    for file in _weight_files(Path(folder)):
        with _opened(file) as content:
            for name in content.keys():  # noqa: SIM118 - no mapping
                if _ADAPTER_PART.fullmatch(name) is None:
                    weights[native_name(name)] = content.get_tensor(name)
    return weights


def published_adapters(
    folder: str, settings: Mapping[str, Mapping[str, Any]]
) -> dict[str, LoraAdapter]:
    """The adapters inside the weights, by name.

    Args:
        folder: The checkpoint.
        settings: What the configuration says of each, with ``r`` and ``lora_alpha``.

    Raises:
        ConfigurationError: If one is missing, or is not of the rank that its settings say.
    """
    parts: dict[str, dict[str, dict[str, torch.Tensor]]] = {name: {} for name in settings}
    for file in _weight_files(Path(folder)):
        with _opened(file) as content:
            for name in content.keys():  # noqa: SIM118 - no mapping
                match = _ADAPTER_PART.fullmatch(name)
                if match is None:
                    continue
                if match["adapter"] not in parts:
                    raise ConfigurationError(
                        f"{file}: {name} is part of an adapter that config.json does not name"
                    )
                layers = parts[match["adapter"]]
                layers.setdefault(match["layer"], {})[match["side"]] = content.get_tensor(name)
    adapters = {}
    for name, layers in parts.items():
        rank, alpha = settings[name].get("r"), settings[name].get("lora_alpha")
        sound = (
            pair.keys() == {"A", "B"} and pair["A"].shape[0] == pair["B"].shape[1] == rank
            for pair in layers.values()
        )
        if not layers or not rank or not alpha or not all(sound):
            raise ConfigurationError(
                f"{folder}: the weights hold no whole {name} adapter of rank {rank}"
            )
        adapters[name] = LoraAdapter.of(
            {
                layer: LoraWeights(pair["A"], pair["B"], alpha / rank)
                for layer, pair in layers.items()
            }
        )
    return adapters


def native_adapters(folder: str) -> dict[str, LoraAdapter]:
    """The adapters of a folder in transformers' layout, by name; those that are there.

    Raises:
        ConfigurationError: If one cannot be read.
    """
    return {
        name: read_peft_folder(Path(folder, f"{name}-lora"))
        for name in ADAPTER_NAMES
        if Path(folder, f"{name}-lora").is_dir()
    }


def _weight_files(folder: Path) -> list[Path]:
    index = folder / "model.safetensors.index.json"
    if index.is_file():
        try:
            names = sorted(
                set(json.loads(index.read_text(encoding="utf-8"))["weight_map"].values())
            )
        except (ValueError, KeyError, AttributeError) as error:
            raise ConfigurationError(f"{index}: cannot be read: {error}") from error
    else:
        names = ["model.safetensors"]
    missing = [name for name in names if not (folder / name).is_file()]
    if missing:
        raise ConfigurationError(f"{folder}: weight files are missing: {', '.join(missing)}")
    return [folder / name for name in names]


@contextmanager
def _opened(file: Path) -> Iterator[Any]:
    try:
        with safe_open(file, framework="pt") as content:
            yield content
    except (OSError, SafetensorError) as error:
        raise ConfigurationError(f"{file}: cannot load weights: {error}") from error
