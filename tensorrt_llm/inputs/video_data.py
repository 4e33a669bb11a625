# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""A decoded video in canonical form."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from tensorrt_llm.errors import MediaError

if TYPE_CHECKING:
    from tensorrt_llm.inputs.multimodal_data import AudioData


@dataclass(frozen=True, eq=False)
class VideoClip:
    """Frames chosen from a video, when each is shown, and its sound.

    Everything here is part of the item's identity: the same pictures at other times, or under
    another sound, are another video.

    Args:
        frames: uint8 array ``[frames, height, width, 3]``, RGB.
        frame_indices: Index of each frame in the whole video, ascending.
        timestamps: Seconds from the start of the video at which each frame is shown, ascending.
        fps: Average frames a second of the whole video.
        duration: Length of the whole video in seconds.
        total_num_frames: Frames of the whole video.
        audio: The sound track, if the video has one and it was asked for.

    Raises:
        TypeError: If frames is not a uint8 ndarray.
        MediaError: If there are no frames, or the parts do not fit each other.
    """

    frames: np.ndarray
    frame_indices: tuple[int, ...]
    timestamps: tuple[float, ...]
    fps: float
    duration: float
    total_num_frames: int
    audio: AudioData | None = None

    def __post_init__(self) -> None:
        frames = self.frames
        if not isinstance(frames, np.ndarray) or frames.dtype != np.uint8:
            found = getattr(frames, "dtype", type(frames).__name__)
            raise TypeError(f"video frames are a uint8 array, not {found}")
        if frames.ndim != 4 or frames.shape[3] != 3 or frames.size == 0:
            raise MediaError(
                f"video frames have shape [frames, height, width, 3], not {list(frames.shape)}"
            )
        for name in ("frame_indices", "timestamps"):
            values = getattr(self, name)
            if len(values) != len(frames):
                raise MediaError(f"the video has {len(frames)} frames and {len(values)} {name}")
            if any(later < earlier for earlier, later in pairwise(values)):
                raise MediaError(f"the video's {name} do not ascend")
        if not 0 <= self.frame_indices[0] <= self.frame_indices[-1] < self.total_num_frames:
            raise MediaError(
                f"frame {self.frame_indices[-1]} of a video of {self.total_num_frames} frames"
            )
        if not (0 < self.fps < float("inf") and 0 < self.duration < float("inf")):
            raise MediaError(
                f"a video has a positive rate and length, not {self.fps} fps and {self.duration} s"
            )

    @property
    def num_frames(self) -> int:
        """Number of frames chosen."""
        return len(self.frames)
