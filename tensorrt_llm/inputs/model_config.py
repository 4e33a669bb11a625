# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Reads a checkpoint's configuration, and executes nothing of the folder while doing so."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from transformers import AutoConfig, PretrainedConfig
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

from tensorrt_llm.errors import ConfigurationError
from tensorrt_llm.inputs.phi4mm_layout import PUBLISHED_MODEL_TYPE, native_config


def load_config(model_path: str) -> PretrainedConfig:
    """Reads the configuration of a checkpoint folder.

    Raises:
        ConfigurationError: If there is none, it cannot be read, the weights are quantised, or
            transformers itself has no model of that type.
    """
    path = Path(model_path) / "config.json"
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        model_type = content["model_type"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ConfigurationError(f"{model_path}: no usable checkpoint: {error}") from error
    _refuse_quantised(Path(model_path), content)
    if model_type == PUBLISHED_MODEL_TYPE:
        return native_config(content, Path(model_path))
    if model_type not in CONFIG_MAPPING:
        raise ConfigurationError(
            f"{model_path}: transformers has no model of type {model_type!r}. Code in a checkpoint "
            "folder is never executed; a checkpoint in transformers' own layout is needed"
        )
    try:
        return AutoConfig.from_pretrained(
            model_path, local_files_only=True, trust_remote_code=False
        )
    except (OSError, ValueError, KeyError) as error:
        raise ConfigurationError(f"{model_path}: no usable checkpoint: {error}") from error


def _refuse_quantised(folder: Path, content: Mapping[str, Any]) -> None:
    """Raises rather than run weights as if they were plain numbers."""
    found = content.get("quantization_config")
    other = folder / "hf_quant_config.json"
    if not found and other.is_file():
        try:
            found = json.loads(other.read_text(encoding="utf-8")).get("quantization")
        except (OSError, ValueError, AttributeError) as error:
            raise ConfigurationError(f"{other}: cannot be read: {error}") from error
    if not found:
        return
    names = ("quant_method", "quant_algo", "format", "bits")
    told = found if isinstance(found, Mapping) else {}
    kind = ", ".join(f"{name} {told[name]}" for name in names if told.get(name) is not None)
    raise ConfigurationError(
        f"{folder}: the weights are quantised ({kind or 'in an unknown way'}), which cannot "
        "be run; a checkpoint in float32, bfloat16 or float16 is needed"
    )
