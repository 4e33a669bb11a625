# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Asks the served demo model fresh questions, with block reuse on and off.

    python examples/demo_model/evaluate.py [--questions 20]

Prints exact answers by type of question, in voices that were not trained on, and of the clips with
four spoken digits how many digits were heard rightly. The exit status is 0 only if every answer,
and every repeat of it, is the same with reuse on as with reuse off. Needs espeak-ng.
"""

from __future__ import annotations

import argparse
import base64
import io
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import numpy as np

if __package__ in (None, ""):  # run as a script
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from examples.demo_model.pictures import Picture
from examples.demo_model.samples import Examples, Media, Turn
from examples.demo_model.voices import HELD_OUT, render
from examples.demo_server import LocalServer

CHECKPOINT = Path(__file__).with_name("checkpoint")
SEED = 2026
MAX_TOKENS = 24
LATER = "later turn"
DIGITS = 4
TOGETHER = 8


def message(turn: Turn, rng: np.random.Generator) -> dict[str, Any]:
    """The turn as a message of the chat API, its media as ``data:`` URIs with noise."""
    media = [_part(item, rng) for item in turn.media]
    text = {"type": "text", "text": turn.question}
    return {"role": "user", "content": [*media, text] if turn.media_first else [text, *media]}


def _part(item: Media, rng: np.random.Generator) -> dict[str, Any]:
    if isinstance(item, Picture):
        out = io.BytesIO()
        item.image(rng).save(out, "PNG")
        field, kind, data = "image_url", "image/png", out.getvalue()
    else:
        field, kind, data = "audio_url", "audio/wav", item.wav(rng)
    return {"type": field, field: {"url": f"data:{kind};base64,{base64.b64encode(data).decode()}"}}


def conversation(turns: list[Turn], rng: np.random.Generator) -> list[dict[str, Any]]:
    """The turns as messages, all but the last with their right answers."""
    messages: list[dict[str, Any]] = []
    if turns[0].system:
        messages.append({"role": "system", "content": turns[0].system})
    for turn in turns:
        messages += [message(turn, rng), {"role": "assistant", "content": turn.answer}]
    return messages[:-1]


def ask(client: httpx.Client, messages: list[dict[str, Any]]) -> tuple[str, int]:
    """The greedy answer and how many tokens of the prompt came from the cache."""
    body = {
        "model": "demo",
        "messages": messages,
        "max_tokens": MAX_TOKENS,
        "temperature": 0,
    }
    response = client.post("/v1/chat/completions", json=body)
    response.raise_for_status()
    found = response.json()
    cached = found["usage"]["prompt_tokens_details"]["cached_tokens"]
    return found["choices"][0]["message"]["content"], cached


def main() -> int:
    """Command line entry."""
    parser = argparse.ArgumentParser(description="Measure the demo model through the server.")
    parser.add_argument("--questions", type=int, default=20, help="of each type (default: 20)")
    count = parser.parse_args().questions
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        servers = [
            stack.enter_context(
                LocalServer([str(CHECKPOINT), f"--{reuse}"], folder / f"{reuse}.log")
            )
            for reuse in ("enable_block_reuse", "no_enable_block_reuse")
        ]
        for server in servers:
            server.wait_until_ready(400)
        on, off = (
            stack.enter_context(httpx.Client(base_url=server.url, trust_env=False, timeout=120))
            for server in servers
        )
        pool = stack.enter_context(ThreadPoolExecutor(TOGETHER))
        return Evaluation(on, off, pool).run(count)


class Evaluation:
    """Asks both servers the same and counts."""

    def __init__(self, on: httpx.Client, off: httpx.Client, pool: ThreadPoolExecutor) -> None:
        self._on, self._off, self._pool = on, off, pool
        self._rng = np.random.default_rng(SEED)
        self._examples = Examples(self._rng, render(HELD_OUT, 1, SEED))
        self._broken = self._asked = 0

    def run(self, count: int) -> int:
        """Prints the table and returns the exit status."""
        print("| question | exact answers |\n|---|---|")
        for kind in [*self._examples.kinds, LATER]:
            asked = [self._turns(kind) for _ in range(count)]
            right = [answer == turns[-1].answer for turns, answer in self._answers(asked)]
            print(f"| {kind} | {100 * np.mean(right):.1f} % |", flush=True)
        asked = [self._turns("spoken digits", DIGITS) for _ in range(count)]
        heard = []
        for turns, answer in self._answers(asked):
            found = _digits_in(answer)
            digits = enumerate(_digits_in(turns[-1].answer))
            heard += [len(found) > i and found[i] == digit for i, digit in digits]
        print(f"| each digit of {DIGITS} spoken ones | {100 * np.mean(heard):.1f} % |")
        print(f"{self._broken} of {self._asked} differ with reuse on, or were not reused")
        return 1 if self._broken else 0

    def _turns(self, kind: str, digits: int | None = None) -> list[Turn]:
        """A conversation whose last question is of the kind."""
        if kind != LATER:
            turn = self._examples.turn(kind)
            while digits is not None and len(_digits_in(turn.answer)) != digits:
                turn = self._examples.turn(kind)
            return [turn]
        turns = self._examples.conversation()
        while len(turns) == 1:
            turns = self._examples.conversation()
        return turns

    def _answers(self, asked: list[list[Turn]]) -> Iterator[tuple[list[Turn], str]]:
        """The answers without reuse; those that differ with reuse are counted."""
        messages = [conversation(turns, self._rng) for turns in asked]
        for turns, (answer, good) in zip(asked, self._pool.map(self._ask, messages), strict=True):
            self._asked += 1
            self._broken += not good
            yield turns, answer

    def _ask(self, messages: list[dict[str, Any]]) -> tuple[str, bool]:
        plain, _ = ask(self._off, messages)
        first, _ = ask(self._on, messages)
        again, cached = ask(self._on, messages)
        # A repeat that found nothing would prove nothing.
        return plain, plain == first == again and cached > 0


def _digits_in(answer: str) -> list[str]:
    return answer.removeprefix("I hear ").rstrip(".").split()


if __name__ == "__main__":
    sys.exit(main())
