# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Qwen2.5-Omni's thinker: pictures as Qwen2.5-VL, and sound, 25 rows a second.

A clip's rows stand at their indices; a picture's on its grid, with the text and sound behind it at
the grid's far edge.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from transformers import WhisperFeatureExtractor

from tensorrt_llm.inputs.data import MediaItem
from tensorrt_llm.inputs.processors.qwen2_audio import prepare_clip
from tensorrt_llm.inputs.processors.qwen2_vl import Qwen2VLInputProcessor
from tensorrt_llm.inputs.processors.settings import (
    check_whisper_extractor,
    load_feature_extractor,
    whisper_settings,
)
from tensorrt_llm.inputs.registry import PreparedItem, fingerprint, register_input_processor


@register_input_processor("qwen2_5_omni_thinker")
class Qwen2_5OmniInputProcessor(Qwen2VLInputProcessor):
    """Processor of Qwen2.5-Omni's thinker. Options of pictures are those of Qwen2.5-VL.

    A clip longer than the extractor's window is refused.

    Raises:
        ConfigurationError: If the checkpoint's processor settings are missing, or do not fit its
            encoders.
    """

    modalities = ("image", "audio")

    def read_settings(self) -> None:
        """Reads them, and sees that they fit the encoders."""
        super().read_settings()
        self._extractor = load_feature_extractor(WhisperFeatureExtractor, self.model_path)
        # The encoder hears a clip in pieces, as many as it has.
        mels = self.config.audio_config.num_mel_bins
        check_whisper_extractor(self._extractor, self.model_path, mels, None)
        self._sound_fingerprint = fingerprint(
            "qwen2_5_omni.audio.v1", whisper_settings(self._extractor)
        )

    def placeholder_token_id(self, modality: str) -> int:
        """The configured image or audio token."""
        config = self.config
        return int(config.image_token_id if modality == "image" else config.audio_token_id)

    def prepare(
        self, item: MediaItem, options: Mapping[str, Any], present: frozenset[str]
    ) -> PreparedItem:
        """Preprocesses one picture or clip."""
        if item.modality == "image":
            return super().prepare(item, options, present)
        return prepare_clip(
            item,
            self._extractor,
            placeholder=self.placeholder_token_id("audio"),
            context={"processor": self._sound_fingerprint},
        )
