# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Phi-4-multimodal: pictures and sound.

A picture is cut into at most ``dynamic_hd`` crops (see ``phi4mm_image``). Sound takes 12.5 rows a
second. The model projects sound in one of two ways, by whether a picture is in the same request, so
a clip beside a picture is another item than the clip alone.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np
import torch
from transformers import (
    Phi4MultimodalFeatureExtractor,
)

from tensorrt_llm.errors import ConfigurationError, MediaError, RequestError
from tensorrt_llm.inputs.audio_form import to_model_rate
from tensorrt_llm.inputs.data import MediaItem
from tensorrt_llm.inputs.image_form import model_image
from tensorrt_llm.inputs.prepared_item import PreparedItem
from tensorrt_llm.inputs.processors import phi4mm_image
from tensorrt_llm.inputs.processors.settings import load_feature_extractor, read_image_settings
from tensorrt_llm.inputs.registry import (
    InputProcessor,
    fingerprint,
    refuse_unknown_options,
    register_input_processor,
)

# Most crops that a request may ask for, unless the checkpoint's own setting is higher: enough for a
# page of text, and a bound on the work that one picture can cause.
MAX_DYNAMIC_HD = 64


@register_input_processor("phi4_multimodal")
class Phi4MultimodalInputProcessor(InputProcessor):
    """Processor of Phi-4-multimodal, in transformers' layout and as it is published.

    One option: ``dynamic_hd``, the most crops a picture is cut into.

    Raises:
        ConfigurationError: If the checkpoint's processor settings are missing, or do not fit its
            encoder.
    """

    modalities = ("image", "audio")
    embedding_modalities = modalities

    def read_settings(self) -> None:
        """Reads them, and sees that they fit the encoder."""
        vision = self.config.vision_config
        # The published settings leave out what their code fixes, and so does its encoder.
        sizes = {"size": vision.crop_size, "patch_size": vision.patch_size}
        self._image = phi4mm_image.ImageSettings.from_config(
            {**sizes, **read_image_settings(self.model_path, ("dynamic_hd", "size"))}
        )
        expected = (self.config.vision_config.crop_size, self.config.vision_config.patch_size)
        if (self._image.crop_size, self._image.patch_size) != expected:
            raise ConfigurationError(
                f"{self.model_path}: the processor makes crops of {self._image.crop_size} pixels "
                f"in patches of {self._image.patch_size}, the encoder takes {expected[0]} in "
                f"patches of {expected[1]}"
            )
        self._audio = load_feature_extractor(Phi4MultimodalFeatureExtractor, self.model_path)
        self._fingerprints = {
            "image": fingerprint("phi4mm.image.v1", asdict(self._image)),
            "audio": fingerprint("phi4mm.audio.v1", _audio_settings(self._audio)),
        }

    def placeholder_token_id(self, modality: str) -> int:
        """The configured token of the modality."""
        if modality == "image":
            return int(self.config.vision_config.image_token_id)
        return int(self.config.audio_config.audio_token_id)

    def numbered_placeholder(self, modality: str) -> re.Pattern[str]:
        """The published form: ``<|image_1|>``, ``<|audio_1|>``."""
        return re.compile(rf"<\|{modality}_([0-9]{{1,9}})\|>")

    def adapter_mode(self, present: frozenset[str]) -> str:
        """Pictures select the vision adapter, sound alone the speech adapter."""
        if "image" in present:
            return "vision"
        return "speech" if "audio" in present else ""

    def resolve_options(self, mm_processor_kwargs: Mapping[str, Any]) -> Mapping[str, Any]:
        """Checks ``dynamic_hd``; its default is the checkpoint's."""
        refuse_unknown_options(mm_processor_kwargs, ("dynamic_hd",))
        most = mm_processor_kwargs.get("dynamic_hd")
        if most is None:
            return {"dynamic_hd": self._image.max_crops}
        limit = max(MAX_DYNAMIC_HD, self._image.max_crops)
        if type(most) is not int or not 1 <= most <= limit:
            raise RequestError(
                f"dynamic_hd must be an int from 1 to {limit}, not {most!r}",
                part="mm_processor_kwargs",
            )
        return {"dynamic_hd": most}

    def prepare(
        self, item: MediaItem, options: Mapping[str, Any], present: frozenset[str]
    ) -> PreparedItem:
        """Preprocesses one picture or clip."""
        if item.modality == "image":
            return self._prepare_image(item, options["dynamic_hd"])
        return self._prepare_audio(item, "vision" if "image" in present else "speech")

    def _prepare_image(self, item: MediaItem, max_crops: int) -> PreparedItem:
        image = model_image(item.data)
        plan = phi4mm_image.plan_crops(image.height, image.width, self._image, max_crops)
        return PreparedItem.of_rows(
            self.placeholder_token_id("image"),
            phi4mm_image.num_rows(plan, self._image),
            encoder_inputs=phi4mm_image.encoder_inputs(image, plan, self._image),
            context={"dynamic_hd": max_crops, "processor": self._fingerprints["image"]},
        )

    def _prepare_audio(self, item: MediaItem, projection: str) -> PreparedItem:
        # Alone, never in a batch: clips padded together leak into each other.
        features = self._extract(to_model_rate(item.data, self._audio.sampling_rate))
        return PreparedItem.of_rows(
            self.placeholder_token_id("audio"),
            int(features["audio_embed_sizes"][0]),
            encoder_inputs=features,
            encoder_kwargs={"audio_projection_mode": projection},
            context={"projection": projection, "processor": self._fingerprints["audio"]},
        )

    def _extract(self, samples: np.ndarray) -> dict[str, torch.Tensor]:
        """Log-mel features of a mono clip at the model's rate."""
        extractor = self._audio
        if len(samples) < extractor.win_length:
            raise MediaError(
                f"the audio is too short: {len(samples)} samples at {extractor.sampling_rate} Hz, "
                f"the model needs {extractor.win_length}"
            )
        features = extractor(samples, sampling_rate=extractor.sampling_rate, return_tensors="pt")
        return {name: features[name] for name in ("audio_input_features", "audio_embed_sizes")}


def _audio_settings(extractor: Phi4MultimodalFeatureExtractor) -> dict[str, Any]:
    """The settings that decide features and row counts."""
    names = (
        "feature_size",
        "sampling_rate",
        "hop_length",
        "n_fft",
        "win_length",
        "preemphasis",
        "audio_compression_rate",
        "audio_downsample_rate",
        "audio_feat_stride",
    )
    settings = {name: getattr(extractor, name) for name in names}
    # The filters stand for the mel range, which the extractor does not keep.
    return settings | {"mel_filters": np.asarray(extractor.mel_filters).tolist()}
