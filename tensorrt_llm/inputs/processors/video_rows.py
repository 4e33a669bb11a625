# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""What is the same for the video of every family: most rows, and scaled frames."""

from __future__ import annotations

import numpy as np
from PIL import Image

from tensorrt_llm.errors import MediaError

MAX_VIDEO_ROWS = 32768
"""Most rows that a video may take."""


def check_rows(rows: int, option: str | None = None) -> None:
    """Sees that a video takes no more rows than one may.

    Args:
        rows: Its rows.
        option: Processor option that makes them fewer, beside taking fewer frames.

    Raises:
        MediaError: If it does.
    """
    if rows > MAX_VIDEO_ROWS:
        smaller = f", or a smaller {option} (mm_processor_kwargs)" if option else ""
        raise MediaError(
            f"the video would take {rows} rows, at most {MAX_VIDEO_ROWS} are taken: ask for fewer "
            f"frames (media_io_kwargs){smaller}"
        )


def scaled_frames(frames: np.ndarray, size: tuple[int, int], resample: int) -> np.ndarray:
    """Scales frames, uint8 ``[frames, height, width, 3]``, to a size (height, width)."""
    if frames.shape[1:3] == size:
        return frames
    how = Image.Resampling(resample)
    return np.stack([np.asarray(Image.fromarray(f).resize(size[::-1], how)) for f in frames])
