# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Writes the sample clips and pictures that ``make demo`` sends. Needs espeak-ng.

    python examples/demo_model/media.py

The files are kept in ``media/``, so the demo itself needs no voices. The voice is one that the
model was not trained on. ``media/answers.json`` says what is in them.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np

if __package__ in (None, ""):  # run as a script
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from PIL import Image

from examples.demo_model.pictures import draw_shapes
from examples.demo_model.sounds import Clip, speak
from examples.demo_model.voices import HELD_OUT, RATE, VoiceBank, render

FOLDER = Path(__file__).with_name("media")
SEED = 14125
DIGITS = 4
CLIP_SAMPLES = int(2.8 * RATE)


def main() -> None:
    """Command line entry."""
    rng = np.random.default_rng(SEED)
    bank = render(HELD_OUT[:1], 1, SEED)
    FOLDER.mkdir(exist_ok=True)
    answers = {}
    for name in ("clip_a.wav", "clip_b.wav"):
        clip = _clip(rng, bank)
        (FOLDER / name).write_bytes(clip.wav(rng))
        answers[name] = " ".join(map(str, clip.digits))
    for name in ("picture_1.png", "picture_2.png"):
        picture = draw_shapes(rng, 1)
        Image.fromarray(picture.pixels).save(FOLDER / name, optimize=True)
        answers[name] = picture.things[0].name
    (FOLDER / "answers.json").write_text(json.dumps(answers, indent=2) + "\n", encoding="utf-8")


def _clip(rng: np.random.Generator, bank: VoiceBank) -> Clip:
    """All clips are equally long: only what is said tells them apart."""
    while True:
        clip = speak(rng, bank, DIGITS, CLIP_SAMPLES)
        if len(clip.digits) == DIGITS:
            return clip


if __name__ == "__main__":
    main()
