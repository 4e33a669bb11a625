# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Qwen2-Audio: sound, 25 rows a second.

The encoder hears one window of 30 seconds, of which a shorter clip fills the beginning.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from transformers import WhisperFeatureExtractor

from tensorrt_llm.errors import MediaError
from tensorrt_llm.inputs.audio_form import to_model_rate
from tensorrt_llm.inputs.data import MediaItem
from tensorrt_llm.inputs.prepared_item import PreparedItem
from tensorrt_llm.inputs.processors.settings import (
    check_whisper_extractor,
    load_feature_extractor,
    whisper_settings,
)
from tensorrt_llm.inputs.registry import InputProcessor, fingerprint, register_input_processor

# Two convolution strides and a pooling take four frames to a row, and half a row is none.
MIN_FRAMES = 3


def num_rows(frames: int) -> int:
    """Rows of a clip of so many feature frames: a convolution of stride 2, then pooling by 2."""
    return math.ceil(frames / 2) // 2


def prepare_clip(
    item: MediaItem, extractor: WhisperFeatureExtractor, **fields: Any
) -> PreparedItem:
    """Makes the log-mel features of one clip, padded to the extractor's window.

    Args:
        item: The clip.
        extractor: The checkpoint's.
        fields: ``placeholder`` and further arguments of ``PreparedItem.of_rows``.

    Raises:
        MediaError: If the clip is too short to make a row, or longer than the window.
    """
    samples = to_model_rate(item.data, extractor.sampling_rate)
    _check_length(len(samples), extractor)
    features = extractor(
        samples,
        sampling_rate=extractor.sampling_rate,
        padding="max_length",
        return_attention_mask=True,
        return_tensors="pt",
    )
    return PreparedItem.of_rows(
        num_rows=num_rows(int(features["attention_mask"].sum())),
        encoder_inputs={
            "input_features": features["input_features"],
            "feature_attention_mask": features["attention_mask"],
        },
        **fields,
    )


def _check_length(num_samples: int, extractor: WhisperFeatureExtractor) -> None:
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
    embedding_modalities = modalities

    def read_settings(self) -> None:
        """Reads them, and sees that they fit the encoder."""
        self._extractor = load_feature_extractor(WhisperFeatureExtractor, self.model_path)
        audio = self.config.audio_config
        check_whisper_extractor(
            self._extractor, self.model_path, audio.num_mel_bins, 2 * audio.max_source_positions
        )
        self._fingerprint = fingerprint("qwen2_audio.v1", whisper_settings(self._extractor))

    def placeholder_token_id(self, modality: str) -> int:
        """The configured audio token."""
        return int(self.config.audio_token_id)

    def prepare(
        self, item: MediaItem, options: Mapping[str, Any], present: frozenset[str]
    ) -> PreparedItem:
        """Makes the log-mel features of one clip, padded to the window."""
        return prepare_clip(
            item,
            self._extractor,
            placeholder=self.placeholder_token_id("audio"),
            context={"processor": self._fingerprint},
        )
