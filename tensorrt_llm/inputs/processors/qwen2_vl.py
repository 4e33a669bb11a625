# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Qwen2-VL and Qwen2.5-VL: pictures and video of any size, without torchvision.

Rows stand on a grid of time, height and width, so the place of the text behind an item depends on
its shape, not only on its number of rows (see ``positions``). Qwen2.5-VL places the frames of a
video by the seconds between them, Qwen2-VL one behind the other.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np
import torch

from tensorrt_llm.errors import ConfigurationError, MediaError, RequestError
from tensorrt_llm.inputs.data import MediaItem
from tensorrt_llm.inputs.image_form import model_image
from tensorrt_llm.inputs.positions import grid_positions
from tensorrt_llm.inputs.prepared_item import PreparedItem
from tensorrt_llm.inputs.processors.qwen_pixels import ImageSettings, patch_values, scaled_size
from tensorrt_llm.inputs.processors.qwen_video import (
    VideoSettings,
    group_times,
    seconds_per_group,
    video_patches,
)
from tensorrt_llm.inputs.processors.settings import read_image_settings, read_video_settings
from tensorrt_llm.inputs.processors.video_rows import MAX_VIDEO_ROWS, check_rows
from tensorrt_llm.inputs.registry import (
    InputProcessor,
    fingerprint,
    refuse_unknown_options,
    register_input_processor,
)
from tensorrt_llm.inputs.video_data import VideoClip

# Most rows that a request may ask for in a picture, unless the checkpoint's own setting is higher.
MAX_ROWS = 16384
_BOUNDS = ("min_pixels", "max_pixels")


@register_input_processor("qwen2_vl", "qwen2_5_vl")
class Qwen2VLInputProcessor(InputProcessor):
    """Processor of Qwen2-VL and Qwen2.5-VL.

    Options: ``min_pixels`` and ``max_pixels``, the bounds of a scaled picture's area, and
    ``video_min_pixels`` and ``video_max_pixels``, those of a frame's.

    Raises:
        ConfigurationError: If the checkpoint's processor settings are missing, or do not fit its
            encoder.
    """

    modalities: tuple[str, ...] = ("image", "video")
    # The rows of a video also need their times.
    embedding_modalities: tuple[str, ...] = ("image",)
    grid_modalities = ("image",)

    video_settings_class: type[VideoSettings] = VideoSettings
    shares_video_settings = True
    """Whether the settings of pictures hold for video where a checkpoint has no others."""

    def read_settings(self) -> None:
        """Reads them, and sees that they fit the encoder."""
        self._settings = ImageSettings.from_config(
            read_image_settings(self.model_path, ("patch_size", "merge_size"))
        )
        self._video_settings = self.video_settings_class.from_config(
            read_video_settings(self.model_path, shared=self.shares_video_settings)
        )
        vision = self.config.vision_config
        for settings in (self._settings, self._video_settings):
            for name, expected in (
                ("patch_size", vision.patch_size),
                ("merge_size", vision.spatial_merge_size),
                ("temporal_patch_size", vision.temporal_patch_size),
            ):
                made = getattr(settings, name)
                if made != expected:
                    raise ConfigurationError(
                        f"{self.model_path}: the processor has {name} {made}, the encoder "
                        f"{expected}"
                    )
        self._fingerprint = fingerprint("qwen2_vl.image.v1", asdict(self._settings))
        # The rate of positions decides places, and with them the keys and values of rows.
        self._video_fingerprint = fingerprint(
            "qwen2_vl.video.v1", asdict(self._video_settings) | {"model": self.config.model_type}
        )

    def placeholder_token_id(self, modality: str) -> int:
        """The configured image or video token."""
        return int(getattr(self.config, f"{modality}_token_id"))

    def option_names(self) -> tuple[str, ...]:
        """Options of a request."""
        return (*_BOUNDS, *(f"video_{name}" for name in _BOUNDS))

    def resolve_options(self, mm_processor_kwargs: Mapping[str, Any]) -> Mapping[str, Any]:
        """Checks the bounds; their defaults are the checkpoint's."""
        refuse_unknown_options(mm_processor_kwargs, self.option_names())
        pixels, frames = self._settings, self._video_settings
        limit = max(MAX_ROWS * pixels.square**2, pixels.max_pixels)
        # A bound of some families is of all frames together.
        video_limit = MAX_VIDEO_ROWS * frames.temporal_patch_size * frames.square**2
        return {
            **_bounds("", mm_processor_kwargs, pixels, limit),
            **_bounds("video_", mm_processor_kwargs, frames, max(video_limit, frames.max_pixels)),
        }

    def prepare(
        self, item: MediaItem, options: Mapping[str, Any], present: frozenset[str]
    ) -> PreparedItem:
        """Preprocesses one picture or video."""
        if item.modality == "video":
            return self._prepare_video(item.data, options)
        settings = self._settings
        bounds = {name: options[name] for name in _BOUNDS}
        image = model_image(item.data)
        size = scaled_size(image.height, image.width, settings.square, **bounds)
        rows_high, rows_wide = (side // settings.square for side in size)
        patches = torch.from_numpy(patch_values(image, size, settings))
        grid = torch.tensor([[1, *(side // settings.patch_size for side in size)]])
        return PreparedItem.of_rows(
            self.placeholder_token_id("image"),
            rows_high * rows_wide,
            encoder_inputs={"pixel_values": patches, "image_grid_thw": grid},
            context={**bounds, "processor": self._fingerprint},
            positions=grid_positions(rows_high, rows_wide),
            grid=(rows_high, rows_wide),
        )

    def lay_out_rows(
        self, modality: str, num_rows: int, grid: tuple[int, int] | None
    ) -> PreparedItem:
        """Rows of a picture stand on their grid."""
        if grid is None:
            return super().lay_out_rows(modality, num_rows, grid)
        if min(grid) < 1 or math.prod(grid) != num_rows:
            raise MediaError(f"{num_rows} rows do not fill a grid of {grid[0]} x {grid[1]}")
        return PreparedItem.of_rows(
            self.placeholder_token_id(modality),
            num_rows,
            encoder_inputs={},
            positions=grid_positions(*grid),
            grid=grid,
        )

    def _prepare_video(self, video: VideoClip, options: Mapping[str, Any]) -> PreparedItem:
        settings = self._video_settings
        bounds = {name: options[f"video_{name}"] for name in _BOUNDS}
        size = settings.frame_size(video, **bounds)
        groups = settings.num_groups(video)
        high, wide = (side // settings.square for side in size)
        check_rows(groups * high * wide, "video_max_pixels")
        patches = torch.from_numpy(video_patches(video, size, settings))
        grid = torch.tensor([[groups, *(side // settings.patch_size for side in size)]])
        return self._placed_video(
            video,
            (groups, high, wide),
            encoder_inputs={"pixel_values_videos": patches, "video_grid_thw": grid},
            context={**bounds, "processor": self._video_fingerprint},
        )

    def _placed_video(
        self, video: VideoClip, grid: tuple[int, int, int], **fields: Any
    ) -> PreparedItem:
        """The item of a video.

        Args:
            video: The video.
            grid: Groups of frames, and lines and columns of rows of each.
            fields: Its encoder inputs and context.
        """
        groups, high, wide = grid
        step = np.float32(1)
        rate = getattr(self.config.vision_config, "tokens_per_second", None)
        if self.config.model_type == "qwen2_5_vl" and rate is not None:
            step = np.float32(rate) * np.float32(seconds_per_group(video, self._video_settings))
        return PreparedItem.of_rows(
            self.placeholder_token_id("video"),
            groups * high * wide,
            positions=grid_positions(high, wide, group_times(groups, step)),
            **fields,
        )


def _bounds(
    prefix: str, given: Mapping[str, Any], settings: ImageSettings, limit: int
) -> dict[str, int]:
    """The two bounds of a request, checked."""
    options: dict[str, int] = {}
    for name in _BOUNDS:
        value = given.get(prefix + name)
        if value is None:
            value = getattr(settings, name)
        elif type(value) is not int or not 1 <= value <= limit:
            raise RequestError(
                f"{prefix}{name} must be an int from 1 to {limit}, not {value!r:.80}",
                part="mm_processor_kwargs",
            )
        options[prefix + name] = value
    least, most = options.values()
    if least > most:
        raise RequestError(
            f"{prefix}min_pixels {least} exceeds {prefix}max_pixels {most}",
            part="mm_processor_kwargs",
        )
    return options
