# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Qwen2-Audio: sound, 25 rows a second.

The encoder hears one window of 30 seconds, of which a shorter clip fills the beginning.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from transformers import WhisperFeatureExtractor

from tensorrt_llm.errors import ConfigurationError, MediaError
from tensorrt_llm.inputs.audio_form import to_model_rate
from tensorrt_llm.inputs.data import MediaItem
from tensorrt_llm.inputs.processors.settings import load_feature_extractor
from tensorrt_llm.inputs.registry import (
    InputProcessor,
    PreparedItem,
    fingerprint,
    refuse_unknown_options,
    register_input_processor,
)

# Two convolution strides and a pooling take four frames to a row, and half a row is none.
MIN_FRAMES = 3


def num_rows(frames: int) -> int:
    """Rows of a clip of so many feature frames: a convolution of stride 2, then pooling by 2."""
    return math.ceil(frames / 2) // 2


@register_input_processor("qwen2_audio")
class Qwen2AudioInputProcessor(InputProcessor):
    """Processor of Qwen2-Audio. Takes no options.

    A clip longer than the window is refused: to drop its end silently would be an answer about
    another clip.

    Raises:
        ConfigurationError: If the checkpoint's processor settings are missing, or do not fit its
            encoder.
    """

    modalities = ("audio",)

    def read_settings(self) -> None:
        """Reads them, and sees that they fit the encoder."""
        self._extractor = load_feature_extractor(WhisperFeatureExtractor, self.model_path)
        expected = (
            self.config.audio_config.num_mel_bins,
            2 * self.config.audio_config.max_source_positions,
        )
        made = (self._extractor.feature_size, self._extractor.nb_max_frames)
        if made != expected:
            raise ConfigurationError(
                f"{self.model_path}: the processor makes {made[1]} frames of {made[0]} mel bins, "
                f"the encoder takes {expected[1]} frames of {expected[0]}"
            )
        if self._extractor.dither:
            raise ConfigurationError(
                f"{self.model_path}: dither {self._extractor.dither} adds noise of its own to each "
                "clip, so that no two answers would be alike; only 0 is taken"
            )
        self._fingerprint = fingerprint("qwen2_audio.v1", _settings(self._extractor))

    def placeholder_token_id(self, modality: str) -> int:
        """The configured audio token."""
        return int(self.config.audio_token_id)

    def resolve_options(self, mm_processor_kwargs: Mapping[str, Any]) -> Mapping[str, Any]:
        """Refuses every option."""
        refuse_unknown_options(mm_processor_kwargs, ())
        return {}

    def prepare(
        self, item: MediaItem, options: Mapping[str, Any], present: frozenset[str]
    ) -> PreparedItem:
        """Makes the log-mel features of one clip, padded to the window."""
        extractor = self._extractor
        samples = to_model_rate(item.data, extractor.sampling_rate)
        self._check_length(len(samples))
        features = extractor(
            samples,
            sampling_rate=extractor.sampling_rate,
            return_attention_mask=True,
            return_tensors="pt",
        )
        return PreparedItem.of_rows(
            self.placeholder_token_id("audio"),
            num_rows(int(features["attention_mask"].sum())),
            encoder_inputs={
                "input_features": features["input_features"],
                "feature_attention_mask": features["attention_mask"],
            },
            context={"processor": self._fingerprint},
        )

    def _check_length(self, num_samples: int) -> None:
        extractor = self._extractor
        rate, hop = extractor.sampling_rate, extractor.hop_length
        if math.ceil(num_samples / hop) < MIN_FRAMES:
            raise MediaError(
                f"the audio is too short: {num_samples} samples at {rate} Hz, the model needs "
                f"{(MIN_FRAMES - 1) * hop + 1}"
            )
        if num_samples > extractor.n_samples:
            raise MediaError(
                f"the audio is too long: {num_samples / rate:.3f} seconds, the model hears at most "
                f"{extractor.n_samples / rate:g}"
            )


def _settings(extractor: WhisperFeatureExtractor) -> dict[str, Any]:
    """The settings that decide features and row counts."""
    names = ("feature_size", "sampling_rate", "hop_length", "n_fft", "n_samples", "padding_value")
    settings = {name: getattr(extractor, name) for name in names}
    # The filters stand for the mel range, which the extractor does not keep.
    return settings | {"mel_filters": np.asarray(extractor.mel_filters).tolist()}
