# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""What a checkpoint folder says about its processors, in either of the two layouts in use.

Older checkpoints keep the settings in ``preprocessor_config.json``; newer ones nest them, each
processor under a name of its own, in ``processor_config.json``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from transformers import SequenceFeatureExtractor

from tensorrt_llm.errors import ConfigurationError

_Extractor = TypeVar("_Extractor", bound=SequenceFeatureExtractor)


def read_image_settings(model_path: str, telling: Sequence[str]) -> Mapping[str, Any]:
    """The image half of the processor settings.

    Args:
        model_path: Checkpoint folder.
        telling: Names of which image settings hold at least one, and settings for sound hold none.

    Raises:
        ConfigurationError: If there are none, or they are not readable.
    """
    folder = Path(model_path)
    for name in ("preprocessor_config.json", "processor_config.json"):
        path = folder / name
        if path.is_file():
            try:
                settings = json.loads(path.read_text(encoding="utf-8"))
            except ValueError as error:
                raise ConfigurationError(f"{path}: not readable as JSON: {error}") from error
            settings = settings.get("image_processor", settings)
            if not settings.keys().isdisjoint((*telling, "image_processor_type")):
                return settings
    raise ConfigurationError(
        f"{model_path}: no image settings in preprocessor_config.json or processor_config.json"
    )


def load_feature_extractor(extractor_class: type[_Extractor], model_path: str) -> _Extractor:
    """The checkpoint's feature extractor for sound; nothing in the folder is executed.

    Raises:
        ConfigurationError: If its settings are missing or wrong.
    """
    try:
        return extractor_class.from_pretrained(model_path, local_files_only=True)
    except (OSError, ValueError, TypeError) as error:
        raise ConfigurationError(f"{model_path}: cannot read audio settings: {error}") from error
