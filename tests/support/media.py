# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Seeded clips and pictures, and the files they are sent as."""

from __future__ import annotations

import base64
import io

import numpy as np
import soundfile
from PIL import Image, ImageDraw

RATE = 16_000


def clip(seed: int, seconds: float = 2.0, rate: int = RATE) -> np.ndarray:
    """float32 ``[n]``: a tone of its own pitch with a little noise."""
    rng = np.random.default_rng(seed)
    t = np.arange(int(seconds * rate)) / rate
    tone = 0.3 * np.sin(2 * np.pi * (200 + 37 * seed) * t)
    return (tone + 0.05 * rng.standard_normal(len(t))).astype(np.float32)


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
