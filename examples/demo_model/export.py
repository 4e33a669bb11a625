# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Writes what ``train.py`` made as a checkpoint, with the loss curve beside it.

    python examples/demo_model/export.py RUN [RUN ...]

RUN is a folder with ``state.pt`` and ``log.jsonl``; of several, in order, the last one's weights
are taken.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import torch
from transformers import Phi4MultimodalForCausalLM

if __package__ in (None, ""):  # run as a script
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from PIL import Image, ImageDraw, ImageFont

from examples.demo_model.architecture import load_tokenizer, make_config

FOLDER = Path(__file__).parent
CHECKPOINT = FOLDER / "checkpoint"
CURVES = {"answer": (200, 40, 40), "cells": (40, 120, 60), "heard": (40, 70, 200)}
WIDTH, HEIGHT, MARGIN = 900, 420, 50


def main() -> None:
    """Command line entry."""
    parser = argparse.ArgumentParser(description="Export the trained demo model.")
    parser.add_argument("runs", type=Path, nargs="+")
    runs: list[Path] = parser.parse_args().runs
    write_weights(runs[-1] / "state.pt", CHECKPOINT)
    texts = [(run / "log.jsonl").read_text() for run in runs]
    (FOLDER / "training_log.jsonl").write_text("".join(texts))
    lines = [json.loads(line) for text in texts for line in text.splitlines()]
    draw_curve(lines).save(FOLDER / "training_curve.png", optimize=True)


def write_weights(state: Path, checkpoint: Path) -> None:
    """Writes bfloat16 weights and configuration beside tokenizer and processor settings."""
    weights = torch.load(state, map_location="cpu", weights_only=True)["model"]
    kept = {name[3:]: part.float() for name, part in weights.items() if name.startswith("lm.")}
    model: Any = Phi4MultimodalForCausalLM(make_config(load_tokenizer(checkpoint)))
    model.load_state_dict(kept)
    model.generation_config.eos_token_id = model.config.eos_token_id
    model.generation_config.pad_token_id = model.config.pad_token_id
    model.to(torch.bfloat16).eval().save_pretrained(checkpoint)
    # Half the bytes on disk; computed in float32, in which near ties do not depend on batching.
    path = checkpoint / "config.json"
    settings = json.loads(path.read_text()) | {"dtype": "float32"}
    path.write_text(json.dumps(settings, indent=2) + "\n")


def draw_curve(lines: list[dict[str, float]]) -> Image.Image:
    """The losses over the steps, both on their own scale: steps linear, losses logarithmic."""
    image = Image.new("RGB", (WIDTH, HEIGHT), "white")
    draw = ImageDraw.Draw(image)
    font = ImageFont.load_default(14)
    last = max(line["step"] for line in lines)
    decades = (-4, 2)

    def place(step: float, loss: float) -> tuple[float, float]:
        exponent = max(torch.log10(torch.tensor(max(loss, 1e-9))).item(), decades[0])
        high = (exponent - decades[0]) / (decades[1] - decades[0])
        x = MARGIN + (WIDTH - 2 * MARGIN) * step / last
        return x, HEIGHT - MARGIN - (HEIGHT - 2 * MARGIN) * high

    for exponent in range(decades[0], decades[1] + 1):
        y = place(0, 10.0**exponent)[1]
        draw.line((MARGIN, y, WIDTH - MARGIN, y), fill=(220, 220, 220))
        draw.text((6, y - 8), f"1e{exponent}", fill="black", font=font)
    for number, (name, colour) in enumerate(CURVES.items()):
        draw.line([place(line["step"], line[name]) for line in lines], fill=colour, width=2)
        draw.text((MARGIN + 110 * number, 15), name, fill=colour, font=font)
    draw.text((WIDTH - MARGIN - 110, HEIGHT - 35), f"step {last:.0f}", fill="black", font=font)
    return image


if __name__ == "__main__":
    main()
