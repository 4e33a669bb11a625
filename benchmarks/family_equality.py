# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""How far are the engine's logits from those of unmodified transformers, by family?

    python benchmarks/family_equality.py [--json FILE] [--families NAME ...]

Tiny seeded checkpoints in float32 on the CPU, greedy. Each family answers text, one item and
several items of each kind, and all kinds together: whole, in chunks of 7, 33 and 256 tokens, from
the cache, and all prompts side by side. A difference is the largest of any logit of any token; a
token that differs ends the run with exit code 1. The largest logit is what rounding is to be
measured by: float32 keeps about seven digits of it. The control is the largest difference between
answers about two payloads of one size: what a wrong hit would cost.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
import transformers
from transformers.utils import logging as transformers_logging

if __package__ in (None, ""):  # run as a script
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
# The oracle and the ways to ask are those of the tests.
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from support.checkpoints import build_checkpoint
from support.engine import running, start
from support.families import FAMILIES, Family
from support.media import clip, film, picture
from support.prompts import PromptMaker
from support.reference import ReferenceModel

from tensorrt_llm.inputs.data import ProcessedPrompt

NEW_TOKENS = 5
CHUNKS = (7, 33, 256)


def prompts(family: Family, make: PromptMaker) -> list[ProcessedPrompt]:
    """Text, one item and several of each kind, and all kinds together."""
    payloads: dict[str, list[Any]] = {
        "image": [picture(2, 300, 90), picture(1)],
        "audio": [clip(2, 2.0), clip(1, 0.7)],
        "video": [film(2, 5, sound=clip(3, 2.5)), film(1, 5, 56, 112, sound=clip(4, 0.9))],
    }
    kinds: list[list[Any]] = [[], *(payloads[kind][:1] for kind in family.modalities)]
    kinds += [payloads[kind] for kind in family.modalities]
    if len(family.modalities) > 1:
        kinds.append([payloads[kind][0] for kind in family.modalities])
    return [family.prompt(make, "Look: ", *media, " What is this?") for media in kinds]


def modes(family: Family) -> Iterator[tuple[str, dict[str, Any], bool, bool]]:
    """Name, options of the engine, whether all run at once, whether they run twice."""
    yield "whole", {"block_reuse": False}, False, False
    for chunk in CHUNKS:
        # An item whose rows see each other runs in one step.
        tokens = max(chunk, family.whole_rows)
        yield f"chunks of {chunk}", {"block_reuse": False, "max_num_tokens": tokens}, False, False
    yield "from the cache", {}, False, True
    yield "side by side", {"max_num_tokens": max(33, family.whole_rows)}, True, True


def measure(family: Family, checkpoint: Path) -> dict[str, float]:
    """Largest difference by mode.

    Raises:
        ValueError: If a token differs.
    """
    make, reference = PromptMaker(checkpoint), ReferenceModel(checkpoint)
    asked = prompts(family, make)
    result = {}
    largest = 0.0
    for name, options, together, twice in modes(family):
        worst = 0.0
        with running(checkpoint, **options) as executor:
            for _ in range(1 + twice):
                started = []
                for prompt in asked:
                    started.append((prompt, start(executor, prompt, NEW_TOKENS)))
                    if not together:
                        started[-1][1].result(timeout=600)
                for prompt, answer in started:
                    output = answer.result(timeout=600).outputs[0]
                    expected = reference.greedy(prompt, NEW_TOKENS)
                    if output.token_ids != expected.tokens:
                        raise ValueError(f"{family}, {name}: other tokens than transformers'")
                    largest = max(largest, float(expected.logits.abs().max()))
                    difference = (output.generation_logits - expected.logits).abs().max()
                    worst = max(worst, float(difference))
        result[name] = worst
    result["largest logit"] = largest
    result["control"] = max(
        float((one - other).abs().max())
        for one, other in (
            tuple(
                reference.greedy(family.prompt(make, "Look: ", media, " What is this?"), 1).logits
                for media in pair
            )
            for kind, pair in (
                ("image", (picture(1), picture(3))),
                ("audio", (clip(1, 2.0), clip(3, 2.0))),
                ("video", (film(1, sound=clip(5, 2.0)), film(3, sound=clip(6, 2.0)))),
            )
            if kind in family.modalities
        )
    )
    return result


def main() -> int:
    """Command line entry."""
    parser = argparse.ArgumentParser(description="Compare every family with transformers.")
    parser.add_argument("--json", type=Path, help="file to write")
    parser.add_argument("--families", nargs="*", help="only these")
    arguments = parser.parse_args()
    transformers_logging.disable_progress_bar()
    families: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as root:
        for family in FAMILIES:
            if arguments.families and family.name not in arguments.families:
                continue
            try:
                families[family.name] = measure(family, build_checkpoint(family.name, Path(root)))
            except ValueError as error:
                print(error, file=sys.stderr)
                return 1
            row = ", ".join(f"{name} {value:.1e}" for name, value in families[family.name].items())
            print(f"{family.name}: {row}", flush=True)
    report = {
        "command": "python benchmarks/family_equality.py",
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "python": platform.python_version(),
        "machine": platform.machine(),
        "dtype": "float32",
        "new_tokens": NEW_TOKENS,
        "largest_difference": families,
    }
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
