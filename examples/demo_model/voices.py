# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Spoken digits of many synthetic voices, rendered once with espeak-ng.

    python examples/demo_model/voices.py OUT.npz

The voices of evaluation are never trained on.
"""

from __future__ import annotations

import argparse
import io
import subprocess
import wave
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np

RATE = 16_000
WORDS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
ACCENTS = ("en-us", "en-gb", "en-gb-x-rp", "en-gb-scotland", "en-us-nyc", "en-gb-x-gbclan")
TRAINED = (
    *("", "m1", "m2", "m3", "m6", "m7", "m8", "f1", "f2", "f4", "f5", "klatt", "klatt2", "klatt4"),
    *("Alex", "Alicia", "Annie", "Denis", "Gene", "Jacky", "Marco", "Michael", "adam", "anika"),
    *("announcer", "aunty", "belinda", "david", "edward", "grandma", "john", "linda", "max"),
    *("paul", "quincy", "rob", "steph2", "zac"),
)
HELD_OUT = ("m4", "m5", "f3", "Andrea", "Andy", "Lee", "steph", "victor", "robert", "shelby")


@dataclass(frozen=True)
class VoiceBank:
    """Recordings of the ten digits by many voices.

    Attributes:
        samples: int16 ``[n]`` at 16 kHz, all recordings one after another.
        bounds: int64 ``[voices, 10, 2]``: first and past-the-last sample of each digit.
    """

    samples: np.ndarray
    bounds: np.ndarray

    def __len__(self) -> int:
        return len(self.bounds)

    def digit(self, voice: int, digit: int) -> np.ndarray:
        """int16 samples of one spoken digit."""
        first, end = self.bounds[voice, digit]
        return self.samples[first:end]

    def save(self, path: Path) -> None:
        """Writes an ``.npz``."""
        np.savez(path, samples=self.samples, bounds=self.bounds)

    @classmethod
    def load(cls, path: Path) -> VoiceBank:
        """Reads what ``save`` wrote."""
        with np.load(path) as file:
            return cls(file["samples"], file["bounds"])


def render(variants: Sequence[str], each: int, seed: int) -> VoiceBank:
    """Renders the digits, every variant with ``each`` draws of accent, speed and pitch.

    Raises:
        FileNotFoundError: If espeak-ng is not installed.
        subprocess.CalledProcessError: If it fails.
    """
    rng = np.random.default_rng(seed)
    jobs = []
    for variant in variants:
        for _ in range(each):
            voice = str(rng.choice(ACCENTS)) + (f"+{variant}" if variant else "")
            speed, pitch = int(rng.integers(120, 190)), int(rng.integers(25, 75))
            jobs += [(voice, speed, pitch, word) for word in WORDS]
    with ThreadPoolExecutor(2) as pool:
        clips = list(pool.map(lambda job: _speak(*job), jobs))
    ends = np.cumsum([len(clip) for clip in clips])
    bounds = np.stack([ends - [len(clip) for clip in clips], ends], axis=1)
    return VoiceBank(np.concatenate(clips), bounds.reshape(-1, len(WORDS), 2))


def _speak(voice: str, speed: int, pitch: int, word: str) -> np.ndarray:
    command = ["espeak-ng", "--stdout", "-v", voice, "-s", str(speed), "-p", str(pitch), word]
    with wave.open(
        io.BytesIO(subprocess.run(command, check=True, capture_output=True).stdout)
    ) as f:
        rate = f.getframerate()
        # The header of a stream has no length: what is there is all there is.
        samples = np.frombuffer(f.readframes(1 << 24), dtype="<i2").astype(np.float64)
    loud = np.flatnonzero(np.abs(samples) > 0.02 * np.abs(samples).max())
    samples = samples[max(loud[0] - 200, 0) : loud[-1] + 400]
    # Band-limited resampling: the upper part of the spectrum is cut off.
    length = round(len(samples) * RATE / rate)
    spectrum = np.fft.rfft(samples)[: length // 2 + 1]
    samples = np.fft.irfft(spectrum, length)
    return (samples * 20_000 / np.abs(samples).max()).astype(np.int16)


def main() -> None:
    """Command line entry."""
    parser = argparse.ArgumentParser(description="Render the voices to train on.")
    parser.add_argument("out", type=Path)
    parser.add_argument("--each", type=int, default=6, help="draws a variant (default: 6)")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    bank = render(TRAINED, arguments.each, arguments.seed)
    bank.save(arguments.out)
    print(f"{len(bank)} voices, {len(bank.samples) / RATE / 60:.0f} minutes: {arguments.out}")


if __name__ == "__main__":
    main()
