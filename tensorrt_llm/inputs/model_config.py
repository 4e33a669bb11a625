# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Reads a checkpoint's configuration, and executes nothing of the folder while doing so."""

from __future__ import annotations

import json
from pathlib import Path

from transformers import AutoConfig, PretrainedConfig
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

from tensorrt_llm.errors import ConfigurationError


def load_config(model_path: str) -> PretrainedConfig:
    """Reads the configuration of a checkpoint folder.

    Raises:
        ConfigurationError: If there is none, it cannot be read, or transformers itself has no model
            of that type.
    """
    path = Path(model_path) / "config.json"
    try:
        model_type = json.loads(path.read_text(encoding="utf-8"))["model_type"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ConfigurationError(f"{model_path}: no usable checkpoint: {error}") from error
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
