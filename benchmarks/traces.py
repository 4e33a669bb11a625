# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Traffic by name and length alone: what the KV cache sees of requests, without their content.

A part of a prompt is a name and a number of tokens; equal names mean equal content. The order of
requests comes from Poisson arrivals, the choice among what there is from a Zipf law. A trace can be
kept as JSON lines, one request a line, and played again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError


class Part(BaseModel):
    """A piece of a prompt."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str = Field(description="Equal names mean equal content and equal length.")
    tokens: int = Field(ge=1, description="Tokens, or rows of a media item.")
    media: bool = Field(default=False, description="Whether an encoder makes its rows.")


class Asked(BaseModel):
    """One request."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    at_s: float = Field(ge=0, description="When it arrived, in seconds from the first.")
    parts: tuple[Part, ...] = Field(min_length=1, description="The prompt, in order.")


Trace = list[Asked]


def write_trace(trace: Trace, path: Path) -> None:
    """Keeps a trace as JSON lines."""
    path.write_text("".join(f"{asked.model_dump_json()}\n" for asked in trace), encoding="utf-8")


def read_trace(path: Path) -> Trace:
    """Reads JSON lines and puts them in the order of arrival.

    Raises:
        ValueError: If there is no request, a line is not one, or a name has two contents.
    """
    trace = []
    known: dict[str, Part] = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        try:
            asked = Asked.model_validate_json(line)
        except ValidationError as error:
            raise ValueError(f"{path}, line {number}: {error}") from None
        for part in asked.parts:
            if known.setdefault(part.name, part) != part:
                raise ValueError(f"{path}, line {number}: {part} and {known[part.name]} differ")
        trace.append(asked)
    if not trace:
        raise ValueError(f"{path} holds no request")
    return sorted(trace, key=lambda asked: asked.at_s)


def zipf(rng: np.random.Generator, kinds: int, exponent: float, count: int) -> list[int]:
    """Draws ``count`` of ``kinds`` things whose popularity falls with their rank."""
    weights = 1 / np.arange(1, kinds + 1) ** exponent
    drawn = rng.choice(kinds, size=count, p=weights / weights.sum())
    return [int(kind) for kind in rng.permutation(kinds)[drawn]]


def arrivals(rng: np.random.Generator, count: int, rate: float = 1.0) -> list[float]:
    """Times of a Poisson process, in seconds, with ``rate`` arrivals a second."""
    return [float(at) for at in np.cumsum(rng.exponential(1 / rate, count))]


def _length(name: str, least: int, most: int) -> int:
    """A length that a name always has."""
    return least + sum(name.encode()) * 7919 % (most - least + 1)


def _text(name: str, least: int, most: int) -> Part:
    return Part(name=name, tokens=_length(name, least, most))


def _media(name: str, least: int, most: int) -> Part:
    return Part(name=name, tokens=_length(name, least, most), media=True)


def repeats(rng: np.random.Generator, count: int) -> Trace:
    """Whole requests again, each with a picture, some much more often than others."""
    chosen = zipf(rng, max(2, count // 5), 0.9, count)
    return [
        Asked(at_s=at, parts=(_media(f"picture {n}", 200, 800), _text(f"question {n}", 20, 90)))
        for at, n in zip(arrivals(rng, count), chosen, strict=True)
    ]


def batch_asr(rng: np.random.Generator, count: int) -> Trace:
    """One instruction and many clips; a third was sent before, mostly not long ago."""
    trace: Trace = []
    clips: list[int] = []
    for at in arrivals(rng, count):
        if clips and rng.random() < 0.35:
            back = min(len(clips) - 1, int(3 * rng.pareto(0.6)))
            clip = clips[-1 - back]
        else:
            clip = len(clips)
            clips.append(clip)
        parts = (_text("instruction", 130, 130), _media(f"clip {clip}", 100, 400))
        trace.append(Asked(at_s=at, parts=(*parts, _text("write it down", 12, 12))))
    return trace


def documents(rng: np.random.Generator, count: int) -> Trace:
    """New questions about pages, each page behind the same long text."""
    chosen = zipf(rng, max(2, count // 6), 0.8, count)
    return [
        Asked(
            at_s=at,
            parts=(
                _text("common text", 900, 900),
                _media(f"page {page}", 400, 1200),
                _text(f"question {n}", 20, 120),
            ),
        )
        for n, (at, page) in enumerate(zip(arrivals(rng, count), chosen, strict=True))
    ]


def _sessions(
    rng: np.random.Generator,
    count: int,
    turns: Callable[[int], Sequence[Part]],
    pause_s: float,
    beginning: Callable[[int], tuple[Part, ...]],
) -> Trace:
    """The first ``count`` requests of sessions that start at random and run side by side."""
    trace: Trace = []
    for session, start in enumerate(arrivals(rng, count, 0.4)):
        at, parts = start, beginning(session)
        for part in turns(session):
            parts = (*parts, part)
            trace.append(Asked(at_s=at, parts=parts))
            at += float(rng.lognormal(np.log(pause_s), 1.0))
    return sorted(trace, key=lambda asked: asked.at_s)[:count]


def multi_turn(rng: np.random.Generator, count: int) -> Trace:
    """Conversations whose every turn sends all before it; every other turn adds a picture."""
    first = (_text("system", 190, 190),)

    def turns(session: int) -> list[Part]:
        return [
            (_media if turn % 2 == 0 else _text)(f"session {session} turn {turn}", 60, 320)
            for turn in range(1 + int(rng.geometric(0.25)))
        ]

    return _sessions(rng, count, turns, 12.0, lambda session: first)


def agents(rng: np.random.Generator, count: int) -> Trace:
    """Agents of a few kinds: a long list of tools, then many short calls soon one after another."""
    kinds = zipf(rng, 12, 1.0, count)

    def turns(session: int) -> list[Part]:
        return [
            _text(f"session {session} call {call}", 40, 160)
            for call in range(2 + int(rng.geometric(0.15)))
        ]

    return _sessions(
        rng, count, turns, 1.6, lambda session: (_text(f"tools {kinds[session]}", 900, 1100),)
    )


def mixed(rng: np.random.Generator, count: int) -> Trace:
    """All of the above at once."""
    trace: Trace = []
    for make in (repeats, batch_asr, documents, multi_turn, agents):
        for asked in make(rng, count // 5):
            named = tuple(
                part.model_copy(update={"name": f"{make.__name__}: {part.name}"})
                for part in asked.parts
            )
            trace.append(Asked(at_s=asked.at_s, parts=named))
    return sorted(trace, key=lambda asked: asked.at_s)


TRACES: dict[str, Callable[[np.random.Generator, int], Trace]] = {
    make.__name__: make for make in (repeats, batch_asr, documents, multi_turn, agents, mixed)
}
