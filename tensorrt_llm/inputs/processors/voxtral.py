# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Voxtral: sound of any length, in windows of 30 seconds.

A clip is filled up with silence to whole windows. Each window makes the same number of rows, its
silence included, and the encoder hears each alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from transformers import WhisperFeatureExtractor

from tensorrt_llm.errors import ConfigurationError
from tensorrt_llm.inputs.audio_form import to_model_rate
from tensorrt_llm.inputs.data import MediaItem
from tensorrt_llm.inputs.prepared_item import PreparedItem
from tensorrt_llm.inputs.processors.settings import (
    check_whisper_extractor,
    load_feature_extractor,
    whisper_settings,
)
from tensorrt_llm.inputs.registry import InputProcessor, fingerprint, register_input_processor


@register_input_processor("voxtral")
class VoxtralInputProcessor(InputProcessor):
    """Processor of Voxtral. Takes no options.

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
        # The projector takes as many neighbouring frames together as fill its width.
        values = audio.max_source_positions * audio.hidden_size
        self._rows_per_window, rest = divmod(values, audio.intermediate_size)
        if rest:
            raise ConfigurationError(
                f"{self.model_path}: a window of {values} values does not make whole rows of "
                f"{audio.intermediate_size}"
            )
        self._fingerprint = fingerprint("voxtral.v1", whisper_settings(self._extractor))

    def placeholder_token_id(self, modality: str) -> int:
        """The configured audio token."""
        return int(self.config.audio_token_id)

    def prepare(
        self, item: MediaItem, options: Mapping[str, Any], present: frozenset[str]
    ) -> PreparedItem:
        """Makes the log-mel features of one clip, window by window."""
        extractor = self._extractor
        features = extractor(
            to_model_rate(item.data, extractor.sampling_rate),
            sampling_rate=extractor.sampling_rate,
            padding="longest",
            truncation=False,
            pad_to_multiple_of=extractor.n_samples,
            return_tensors="pt",
        )["input_features"]
        windows: torch.Tensor = features[0].unflatten(1, (-1, extractor.nb_max_frames))
        windows = windows.transpose(0, 1).contiguous()
        return PreparedItem.of_rows(
            self.placeholder_token_id("audio"),
            len(windows) * self._rows_per_window,
            encoder_inputs={"input_features": windows},
            context={"processor": self._fingerprint},
        )
