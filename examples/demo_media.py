# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Clips and pictures for the demo, made from a seed."""

from __future__ import annotations

import base64
import wave
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw

SAMPLE_RATE = 16_000


def write_clip(path: Path, seed: int, seconds: int = 16) -> Path:
    """Writes a mono WAV at 16 kHz, 16-bit PCM: syllables of changing pitch with pauses."""
    rng = np.random.default_rng(seed)
    syllables = seconds * 4
    samples = SAMPLE_RATE // 4
    t = np.arange(samples) / SAMPLE_RATE
    envelope = np.hanning(samples)
    voiced = rng.random(syllables) < 0.8
    pitches = rng.uniform(110, 420, syllables)
    sound = np.concatenate(
        [
            on * envelope * (np.sin(2 * np.pi * pitch * t) + 0.5 * np.sin(6 * np.pi * pitch * t))
            for on, pitch in zip(voiced, pitches, strict=True)
        ]
    )
    noisy = 0.4 * sound + 0.01 * rng.standard_normal(len(sound))
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(SAMPLE_RATE)
        file.writeframes((noisy * 32767).clip(-32768, 32767).astype("<i2").tobytes())
    return path


def write_picture(path: Path, seed: int, width: int = 224, height: int = 168) -> Path:
    """Writes a picture of coloured discs."""
    rng = np.random.default_rng(seed)
    picture = Image.new("RGB", (width, height), tuple(rng.integers(0, 256, 3).tolist()))
    draw = ImageDraw.Draw(picture)
    for _ in range(8):
        x, y, radius = (int(value) for value in rng.integers([0, 0, 10], [width, height, 50]))
        box = (x - radius, y - radius, x + radius, y + radius)
        draw.ellipse(box, fill=tuple(rng.integers(0, 256, 3).tolist()))
    picture.save(path)
    return path


def data_uri(path: Path, media_type: str) -> str:
    """The file as a ``data:`` URI."""
    return f"data:{media_type};base64,{base64.b64encode(path.read_bytes()).decode()}"
