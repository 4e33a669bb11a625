# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Seeded clips and pictures, and the files they are sent as."""

from __future__ import annotations

import base64
import io
from typing import TYPE_CHECKING

import numpy as np
import soundfile
from PIL import Image, ImageDraw

# Every test imports this module; few need a video.
if TYPE_CHECKING:
    from tensorrt_llm.inputs.video_data import VideoClip

RATE = 16_000


def clip(seed: int, seconds: float = 2.0, rate: int = RATE) -> np.ndarray:
    """float32 ``[n]``: a tone of its own pitch with a little noise."""
    rng = np.random.default_rng(seed)
    t = np.arange(int(seconds * rate)) / rate
    tone = 0.3 * np.sin(2 * np.pi * (200 + 37 * seed) * t)
    return (tone + 0.05 * rng.standard_normal(len(t))).astype(np.float32)


VIDEO_RATE = 2.0
"""Frames a second of every video here, so that a reference need not be told."""


def film(
    seed: int,
    frames: int = 4,
    width: int = 112,
    height: int = 84,
    sound: np.ndarray | None = None,
    rate: float = VIDEO_RATE,
) -> VideoClip:
    """A video: ``picture``s, each shown for half a second unless another rate is given."""
    from tensorrt_llm.inputs.multimodal_data import AudioData
    from tensorrt_llm.inputs.video_data import VideoClip

    pixels = np.stack([np.asarray(picture(seed * 64 + n, width, height)) for n in range(frames)])
    return VideoClip(
        frames=pixels,
        frame_indices=tuple(range(frames)),
        timestamps=tuple(n / rate for n in range(frames)),
        fps=rate,
        duration=frames / rate,
        total_num_frames=frames,
        audio=None if sound is None else AudioData(sound, RATE),
    )


def picture(seed: int, width: int = 200, height: int = 140) -> Image.Image:
    """RGB picture of a few discs on a ground, all of random colours and places."""
    rng = np.random.default_rng(seed)
    image = Image.new("RGB", (width, height), tuple(rng.integers(0, 256, 3).tolist()))
    draw = ImageDraw.Draw(image)
    for _ in range(6):
        x, y, r = (int(v) for v in rng.integers([0, 0, 8], [width, height, 40]))
        draw.ellipse([x - r, y - r, x + r, y + r], fill=tuple(rng.integers(0, 256, 3).tolist()))
    return image


def wav_bytes(samples: np.ndarray, rate: int = RATE, subtype: str = "PCM_16") -> bytes:
    """A WAV file."""
    buffer = io.BytesIO()
    soundfile.write(buffer, samples, rate, format="WAV", subtype=subtype)
    return buffer.getvalue()


def image_bytes(image: Image.Image, form: str = "PNG") -> bytes:
    """An image file."""
    buffer = io.BytesIO()
    image.save(buffer, form)
    return buffer.getvalue()


def data_uri(data: bytes, media_type: str) -> str:
    """``data:`` URI in base64."""
    return f"data:{media_type};base64,{base64.b64encode(data).decode()}"
