# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""The traffic that the reuse benchmark plays: what is asked, in which order, about which media.

Every workload is a list of requests, made from a seed. A request carries the *name* of each of its
media items, so that an oracle can tell equal payloads from different ones without a digest.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from PIL import Image, ImageDraw

from tensorrt_llm.inputs.data import TextPrompt

RATE = 16_000
IMAGE, AUDIO = "<|image|>", "<|audio|>"

INSTRUCTION = (
    "You are given recordings and pictures from a support desk. Listen to the recording or look at "
    "the picture, write down what is said or shown, name the product if there is one, and say in "
    "one word whether the customer is content. Do not guess: where you cannot tell, say so. "
)


@dataclass(frozen=True, eq=False)
class Request:
    """One request.

    Attributes:
        inputs: What ``LLM.generate`` takes.
        names: Name of each media item in prompt order; equal names mean equal payloads.
        cache_salt: Tenant of the request.
    """

    inputs: TextPrompt
    names: tuple[str, ...] = ()
    cache_salt: str | None = None


@dataclass(frozen=True)
class Media:
    """A named payload."""

    name: str
    modality: str
    data: Any

    @property
    def placeholder(self) -> str:
        """What stands for it in a prompt."""
        return IMAGE if self.modality == "image" else AUDIO


def clip(number: int, seconds: float) -> Media:
    """A tone with noise, 16 kHz mono."""
    rng = np.random.default_rng(number)
    t = np.arange(int(seconds * RATE)) / RATE
    samples = 0.3 * np.sin(2 * np.pi * (180 + 31 * number) * t) + 0.05 * rng.standard_normal(len(t))
    name = f"clip {number} of {seconds} s"
    return Media(name, "audio", (samples.astype(np.float32), RATE))


def picture(number: int, width: int = 336, height: int = 224) -> Media:
    """A few discs on a ground."""
    rng = np.random.default_rng(number)
    image = Image.new("RGB", (width, height), tuple(rng.integers(0, 256, 3).tolist()))
    draw = ImageDraw.Draw(image)
    for _ in range(8):
        x, y, r = (int(v) for v in rng.integers([0, 0, 10], [width, height, 60]))
        draw.ellipse([x - r, y - r, x + r, y + r], fill=tuple(rng.integers(0, 256, 3).tolist()))
    return Media(f"picture {number} of {width}x{height}", "image", image)


class Conversation:
    """A conversation as prompt text that grows turn by turn."""

    def __init__(self, cache_salt: str | None = None) -> None:
        self._text = ""
        self._media: list[Media] = []
        self._salt = cache_salt

    def ask(self, *content: str | Media) -> Request:
        """Adds a user's turn and gives the request for its answer."""
        self._text += "<|user|>"
        for part in content:
            self._text += part if isinstance(part, str) else part.placeholder
            if isinstance(part, Media):
                self._media.append(part)
        self._text += "<|end|><|assistant|>"
        data: dict[str, list[Any]] = {}
        for media in self._media:
            data.setdefault(media.modality, []).append(media.data)
        # The model projects sound in another way beside a picture, so it is another item there.
        beside = " beside a picture" if "image" in data else ""
        names = tuple(
            media.name + (beside if media.modality == "audio" else "") for media in self._media
        )
        return Request(TextPrompt(prompt=self._text, multi_modal_data=data), names, self._salt)

    def answered(self, text: str) -> None:
        """Adds the model's turn."""
        self._text += text + "<|end|>"


def identical_repeats(rng: np.random.Generator, scale: int) -> list[Request]:
    """A few requests, each sent again and again."""
    asked = [
        Conversation().ask(INSTRUCTION, clip(1, 16.0), "What is said?"),
        Conversation().ask(INSTRUCTION, picture(1), "What is shown?"),
        Conversation().ask(picture(2), clip(2, 6.0), "Do they belong together?"),
    ]
    return [asked[n % len(asked)] for n in range(len(asked) * 4 * scale)]


def shared_text_prefix(rng: np.random.Generator, scale: int) -> list[Request]:
    """One instruction in front of many clips and pictures, a share of them seen before."""
    requests = []
    for n in range(12 * scale):
        number = int(rng.integers(0, n)) if n and rng.random() < 0.3 else n
        media = clip(number, 4.0) if number % 2 else picture(number)
        requests.append(Conversation().ask(INSTRUCTION, media, "Write it down."))
    return requests


def growing_multi_turn(rng: np.random.Generator, scale: int) -> list[Request]:
    """Conversations whose every turn sends all that came before, and at times another item.

    The earlier answers are fixed text: what a client sends back need not be what was answered.
    """
    requests = []
    for number in range(3 * scale):
        conversation = Conversation()
        for turn in range(4):
            added = [picture(10 * number + turn)] if turn % 2 == 0 else []
            requests.append(conversation.ask(f"Turn {turn}: ", *added, "and what about this one?"))
            conversation.answered("It is a disc of some colour on a plain ground.")
    return requests


def mixed_traffic(rng: np.random.Generator, scale: int) -> list[Request]:
    """Text, clips, pictures and both, some much more often than others, from two tenants."""
    clips, pictures = [clip(n, 3.0) for n in range(6)], [picture(n) for n in range(6)]
    requests = []
    for _ in range(24 * scale):
        one, other = (min(int(n) - 1, 5) for n in rng.zipf(1.6, 2))
        kind = rng.integers(0, 4)
        content: list[str | Media] = [INSTRUCTION] if rng.random() < 0.7 else ["Briefly: "]
        if kind in (1, 3):
            content.append(pictures[one])
        if kind in (2, 3):
            content.append(clips[other])
        salt = "tenant b" if rng.random() < 0.2 else None
        requests.append(Conversation(salt).ask(*content, f"Question {int(rng.integers(0, 3))}?"))
    return requests


WORKLOADS: dict[str, Callable[[np.random.Generator, int], list[Request]]] = {
    "identical repeats": identical_repeats,
    "shared text prefix": shared_text_prefix,
    "growing multi-turn": growing_multi_turn,
    "mixed traffic": mixed_traffic,
}
