# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Pictures made from a seed, and files as URIs."""

from __future__ import annotations

import base64
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw


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
