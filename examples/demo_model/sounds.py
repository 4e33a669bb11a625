# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Clips that the demo model is trained on: spoken digits, or notes."""

from __future__ import annotations

import io
import wave
from dataclasses import dataclass

import numpy as np

from examples.demo_model.voices import RATE, VoiceBank

NOTES = {"low": 300.0, "middle": 600.0, "high": 1200.0}
MOST_SOUNDS = 5
_EDGE = 0.06


@dataclass(frozen=True)
class Clip:
    """A clip and what is heard in it.

    Attributes:
        samples: int16 ``[n]``, mono, 16 kHz, without noise.
        digits: The spoken digits in order, if it holds digits.
        notes: The notes in order, if it holds notes.
        noise: Standard deviation of the noise to add, in units of the samples.
    """

    samples: np.ndarray
    digits: tuple[int, ...]
    notes: tuple[str, ...]
    noise: float

    @property
    def labels(self) -> list[int]:
        """What is heard as numbers from 1: the digits, then the notes."""
        names = list(NOTES)
        return [1 + digit for digit in self.digits] + [11 + names.index(n) for n in self.notes]

    def wav(self, rng: np.random.Generator) -> bytes:
        """A WAV file of the clip with its noise."""
        noisy = self.samples + rng.normal(0.0, self.noise, len(self.samples))
        out = io.BytesIO()
        with wave.open(out, "wb") as file:
            file.setnchannels(1)
            file.setsampwidth(2)
            file.setframerate(RATE)
            file.writeframes(noisy.clip(-32768, 32767).astype("<i2").tobytes())
        return out.getvalue()


def speak(rng: np.random.Generator, bank: VoiceBank, count: int, length: int | None = None) -> Clip:
    """A voice says digits.

    Args:
        rng: Draws voice, digits, tempo, pauses and loudness.
        bank: The voices.
        count: Number of digits; fewer are said if they do not fit into ``length``.
        length: Samples of the clip; what is needed and a little if not given.
    """
    voice = int(rng.integers(len(bank)))
    digits = [int(digit) for digit in rng.integers(0, 10, count)]
    tempo = rng.uniform(0.88, 1.14)
    sounds = []
    for digit in digits:
        word = bank.digit(voice, digit)
        places = np.arange(0, len(word) - 1, tempo)
        sounds.append(np.interp(places, np.arange(len(word)), word))
    samples, heard = _in_a_row(rng, sounds, length, (0.04, 0.25))
    return Clip(samples, tuple(digits[:heard]), (), _noise(rng))


def play_notes(rng: np.random.Generator, count: int, length: int | None = None) -> Clip:
    """A sequence of notes; arguments as for ``speak``."""
    names = [str(name) for name in rng.choice(list(NOTES), count)]
    harmonics = rng.uniform(0.0, 0.4, 2)
    sounds = []
    for name in names:
        pitch = NOTES[name] * rng.uniform(0.93, 1.07)
        t = np.arange(int(rng.uniform(0.16, 0.36) * RATE)) / RATE
        wave_form = np.sin(2 * np.pi * pitch * t)
        for order, strength in enumerate(harmonics, 2):
            wave_form += strength * np.sin(2 * np.pi * order * pitch * t)
        fade = np.minimum(1.0, np.minimum(t, t[-1] - t) / 0.015)
        sounds.append(20_000 / (1 + harmonics.sum()) * fade * wave_form)
    samples, heard = _in_a_row(rng, sounds, length, (0.06, 0.2))
    return Clip(samples, (), tuple(names[:heard]), _noise(rng))


def _noise(rng: np.random.Generator) -> float:
    return float(10 ** rng.uniform(0.5, 2.4))


def _in_a_row(
    rng: np.random.Generator,
    sounds: list[np.ndarray],
    length: int | None,
    pause: tuple[float, float],
) -> tuple[np.ndarray, int]:
    """The sounds with pauses, as many as fit, and how many that are."""
    edge = int(_EDGE * RATE)
    starts: list[int] = []
    end = edge
    for sound in sounds:
        if length is not None and end + len(sound) + edge > length and starts:
            break
        starts.append(end)
        end += len(sound) + int(rng.uniform(*pause) * RATE)
    last = starts[-1] + len(sounds[len(starts) - 1])
    total = last + edge + int(rng.uniform(0.0, 0.5) * RATE) if length is None else length
    shift = int(rng.integers(0, max(total - last - edge, 0) + 1))
    samples = np.zeros(max(total, last + edge))
    for start, sound in zip(starts, sounds, strict=False):
        samples[start + shift : start + shift + len(sound)] = sound[: len(samples) - start - shift]
    loudness = rng.uniform(0.25, 1.2)
    return (loudness * samples[:total]).clip(-32768, 32767).astype(np.int16), len(starts)
