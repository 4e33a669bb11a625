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

import numpy as np
from transformers import SequenceFeatureExtractor, WhisperFeatureExtractor

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


def read_video_settings(model_path: str, *, shared: bool = True) -> Mapping[str, Any]:
    """The video half of the processor settings; that of pictures where there is no such half.

    Args:
        model_path: Checkpoint folder.
        shared: Whether settings of pictures hold for video too.

    Raises:
        ConfigurationError: If they are not readable.
    """
    for name, part in (
        ("processor_config.json", "video_processor"),
        ("video_preprocessor_config.json", None),
        ("preprocessor_config.json", None),
    ):
        path = Path(model_path) / name
        if path.is_file() and (shared or name != "preprocessor_config.json"):
            try:
                settings = json.loads(path.read_text(encoding="utf-8"))
            except ValueError as error:
                raise ConfigurationError(f"{path}: not readable as JSON: {error}") from error
            if part is None or part in settings:
                return settings if part is None else settings[part]
    return {}


def normalised(pixels: np.ndarray, mean: Sequence[float], std: Sequence[float]) -> np.ndarray:
    """Colours as encoders take them: ``(pixel / 255 - mean) / std``.

    Args:
        pixels: 0..255, ``[..., channels]``.
        mean: A number a channel, of values in 0..1.
        std: As ``mean``.

    Returns:
        float32, the same shape.
    """
    scaled = np.asarray(pixels, np.float32) / np.float32(255)
    return (scaled - np.asarray(mean, np.float32)) / np.asarray(std, np.float32)


def load_feature_extractor(extractor_class: type[_Extractor], model_path: str) -> _Extractor:
    """The checkpoint's feature extractor for sound; nothing in the folder is executed.

    Raises:
        ConfigurationError: If its settings are missing or wrong.
    """
    try:
        return extractor_class.from_pretrained(model_path, local_files_only=True)
    except (OSError, ValueError, TypeError) as error:
        raise ConfigurationError(f"{model_path}: cannot read audio settings: {error}") from error


def check_whisper_extractor(
    extractor: WhisperFeatureExtractor, model_path: str, mels: int, frames: int | None
) -> None:
    """Sees that an extractor fits an encoder, and makes the same of a clip each time.

    Args:
        extractor: The checkpoint's.
        model_path: Checkpoint folder, for messages.
        mels: Mel bins that the encoder takes.
        frames: Frames of the encoder's window; None if it takes any number.

    Raises:
        ConfigurationError: If it does not.
    """
    made = (extractor.feature_size, extractor.nb_max_frames)
    if made != (mels, frames or made[1]):
        raise ConfigurationError(
            f"{model_path}: the processor makes {made[1]} frames of {made[0]} mel bins, the "
            f"encoder takes {frames or 'any'} frames of {mels}"
        )
    if extractor.dither:
        raise ConfigurationError(
            f"{model_path}: dither {extractor.dither} adds noise of its own to each clip, so that "
            "no two answers would be alike; only 0 is taken"
        )


def whisper_settings(extractor: WhisperFeatureExtractor) -> dict[str, Any]:
    """The settings that decide features and row counts."""
    names = ("feature_size", "sampling_rate", "hop_length", "n_fft", "n_samples", "padding_value")
    settings = {name: getattr(extractor, name) for name in names}
    # The filters stand for the mel range, which the extractor does not keep.
    return settings | {"mel_filters": np.asarray(extractor.mel_filters).tolist()}
