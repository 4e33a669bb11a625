# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Qwen2.5-Omni's thinker: pictures and video as Qwen2.5-VL, and sound, 25 rows a second.

A clip's rows stand at their indices; a picture's on its grid, with the text and sound behind it at
the grid's far edge; a video's at the seconds of its frames, 25 places a second.

A video may be heard as well (``use_audio_in_video``): two seconds of it, then two seconds of its
sound, and so on. The rows of both are one item, and both stand at their times.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import torch
from transformers import WhisperFeatureExtractor

from tensorrt_llm.errors import RequestError
from tensorrt_llm.inputs.data import MediaItem
from tensorrt_llm.inputs.positions import ItemPositions, grid_positions
from tensorrt_llm.inputs.prepared_item import PreparedItem
from tensorrt_llm.inputs.processors.qwen2_audio import prepare_clip
from tensorrt_llm.inputs.processors.qwen2_vl import Qwen2VLInputProcessor
from tensorrt_llm.inputs.processors.qwen_video import group_times, seconds_per_group
from tensorrt_llm.inputs.processors.settings import (
    check_whisper_extractor,
    load_feature_extractor,
    whisper_settings,
)
from tensorrt_llm.inputs.processors.video_rows import check_rows
from tensorrt_llm.inputs.registry import fingerprint, register_input_processor
from tensorrt_llm.inputs.video_data import VideoClip

_WITH_SOUND = "use_audio_in_video"


def chunk_numbers(times: np.ndarray, chunk: int) -> np.ndarray:
    """Which chunk of time each row belongs to, as the stock processor counts them.

    Args:
        times: Places on the time axis, ascending.
        chunk: Places of a chunk.

    Returns:
        int ``[n]``. A gap of several chunks counts as one.
    """

    def count() -> Iterator[int]:
        current = 0
        for time in times.tolist():
            current += time >= (current + 1) * chunk
            yield current

    return np.fromiter(count(), np.int64, len(times))


@register_input_processor("qwen2_5_omni_thinker")
class Qwen2_5OmniInputProcessor(Qwen2VLInputProcessor):
    """Processor of Qwen2.5-Omni's thinker.

    Options are those of Qwen2.5-VL, and ``use_audio_in_video``: whether the sound of a video is
    heard; off by default, and without effect on a video that has none.

    A clip longer than the extractor's window is refused.

    Raises:
        ConfigurationError: If the checkpoint's processor settings are missing, or do not fit its
            encoders.
    """

    modalities = ("image", "audio", "video")
    embedding_modalities = ("image", "audio")

    # The stock processor has bounds of its own, whatever the settings of pictures say.
    shares_video_settings = False

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

    def resolve_options(self, mm_processor_kwargs: Mapping[str, Any]) -> Mapping[str, Any]:
        """See the class."""
        given = dict(mm_processor_kwargs)
        heard = given.pop(_WITH_SOUND, None)
        if heard is not None and type(heard) is not bool:
            raise RequestError(
                f"{_WITH_SOUND} must be true or false, not {heard!r:.80}",
                part="mm_processor_kwargs",
            )
        return {**super().resolve_options(given), _WITH_SOUND: bool(heard)}

    def option_names(self) -> tuple[str, ...]:
        """See the base class."""
        return (*super().option_names(), _WITH_SOUND)

    def prepare(
        self, item: MediaItem, options: Mapping[str, Any], present: frozenset[str]
    ) -> PreparedItem:
        """Preprocesses one picture, clip or video."""
        if item.modality == "audio":
            return self._prepare_sound(item)
        prepared = super().prepare(item, options, present)
        if item.modality == "video" and options[_WITH_SOUND] and item.data.audio is not None:
            sound = MediaItem("audio", item.data.audio, None, part=item.part)
            return self._interleaved(prepared, self._prepare_sound(sound))
        return prepared

    def _prepare_sound(self, item: MediaItem) -> PreparedItem:
        return prepare_clip(
            item,
            self._extractor,
            placeholder=self.placeholder_token_id("audio"),
            context={"processor": self._sound_fingerprint},
        )

    def _placed_video(
        self, video: VideoClip, grid: tuple[int, int, int], **fields: Any
    ) -> PreparedItem:
        groups, high, wide = grid
        step = np.float32(seconds_per_group(video, self._video_settings))
        rate = float(self.config.position_id_per_seconds)
        relative = grid_positions(high, wide, group_times(groups, step, rate)).relative
        return PreparedItem.of_rows(
            self.placeholder_token_id("video"),
            groups * high * wide,
            positions=ItemPositions(relative, int(relative.max()) + 1),
            **fields,
        )

    def _interleaved(self, seen: PreparedItem, heard: PreparedItem) -> PreparedItem:
        """A video with its sound between two marks."""
        assert seen.positions is not None
        config = self.config
        chunk = int(config.position_id_per_seconds * config.seconds_per_chunk)
        clock = np.arange(len(heard.token_ids), dtype=np.int32)
        of_seen, of_heard = seen.positions.relative, np.tile(clock, (3, 1))
        numbers = np.concatenate([chunk_numbers(p[0], chunk) for p in (of_seen, of_heard)])
        is_sound = np.repeat([False, True], [of_seen.shape[1], of_heard.shape[1]])
        check_rows(len(numbers), "video_max_pixels")
        # Of each chunk what is seen first; in each of the two nothing changes its order.
        order = np.lexsort((is_sound, numbers))
        places = np.concatenate([of_seen, of_heard], axis=1)[:, order]
        end = int(places.max()) + 1
        # The mark before the sound stands where that of the video does, before the item; and so
        # behind it.
        relative = np.concatenate([[[-1]] * 3, places, [[end]] * 3], axis=1, dtype=np.int32)
        rows = np.concatenate([seen.token_ids, heard.token_ids])[order]
        marks = [config.audio_start_token_id], [config.audio_end_token_id]
        context = {**seen.context, "sound": heard.context["processor"], "chunk": chunk}
        return PreparedItem(
            np.concatenate([marks[0], rows, marks[1]], dtype=np.int32),
            np.pad(np.ones(len(rows), bool), 1),
            encoder_inputs={
                **seen.encoder_inputs,
                **heard.encoder_inputs,
                "is_sound": torch.from_numpy(is_sound[order]),
            },
            context=context,
            positions=ItemPositions(relative, end),
        )
