# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""What the clients of a soak ask: conversations of every kind, and the options they come with."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from support.chat_oracle import content_json
from support.media import clip, picture

MOST_NEW = 60
# Which adapters there are; the last name stands for one folder after the other.
FIXED_ADAPTERS = ("first", "second")
SWAPPED_ADAPTER = "swapped"
_COUNTS = (1, 10, 24, MOST_NEW)
_SAMPLED = {"temperature": 0.9, "top_p": 0.9}


@dataclass(frozen=True)
class Question:
    """A conversation.

    Attributes:
        kind: text, image, clip, both or turns.
        messages: As they go over HTTP.
    """

    kind: str
    messages: list[dict[str, Any]]


@dataclass(frozen=True)
class Ask:
    """One request that a server must answer rightly.

    Attributes:
        question: Its conversation.
        fields: What decides about the answer beside it.
        adapter: A name of an adapter, or None.
        unseen: Fields that decide about nothing (a salt, a priority).
    """

    question: Question
    fields: Mapping[str, Any]
    adapter: str | None = None
    unseen: Mapping[str, Any] = field(default_factory=dict)

    @property
    def body(self) -> dict[str, Any]:
        """The body of the request."""
        return {**self.plain(self.adapter), **self.unseen}

    def plain(self, adapter: str | None) -> dict[str, Any]:
        """What must give the same answer, where the adapter has this name."""
        model = {} if adapter is None else {"model": adapter}
        return {"messages": self.question.messages, **self.fields, **model}


def user(*parts: Any) -> dict[str, Any]:
    """A user's message of texts, pictures and sounds."""
    return {"role": "user", "content": content_json(*parts)}


def questions(epoch: int) -> list[Question]:
    """Two dozen conversations, of which half are new in each epoch; most begin alike."""
    shared = "These words come first in several of the requests, then something else: "
    made = []
    for seed in (1, 2 * epoch + 2):
        small = picture(seed, 60, 90)
        made += [
            ("text", [user(f"{shared}number {seed}.")]),
            ("text", [user(f"Other words, {seed}. " + "They go on for a while. " * 3)]),
            ("image", [user(shared, picture(seed), "What is it?")]),
            ("image", [user(picture(seed), " and ", small)]),
            ("clip", [user("Listen: ", clip(seed % 64, 1.0))]),
            ("clip", [user(clip(seed % 64, 0.6), "Who is it?")]),
            ("both", [user(small, clip(seed % 64, 0.5), "Do they agree?")]),
        ]
        for first in (shared, [small, "Look. "]):
            parts = first if isinstance(first, list) else [first]
            turns = [user(*parts, f"Turn {seed}."), {"role": "assistant", "content": "Yes, then?"}]
            made += [("turns", turns[:1]), ("turns", [*turns, user("And now?")])]
            made.append(("turns", [*turns, user("And now?", clip(seed % 64, 0.5))]))
    return [Question(kind, messages) for kind, messages in made]


class Traffic:
    """Makes the n-th request of a seed, always the same one.

    Args:
        seed: Other seeds make other requests.
        epoch_length: Requests after which half of the questions are new.
    """

    def __init__(self, seed: int, epoch_length: int = 2000) -> None:
        self._seed = seed
        self._epoch_length = epoch_length
        self._epochs: dict[int, Sequence[Question]] = {}

    def random(self, number: int) -> random.Random:
        """All that is random about a request."""
        return random.Random(f"{self._seed} {number}")

    def ask(self, number: int, rng: random.Random) -> Ask:
        """What the request asks."""
        epoch = number // self._epoch_length
        if epoch not in self._epochs:
            self._epochs = {epoch: questions(epoch)}
        fields: dict[str, Any] = {"max_tokens": rng.choice(_COUNTS), "ignore_eos": True}
        if rng.random() < 0.3:
            fields |= {**_SAMPLED, "seed": 11}
            if rng.random() < 0.4:
                fields["n"] = 3
        else:
            fields["temperature"] = 0
        unseen: dict[str, Any] = {}
        if rng.random() < 0.3:
            unseen["cache_salt"] = f"tenant {rng.randrange(3)}"
        if rng.random() < 0.2:
            unseen["priority"] = rng.choice([0, 1])
        names = (None, None, None, *FIXED_ADAPTERS, SWAPPED_ADAPTER)
        return Ask(rng.choice(self._epochs[epoch]), fields, rng.choice(names), unseen)


def name_of(body: Mapping[str, Any]) -> str:
    """Equal for equal bodies."""
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()


def bad_bodies() -> Iterator[bytes]:
    """What is refused: some of everything that can be wrong with a request."""

    def chat(content: Any = "Hello", **fields: Any) -> bytes:
        return json.dumps({"messages": [{"role": "user", "content": content}], **fields}).encode()

    def media(kind: str, url: str) -> bytes:
        return chat([{"type": f"{kind}_url", f"{kind}_url": {"url": url}}])

    yield from (b"", b"{", b"[1]", b'{"messages": 3}', b"\xff\xfe{}")
    yield from (chat(max_tokens="many"), chat(temperature=-1), chat(n=0), chat(no_such_field=1))
    yield from (chat([]), chat("yes " * 20_000))
    yield media("image", "data:image/png;base64,@@@@")
    yield media("audio", "data:audio/wav;base64,UklGRgAAAABXQVZF")
    yield media("image", "gopher://host/a.png")
    yield media("image", "http://127.0.0.1:9/a.png")
    yield media("image", "/etc/hostname")
    yield media("video", "data:,")
    yield chat([{"type": "image_url", "file_id": "file-none"}])
    whole = content_json(picture(1))[0]["image_url"]["url"]
    yield media("image", whole[: len(whole) // 2 // 4 * 4])
