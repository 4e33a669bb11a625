# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import re

import numpy as np
import pytest

from tensorrt_llm.errors import MediaError
from tensorrt_llm.inputs.video_data import VideoClip

GOOD = {
    "frames": np.zeros((2, 4, 6, 3), np.uint8),
    "frame_indices": (0, 5),
    "timestamps": (0.0, 1.0),
    "fps": 5.0,
    "duration": 2.0,
    "total_num_frames": 10,
}


def test_a_clip_holds_what_it_is_given() -> None:
    clip = VideoClip(**GOOD)
    assert clip.num_frames == 2 and clip.audio is None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"frames": np.zeros((2, 4, 6), np.uint8)}, "not [2, 4, 6]"),
        ({"frames": np.zeros((0, 4, 6, 3), np.uint8)}, "not [0, 4, 6, 3]"),
        ({"frames": np.zeros((2, 3, 4, 6), np.uint8)}, "not [2, 3, 4, 6]"),
        ({"frame_indices": (0,)}, "2 frames and 1 frame_indices"),
        ({"timestamps": (0.0, 1.0, 2.0)}, "2 frames and 3 timestamps"),
        ({"timestamps": (1.0, 0.0)}, "timestamps do not ascend"),
        ({"frame_indices": (5, 0)}, "frame_indices do not ascend"),
        ({"frame_indices": (0, 10)}, "frame 10 of a video of 10 frames"),
        ({"frame_indices": (-1, 0)}, "of a video of 10 frames"),
        ({"fps": 0.0}, "not 0.0 fps"),
        ({"duration": float("inf")}, "inf s"),
        ({"fps": float("nan")}, "nan fps"),
    ],
)
def test_parts_that_do_not_fit_are_refused(change, message) -> None:
    with pytest.raises(MediaError, match=re.escape(message)):
        VideoClip(**(GOOD | change))


def test_frames_are_bytes() -> None:
    with pytest.raises(TypeError, match="float32"):
        VideoClip(**(GOOD | {"frames": np.zeros((2, 4, 6, 3), np.float32)}))
