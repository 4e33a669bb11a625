# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""What does it cost to keep an answer to a grammar?

    python benchmarks/guide.py [--json FILE] [--vocabulary N] [--answers N]

For each kind of grammar the time that a guide takes to be made, and what it takes for a token: to
say which may come next, and to go on behind the one that was taken, which is drawn from these. The
vocabulary is a byte-level BPE learnt from the sources of Python's own library. Every answer is
checked: it is complete JSON, or matches the expression, if it ended within its bound.
"""

from __future__ import annotations

import json
import os
import random
import re
import sys
import sysconfig
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import click
import numpy as np
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

if __package__ in (None, ""):  # run as a script
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.reuse_hit_rate import machine, versions
from tensorrt_llm._torch.pyexecutor.guide import GuideFactory
from tensorrt_llm.executor.grammar import grammar_of
from tensorrt_llm.sampling_params import GuidedDecodingParams

SEED = 7
MOST_TOKENS = 400
END = "</s>"
PHONE = r"\+[0-9]{1,3} [0-9]{2,5}(-[0-9]{2,4}){1,3}"
PERSON = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 40},
        "age": {"type": "integer", "minimum": 0, "maximum": 150},
        "tags": {"type": "array", "items": {"enum": ["red", "green", "blue"]}, "maxItems": 5},
        "home": {
            "type": "object",
            "properties": {
                "street": {"type": "string", "maxLength": 40},
                "no": {"type": "integer"},
            },
            "required": ["street"],
            "additionalProperties": False,
        },
    },
    "required": ["name", "age", "tags", "home"],
    "additionalProperties": False,
}
KINDS: dict[str, tuple[GuidedDecodingParams, Callable[[str], object]]] = {
    "JSON schema": (GuidedDecodingParams(json=PERSON), json.loads),
    "any JSON object": (GuidedDecodingParams(json_object=True), json.loads),
    "regular expression": (
        GuidedDecodingParams(regex=PHONE),
        lambda text: re.fullmatch(PHONE, text) or sys.exit(f"{text!r} does not match"),
    ),
}


@dataclass(frozen=True)
class Cost:
    """What a kind of grammar costs.

    Attributes:
        grammar: Its kind.
        make_ms: Half of the guides were made in less.
        mask_us: Likewise of the times it took to say which tokens may come.
        mask_us_99: 99 of 100.
        accept_us: To go on behind a token; the half.
        tokens: Measured.
        complete: Answers that ended within their bound, and were checked.
    """

    grammar: str
    make_ms: float
    mask_us: float
    mask_us_99: float
    accept_us: float
    tokens: int
    complete: int


def vocabulary(size: int) -> Tokenizer:
    """A byte-level BPE of so many tokens."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    sources = sorted(Path(sysconfig.get_path("stdlib")).glob("*.py"))
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=size, special_tokens=[END], initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train([str(path) for path in sources], trainer)
    return tokenizer


def measure(kind: str, tokenizer: Tokenizer, answers: int) -> Cost:
    """Guides so many answers.

    Raises:
        SystemExit: If one is not what the grammar says.
    """
    params, check = KINDS[kind]
    size, end = tokenizer.get_vocab_size(), tokenizer.token_to_id(END)
    assert end is not None
    factory = GuideFactory(tokenizer.to_str, size, [end])
    grammar, draw = grammar_of(params), random.Random(SEED)
    factory.make(grammar)  # once a model it reads the vocabulary
    makes, masks, accepts, complete = [], [], [], 0
    for _ in range(answers):
        start = time.perf_counter()
        guide = factory.make(grammar)
        makes.append(time.perf_counter() - start)
        taken: list[int] = []
        while len(taken) < MOST_TOKENS and not guide.complete:
            start = time.perf_counter()
            allowed = guide.allowed()
            masks.append(time.perf_counter() - start)
            bits = np.unpackbits(allowed.numpy().view(np.uint8), bitorder="little")
            taken.append(int(draw.choice(np.flatnonzero(bits[:size]))))
            start = time.perf_counter()
            guide.accept(taken[-1])
            accepts.append(time.perf_counter() - start)
        if guide.complete:
            check(tokenizer.decode(taken))
            complete += 1
    half, most = np.percentile(masks, (50, 99)) * 1e6
    return Cost(
        grammar=kind,
        make_ms=round(float(np.median(makes)) * 1e3, 3),
        mask_us=round(float(half), 1),
        mask_us_99=round(float(most), 1),
        accept_us=round(float(np.median(accepts)) * 1e6, 1),
        tokens=len(masks),
        complete=complete,
    )


@click.command(help=__doc__.split("\n\n")[0])
@click.option("--json", "json_file", type=click.Path(dir_okay=False, writable=True))
@click.option("--vocabulary", "size", default=32_000, show_default=True, help="Tokens.")
@click.option("--answers", default=100, show_default=True, help="Of each kind.")
def main(json_file: str | None, size: int, answers: int) -> None:
    tokenizer = vocabulary(size)
    costs = [measure(kind, tokenizer, answers) for kind in KINDS]
    for cost in costs:
        click.echo(
            f"{cost.grammar}: made in {cost.make_ms} ms; a mask {cost.mask_us} us (99 of 100 in "
            f"{cost.mask_us_99}), a token taken {cost.accept_us} us; {cost.tokens} tokens, "
            f"{cost.complete} of {answers} answers complete"
        )
    if json_file is not None:
        report = {
            "grammars": [asdict(cost) for cost in costs],
            "vocabulary": tokenizer.get_vocab_size(),
            "machine": machine(),
            "load_average": os.getloadavg()[0],
            "versions": versions(),
            "command": "python benchmarks/guide.py",
        }
        Path(json_file).write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
