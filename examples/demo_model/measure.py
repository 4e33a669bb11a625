# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Measures the demo model's answers on many fresh questions, without a server.

    python examples/demo_model/measure.py [--questions 200]

The right answer is put behind each question in one pass; where every token of it is the likeliest,
greedy decoding would have written it. ``evaluate.py`` asks through the server instead. Needs
espeak-ng.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np
import torch
from transformers import Phi4MultimodalForCausalLM

if __package__ in (None, ""):  # run as a script
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tokenizers import Tokenizer

from examples.demo_model.architecture import load_tokenizer, make_config
from examples.demo_model.batches import Builder
from examples.demo_model.samples import Examples, Turn
from examples.demo_model.trained_model import TrainedModel
from examples.demo_model.voices import HELD_OUT, render

CHECKPOINT = Path(__file__).with_name("checkpoint")
SEED = 2027
TOGETHER = 25
LATER = "later turn"
FOUR = "four spoken digits"


@torch.inference_mode()
def main() -> None:
    """Command line entry."""
    parser = argparse.ArgumentParser(description="Measure the demo model without a server.")
    parser.add_argument("--questions", type=int, default=200, help="of each type (default: 200)")
    count = parser.parse_args().questions
    torch.manual_seed(SEED)
    model = TrainedModel(make_config(load_tokenizer(CHECKPOINT)), SEED)
    model.lm = Phi4MultimodalForCausalLM.from_pretrained(CHECKPOINT, dtype=torch.float32).eval()
    builder = Builder(Tokenizer.from_file(str(CHECKPOINT / "tokenizer.json")))
    rng = np.random.default_rng(SEED)
    # Each clip has its own length here, as those of requests have.
    examples = Examples(rng, render(HELD_OUT, 1, SEED))
    # A batch needs a picture and a clip; these two are answered as well and not counted.
    extra = [[examples.turn("colour")], [examples.turn("notes")]]
    print("| question | exact answers |\n|---|---|")
    for kind in [*examples.kinds, FOUR, LATER]:
        right = 0
        for first in range(0, count, TOGETHER):
            turns = [_draw(examples, kind) for _ in range(min(TOGETHER, count - first))]
            exact = model.exact_answers(builder.build(turns + extra))
            right += int(exact[: len(turns)].sum())
        print(f"| {kind} | {100 * right / count:.1f} % |", flush=True)


def _draw(examples: Examples, kind: str) -> list[Turn]:
    """A conversation of the kind; of later turns every answer must be right."""
    if kind == LATER:
        turns = examples.conversation()
        while len(turns) == 1:
            turns = examples.conversation()
        return turns
    turn = examples.turn("spoken digits" if kind == FOUR else kind)
    while kind == FOUR and len(turn.answer.split()) != 6:
        turn = examples.turn("spoken digits")
    return [turn]


if __name__ == "__main__":
    main()
