# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Questions about pictures and clips, and their answers: the seeded data of the demo model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from examples.demo_model.pictures import (
    COLOURS,
    MOST_DIGITS,
    MOST_SHAPES,
    SHAPES,
    Picture,
    draw_digits,
    draw_shapes,
    place_things,
)
from examples.demo_model.sounds import MOST_SOUNDS, Clip, play_notes, speak
from examples.demo_model.voices import VoiceBank

Media = Picture | Clip
UNKNOWN = "I don't know."
SYSTEMS = (
    "You are a helpful assistant.",
    "You see pictures and hear sound.",
    "Answer in one short sentence.",
    "Answer briefly and say clearly when you are not sure.",
    "Say that you don't know when you are asked about anything else.",
)
MOST_TURNS = 3
NUMBERS = ("zero", "one", "two", "three", "four", "five")
CORPUS = Path(__file__).parents[1] / "tiny" / "corpus.txt"


@dataclass(frozen=True)
class Turn:
    """A question and its answer.

    Attributes:
        kind: Type of question, as evaluation counts it.
        media: What this turn brings, in order.
        question: Text of the user.
        answer: The right answer.
        media_first: Whether the media stand before the text.
        system: A system message in front of the turn; none if empty.
    """

    kind: str
    media: tuple[Media, ...]
    question: str
    answer: str
    media_first: bool = False
    system: str = ""


class Examples:
    """An endless seeded stream of conversations of one to three turns.

    Args:
        rng: Everything is drawn from it.
        bank: The voices that speak.
        clip_lengths: Samples that a clip may have; as many as it needs if none are given.
    """

    def __init__(
        self, rng: np.random.Generator, bank: VoiceBank, clip_lengths: Sequence[int] = ()
    ) -> None:
        self._rng = rng
        self._bank = bank
        self._clip_lengths = clip_lengths
        self._sentences = CORPUS.read_text(encoding="utf-8").splitlines()
        self.kinds: dict[str, Callable[[], Turn]] = {
            "shape": self._shape,
            "colour": self._colour,
            "shape and colour": self._what,
            "count": self._count,
            "position": self._position,
            "drawn digits": self._drawn,
            "count of drawn digits": self._count_drawn,
            "two pictures": self._two_pictures,
            "spoken digits": self._spoken,
            "count of spoken digits": self._count_spoken,
            "notes": self._notes,
            "count of notes": self._count_notes,
            "two clips": self._two_clips,
            "picture beside a clip": self._picture_beside_clip,
            "clip beside a picture": self._clip_beside_picture,
            "unknown": self._unknown,
        }
        self._names = list(self.kinds)
        # What takes longest to learn is asked most.
        weights = {"position": 5, "two pictures": 4, "spoken digits": 4, "two clips": 2}
        weights |= {"clip beside a picture": 2}
        shares = np.array([weights.get(name, 1) for name in self._names], dtype=float)
        self._shares = shares / shares.sum()

    def turn(self, kind: str | None = None) -> Turn:
        """One question, of a drawn type if none is named."""
        name = kind or self._names[int(self._rng.choice(len(self._names), p=self._shares))]
        made = self.kinds[name]()
        return replace(made, kind=name, media_first=bool(self._rng.random() < 0.4))

    def conversation(self) -> list[Turn]:
        """Some turns: each later one asks about media that are there, or about a new one."""
        turns = [self.turn()]
        if self._draw(3) == 0:
            turns = [replace(turns[0], system=self._system())]
        if turns[0].kind in ("two pictures", "two clips"):
            return turns
        while len(turns) < MOST_TURNS and self._rng.random() < 0.3:
            # A question is about the newest picture, or the newest clip.
            newest = {type(media): media for turn in turns for media in turn.media}
            if newest and self._rng.random() < 0.6:
                turns.append(self._about(list(newest.values())[self._draw(len(newest))]))
            else:
                turns.append(self._later())
        return turns

    def _later(self) -> Turn:
        """A turn with a picture or a clip of its own, or one that has no answer."""
        turn = self.turn()
        while len(turn.media) > 1:
            turn = self.turn()
        if turn.kind == "unknown":
            # Not a question about media that are not there: earlier turns may have brought some.
            return Turn("unknown", (), self._sentence(), UNKNOWN)
        return turn

    def _system(self) -> str:
        if self._draw(3) == 0:
            return self._sentence()
        chosen = self._rng.permutation(len(SYSTEMS))[: 1 + self._draw(len(SYSTEMS))]
        return " ".join(SYSTEMS[i] for i in chosen)

    def _about(self, media: Media) -> Turn:
        """Another question about what an earlier turn brought."""
        if isinstance(media, Clip):
            choices = (self._ask_sound, self._ask_sound_count)
            asked = choices[self._draw(2)](media)
            return Turn("second question", (), *asked)
        if media.digits:
            choices_of_digits = (self._ask_drawn, self._ask_drawn_count)
            return Turn("second question", (), *choices_of_digits[self._draw(2)](media))
        if len(media.things) == 1:
            one = (self._ask_shape, self._ask_colour, self._ask_what, self._ask_count)
            return Turn("second question", (), *one[self._draw(4)](media))
        return Turn("second question", (), *self._ask_count(media))

    def _draw(self, count: int) -> int:
        return int(self._rng.integers(count))

    def _one_of(self, *texts: str) -> str:
        return texts[self._draw(len(texts))]

    # Questions about media that are there: (question, answer).

    def _ask_shape(self, picture: Picture) -> tuple[str, str]:
        question = self._one_of("Which shape is in the picture?", "What shape is it?")
        return question, f"It is a {picture.things[0].shape}."

    def _ask_colour(self, picture: Picture) -> tuple[str, str]:
        question = self._one_of("Which colour is the shape?", "What colour is it?")
        return question, f"It is {picture.things[0].colour}."

    def _ask_what(self, picture: Picture) -> tuple[str, str]:
        question = self._one_of("What do you see?", "What is in the picture?")
        return question, f"I see {picture.things[0].name}."

    def _ask_count(self, picture: Picture) -> tuple[str, str]:
        question = self._one_of("How many shapes are in the picture?", "How many shapes are there?")
        return question, _there_are(len(picture.things), "shape")

    def _ask_drawn(self, picture: Picture) -> tuple[str, str]:
        question = self._one_of("Which digits are written?", "Read the digits in the picture.")
        return question, f"I read {_listed(picture.digits)}."

    def _ask_drawn_count(self, picture: Picture) -> tuple[str, str]:
        question = self._one_of(
            "How many digits are written?", "How many digits are in the picture?"
        )
        return question, _there_are(len(picture.digits), "digit")

    def _ask_sound(self, clip: Clip) -> tuple[str, str]:
        if clip.digits:
            question = self._one_of("Which digits do you hear?", "What does the voice say?")
            return question, f"I hear {_listed(clip.digits)}."
        question = self._one_of("Which notes do you hear?", "Name the notes.")
        return question, f"I hear {_listed(clip.notes)}."

    def _ask_sound_count(self, clip: Clip) -> tuple[str, str]:
        if clip.digits:
            question = self._one_of("How many digits do you hear?", "How many digits are spoken?")
            return question, _there_are(len(clip.digits), "digit")
        question = self._one_of("How many notes do you hear?", "How many notes are played?")
        return question, _there_are(len(clip.notes), "note")

    # Media.

    def _shapes(self, count: int | None = None) -> Picture:
        return draw_shapes(self._rng, count or 1 + self._draw(MOST_SHAPES))

    def _digits(self) -> Picture:
        return draw_digits(self._rng, 1 + self._draw(MOST_DIGITS))

    def _speech(self, most: int = MOST_SOUNDS) -> Clip:
        return speak(self._rng, self._bank, 1 + self._draw(most), self._length())

    def _melody(self) -> Clip:
        return play_notes(self._rng, 1 + self._draw(MOST_SOUNDS), self._length())

    def _length(self) -> int | None:
        lengths = self._clip_lengths
        return lengths[self._draw(len(lengths))] if lengths else None

    # Types of question.

    def _shape(self) -> Turn:
        picture = self._shapes(1)
        return Turn("", (picture,), *self._ask_shape(picture))

    def _colour(self) -> Turn:
        picture = self._shapes(1)
        return Turn("", (picture,), *self._ask_colour(picture))

    def _what(self) -> Turn:
        picture = self._shapes(1)
        return Turn("", (picture,), *self._ask_what(picture))

    def _count(self) -> Turn:
        picture = self._shapes()
        return Turn("", (picture,), *self._ask_count(picture))

    def _position(self) -> Turn:
        picture = draw_shapes(self._rng, 2, in_a_line=True)
        words, thing = list(place_things(picture.things).items())[self._draw(2)]
        # To find a shape by its look takes longer to learn than to tell what is at an end.
        form = self._draw(5)
        if form == 0:
            return Turn("", (picture,), f"What is {words}?", f"I see {thing.name}.")
        named = thing.shape if form < 3 else f"{thing.colour} shape"
        return Turn("", (picture,), f"Where is the {named}?", f"It is {words}.")

    def _drawn(self) -> Turn:
        picture = self._digits()
        return Turn("", (picture,), *self._ask_drawn(picture))

    def _count_drawn(self) -> Turn:
        picture = self._digits()
        return Turn("", (picture,), *self._ask_drawn_count(picture))

    def _two_pictures(self) -> Turn:
        form = self._draw(3)
        if form == 0:
            few, many = sorted((self._rng.permutation(MOST_SHAPES)[:2] + 1).tolist())
            right, wrong = self._shapes(many), self._shapes(few)
            question = "Which picture has more shapes, the first or the second?"
        else:
            right, wrong = self._shapes(1), self._shapes(1)
            field, values = ("shape", SHAPES) if form == 1 else ("colour", tuple(COLOURS))
            while getattr(right.things[0], field) == getattr(wrong.things[0], field):
                wrong = self._shapes(1)
            value = getattr(right.things[0], field)
            assert value in values
            shown = f"a {value}" if form == 1 else f"something {value}"
            question = f"Which picture shows {shown}, the first or the second?"
        return self._first_or_second(right, wrong, question)

    def _spoken(self) -> Turn:
        clip = self._speech()
        return Turn("", (clip,), *self._ask_sound(clip))

    def _count_spoken(self) -> Turn:
        clip = self._speech()
        return Turn("", (clip,), *self._ask_sound_count(clip))

    def _notes(self) -> Turn:
        clip = self._melody()
        return Turn("", (clip,), *self._ask_sound(clip))

    def _count_notes(self) -> Turn:
        clip = self._melody()
        return Turn("", (clip,), *self._ask_sound_count(clip))

    def _two_clips(self) -> Turn:
        right, wrong = self._speech(), self._speech()
        while len(right.digits) == len(wrong.digits):
            right, wrong = self._speech(), self._speech()
        if len(right.digits) < len(wrong.digits):
            right, wrong = wrong, right
        question = "Which clip has more digits, the first or the second?"
        return self._first_or_second(right, wrong, question)

    def _first_or_second(self, right: Media, wrong: Media, question: str) -> Turn:
        if self._draw(2):
            return Turn("", (right, wrong), question, "The first.")
        return Turn("", (wrong, right), question, "The second.")

    def _picture_beside_clip(self) -> Turn:
        picture, clip = self._any_picture(), self._any_clip()
        asked = self._about(picture)
        return Turn("", self._shuffled(picture, clip), asked.question, asked.answer)

    def _clip_beside_picture(self) -> Turn:
        picture, clip = self._any_picture(), self._any_clip()
        asked = self._about(clip)
        return Turn("", self._shuffled(picture, clip), asked.question, asked.answer)

    def _any_picture(self) -> Picture:
        return self._digits() if self._draw(2) else self._shapes()

    def _any_clip(self) -> Clip:
        return self._melody() if self._draw(3) == 0 else self._speech()

    def _shuffled(self, *media: Media) -> tuple[Media, ...]:
        return media if self._draw(2) else media[::-1]

    def _unknown(self) -> Turn:
        form = self._draw(4)
        sentence = self._sentence()
        if form == 0:
            return Turn("", (), sentence, UNKNOWN)
        if form == 1:
            return Turn("", (self._any_picture(),), sentence, UNKNOWN)
        if form == 2:
            return Turn("", (self._any_clip(),), sentence, UNKNOWN)
        # A question about media that are not there.
        asked = self._about(self._any_picture() if self._draw(2) else self._any_clip())
        return Turn("", (), asked.question, UNKNOWN)

    def _sentence(self) -> str:
        """Words of the corpus: a sentence, a part of one, or parts of two."""
        parts = []
        for _ in range(1 + self._draw(2)):
            words = self._sentences[self._draw(len(self._sentences))].split() or ["Hello."]
            first = self._draw(max(len(words) - 3, 1)) * self._draw(2)
            parts += words[first : first + 3 + self._draw(8)]
        text = " ".join(parts)
        return text.rstrip(".,?!:;") + self._one_of(".", "?", "")


def _there_are(count: int, noun: str) -> str:
    return "There is one " + noun + "." if count == 1 else f"There are {NUMBERS[count]} {noun}s."


def _listed(values: Sequence[int | str]) -> str:
    return " ".join(map(str, values))
