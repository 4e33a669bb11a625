# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""The requests that the managers of KV blocks are timed with, ours and the rivals', and the clock.

A request has 4096 tokens in blocks of 32. Its first 115 blocks, with an image of 1024 rows among
them, are one of 8 families'; the rest is its own. This module needs numpy and nothing else, for a
rival's interpreter imports it too.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

TOKENS_PER_BLOCK = 32
PROMPT_LENGTH = 4096
PROMPT_BLOCKS = PROMPT_LENGTH // TOKENS_PER_BLOCK
SHARED_BLOCKS = 115
SHARED_TOKENS = SHARED_BLOCKS * TOKENS_PER_BLOCK
OWN_TOKENS = PROMPT_LENGTH - SHARED_TOKENS
OWN_BLOCKS = PROMPT_BLOCKS - SHARED_BLOCKS
FAMILIES = 8
IMAGE_POSITION, IMAGE_ROWS = 512, 1024
VOCABULARY = 150_000
SEED = 20_261


class Prompts:
    """The families, and requests drawn from them.

    Attributes:
        families: int32 tokens, (FAMILIES, SHARED_TOKENS).
        digests: The identity of each family's image, uint8, (FAMILIES, 32).
    """

    def __init__(self) -> None:
        self._random = np.random.default_rng(SEED)
        self.families = self._tokens(FAMILIES, SHARED_TOKENS)
        self._drawn = np.empty((0, PROMPT_LENGTH), np.int32)
        self.digests = self._random.integers(0, 256, (FAMILIES, 32), np.uint8)

    def draw(self, count: int) -> tuple[np.ndarray, np.ndarray]:
        """The families of ``count`` requests, and their int32 tokens, (count, PROMPT_LENGTH).

        The tokens stand in the same memory each time, as they do in the C++ benchmark, so that no
        manager pays for pages that it is the first to read.
        """
        chosen = self._random.integers(0, FAMILIES, count)
        drawn = self._drawn[:count]
        if len(drawn) < count:
            self._drawn = drawn = np.empty((count, PROMPT_LENGTH), np.int32)
        for tokens, family in zip(drawn, chosen, strict=True):
            tokens[:SHARED_TOKENS] = self.families[family]
        drawn[:, SHARED_TOKENS:] = self._tokens(count, OWN_TOKENS)
        return chosen, drawn

    def _tokens(self, rows: int, columns: int) -> np.ndarray:
        return self._random.integers(0, VOCABULARY, (rows, columns), np.int32)


class BestHundredth:
    """Seconds of a turn in the best hundredth of the time that is measured.

    On a shared machine that is what the work itself takes; the other hundredths are noise.

    Attributes:
        best: The least mean over a hundredth.
        turns: How many were added.
    """

    def __init__(self, seconds: float) -> None:
        self.best = float("inf")
        self.turns = 0
        self._seconds = seconds
        self._total = self._part = 0.0
        self._turns_in_part = 0

    @property
    def running(self) -> bool:
        """Whether less than the time asked for was measured."""
        return self._total < self._seconds

    def add(self, took: float) -> None:
        """Counts one turn that took so many seconds."""
        self.turns += 1
        self._total += took
        self._part += took
        self._turns_in_part += 1
        if self._part > self._seconds / 100:
            self.best = min(self.best, self._part / self._turns_in_part)
            self._part, self._turns_in_part = 0.0, 0

    def add_round(self, turn: Callable[[], float], rounds: int) -> None:
        """Takes turns, each of which gives its seconds, for one of so many rounds."""
        self._part, self._turns_in_part = 0.0, 0
        end = self._total + self._seconds / rounds
        while self._total < end:
            self.add(turn())
