# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""What the demo asks, what comes back, and what must be true of it."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import httpx

TOKENS_PER_BLOCK = 32
REPEATS = 5
MAX_TOKENS = 16
TIMEOUT_SECONDS = 60

# Longer than a block: words before the media are what requests with different media can share.
SYSTEM = (
    "You are a helpful assistant. You see pictures and hear sound. Answer in one short sentence. "
    "Answer briefly and say clearly when you are not sure. "
    "Say that you don't know when you are asked about anything else."
)
WHAT_IS_SAID = "Which digits do you hear?"
WHAT_IS_SEEN = "What do you see?"


@dataclass(frozen=True)
class Media:
    """URLs and paths of what the demo sends, clip A by both doors, and what is right of them."""

    clip_a_path: str
    clip_a_data: str
    clip_b: str
    picture_1: str
    picture_2: str
    says_a: str
    says_b: str
    shows_1: str
    shows_2: str


@dataclass(frozen=True)
class Answer:
    """What a request came back with.

    Attributes:
        status: HTTP status.
        text: The answer, or the error.
        seconds: From sending to the first token.
        prompt_tokens: Tokens of the prompt, media included.
        media_tokens: Those of them that stand for media.
        cached_tokens: Those of them that came from the cache.
        completion_tokens: Tokens of the answer.
    """

    status: int
    text: str
    seconds: float = 0.0
    prompt_tokens: int = 0
    media_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0

    @property
    def text_tokens(self) -> int:
        """Tokens of the prompt that are words."""
        return self.prompt_tokens - self.media_tokens


@dataclass(frozen=True)
class Row:
    """One request and how it went.

    Attributes:
        name: What was asked.
        on: With block reuse.
        off: Without.
        fewest: Fewest tokens that must come from the cache.
        most: Most tokens that may.
        right: The answer that is right.
        first: The answer to the same request the first time, if it is a repeat.
    """

    name: str
    on: Answer
    off: Answer
    fewest: int
    most: int
    right: str
    first: Answer | None = None


class Session:
    """Asks one server."""

    def __init__(self, url: str) -> None:
        # The server is on this machine, whatever proxy the environment names.
        self._client = httpx.Client(base_url=url, trust_env=False, timeout=TIMEOUT_SECONDS)

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()

    def ask(self, messages: list[dict[str, Any]]) -> Answer:
        """Asks and streams the answer; a failure is an answer too."""
        body = {
            "model": "demo",
            "messages": messages,
            "max_tokens": MAX_TOKENS,
            "temperature": 0,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        began = time.perf_counter()
        try:
            with self._client.stream("POST", "/v1/chat/completions", json=body) as response:
                if response.status_code != 200:
                    return Answer(response.status_code, response.read().decode())
                return _read_stream(response, began)
        except httpx.HTTPError as error:
            return Answer(0, f"{type(error).__name__}: {error}")


def _read_stream(response: httpx.Response, began: float) -> Answer:
    text, seconds = "", 0.0
    usage: dict[str, Any] = {}
    for line in response.iter_lines():
        if not line.startswith("data: ") or line == "data: [DONE]":
            continue
        event = json.loads(line.removeprefix("data: "))
        if "error" in event:
            return Answer(event["error"]["code"], event["error"]["message"])
        usage = event.get("usage") or usage
        for choice in event["choices"]:
            added = choice["delta"].get("content") or ""
            if added and not text:
                seconds = time.perf_counter() - began
            text += added
    details = usage["prompt_tokens_details"]
    return Answer(
        status=response.status_code,
        text=text,
        seconds=seconds,
        prompt_tokens=usage["prompt_tokens"],
        media_tokens=details.get("audio_tokens", 0) + details.get("image_tokens", 0),
        cached_tokens=details["cached_tokens"],
        completion_tokens=usage["completion_tokens"],
    )


def play(on: Session, off: Session, media: Media, tell: Callable[[str], object]) -> list[Row]:
    """Plays all requests, each with reuse and without.

    Args:
        on: The server with block reuse.
        off: The server without.
        media: What to send.
        tell: Called with the name of each request before it is sent.
    """
    rows: list[Row] = []

    def ask(
        name: str,
        messages: list[dict[str, Any]],
        right: str,
        cached: Callable[[Answer], tuple[int, int]],
        first: Answer | None = None,
    ) -> Answer:
        tell(name)
        answer = on.ask(messages)
        rows.append(Row(name, answer, off.ask(messages), *cached(answer), right, first))
        return answer

    system = {"role": "system", "content": SYSTEM}
    doors = (("path", media.clip_a_path), ("data:", media.clip_a_data))
    messages = [system, _user(("audio", media.clip_a_path), WHAT_IS_SAID)]
    first = ask("clip A by path", messages, media.says_a, lambda _: (0, 0))
    for number in range(2, REPEATS + 1):
        door, url = doors[(number - 1) % 2]
        messages = [system, _user(("audio", url), WHAT_IS_SAID)]
        name = f"  time {number}, by {door}"
        ask(name, messages, media.says_a, _all_but_the_last_token, first)

    # The words are shared, nothing of the clip is; text_tokens counts the few behind it too.
    messages = [system, _user(("audio", media.clip_b), WHAT_IS_SAID)]
    shared = (TOKENS_PER_BLOCK, first.text_tokens)
    ask("clip B, equally long", messages, media.says_b, lambda _: shared)

    # Pictures go through another adapter than sound alone, so not even the words are shared.
    messages = [system, _user(("image", media.picture_1), WHAT_IS_SEEN)]
    picture = ask("picture 1", messages, media.shows_1, lambda _: (0, 0))

    # All of that prompt again but for the few tokens that ended its turn.
    again = picture.prompt_tokens
    parts = (("image", media.picture_1), ("audio", media.clip_a_path), WHAT_IS_SAID)
    messages = [system, _user(*parts)]
    expected = (again - TOKENS_PER_BLOCK, again)
    both = ask("picture 1 and clip A", messages, media.says_a, lambda _: expected)

    # All of the first turn, and of its answer what was written and is spelled alike again.
    written = both.prompt_tokens + both.completion_tokens - 1
    turns = (both.prompt_tokens, written)
    messages += [
        {"role": "assistant", "content": both.text},
        _user(("image", media.picture_2), WHAT_IS_SEEN),
    ]
    ask("  next turn, picture 2", messages, media.shows_2, lambda _: turns)
    return rows


def _all_but_the_last_token(answer: Answer) -> tuple[int, int]:
    exact = answer.prompt_tokens - 1
    return exact, exact


def broken_promises(rows: Sequence[Row]) -> list[str]:
    """One line for each promise that was not kept."""
    broken = []
    for row in rows:
        for state, answer in (("on", row.on), ("off", row.off)):
            if answer.status != 200:
                told = f"HTTP {answer.status}, not 200: {answer.text}"
                broken.append(f"{row.name}, reuse {state}: {told}")
        if (row.on.status, row.off.status) != (200, 200):
            continue
        cached = row.on.cached_tokens
        if not row.fewest <= cached <= row.most:
            allowed = f"{row.fewest}" if row.fewest == row.most else f"{row.fewest} to {row.most}"
            broken.append(f"{row.name}: {cached} cached tokens, not {allowed}")
        if row.off.cached_tokens:
            broken.append(f"{row.name}, reuse off: {row.off.cached_tokens} cached tokens, not 0")
        if row.on.prompt_tokens != row.off.prompt_tokens:
            counts = f"{row.on.prompt_tokens} prompt tokens, {row.off.prompt_tokens}"
            broken.append(f"{row.name}: {counts} with reuse off")
        if row.on.text != row.off.text:
            broken.append(f"{row.name}: answer {row.on.text!r}, {row.off.text!r} with reuse off")
        if row.on.text != row.right:
            broken.append(f"{row.name}: answer {row.on.text!r}, not {row.right!r}")
        if row.first is not None and row.on.text != row.first.text:
            broken.append(f"{row.name}: answer {row.on.text!r}, the first time {row.first.text!r}")
    return broken


def summary(rows: Sequence[Row]) -> str:
    """What was shown, when all promises were kept."""
    repeats = [row.on for row in rows if row.first is not None]
    cached, prompt = repeats[0].cached_tokens, repeats[0].prompt_tokens
    return (
        f"Shown: one audio request, sent {len(repeats) + 1} times with block reuse on, got HTTP "
        f"200 and the right answer every time, {cached} of {prompt} prompt tokens coming from the "
        "cache from the second time on; another clip and pictures shared only what is really "
        "equal, and every answer is the one given with reuse off."
    )


def _user(*parts: str | tuple[str, str]) -> dict[str, Any]:
    """A message of texts, and of media as (kind, URL)."""
    content: list[dict[str, Any]] = []
    for part in parts:
        if isinstance(part, str):
            content.append({"type": "text", "text": part})
        else:
            field = f"{part[0]}_url"
            content.append({"type": field, field: {"url": part[1]}})
    return {"role": "user", "content": content}
