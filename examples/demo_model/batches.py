# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Batches of conversations for training, made by worker processes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import torch
from tokenizers import Tokenizer
from torch.utils.data import Dataset

from examples.demo_model.architecture import ROWS_OF_A_PICTURE
from examples.demo_model.pictures import IGNORED, Picture
from examples.demo_model.samples import Examples, Turn
from examples.demo_model.sounds import Clip
from examples.demo_model.voices import RATE, VoiceBank
from examples.tiny.phi4mm import AUDIO, IMAGE
from examples.tiny.tokenizer import ASSISTANT, END, SYSTEM, USER

# Clips of a batch have one of two lengths: padded together they would leak into each other, and
# were all equally long, the model would not learn to compare two that are not.
SHORT_SECONDS = (1.0, 2.8)
LONG_SECONDS = (2.2, 4.6)


@dataclass
class Batch:
    """Conversations side by side, padded on the right.

    Attributes:
        tokens: int64 ``[batch, length]``, placeholders included.
        targets: int64 ``[batch, length]``: the next token where it is part of an answer.
        pictures: uint8 ``[pictures, 112, 112, 3]`` in the order of their placeholders.
        cells: int64 ``[pictures, 4, 4, 4]``, see ``Picture``.
        clips: int16 ``[clips, samples of the longest]``; ``clip_lengths`` int64 ``[clips]``.
        noise: float32 ``[clips]``, see ``Clip``.
        beside_picture: bool ``[clips]``: whether the conversation has a picture too.
        heard: int64, the labels of all clips one after another; ``heard_lengths`` ``[clips]``.
    """

    tokens: torch.Tensor
    targets: torch.Tensor
    pictures: torch.Tensor
    cells: torch.Tensor
    clips: torch.Tensor
    clip_lengths: torch.Tensor
    noise: torch.Tensor
    beside_picture: torch.Tensor
    heard: torch.Tensor
    heard_lengths: torch.Tensor

    def to(self, device: torch.device) -> Batch:
        """The batch on another device."""
        moved = {name: t.to(device, non_blocking=True) for name, t in vars(self).items()}
        return Batch(**moved)

    def pin_memory(self) -> Batch:
        """The batch in pinned memory; the loader calls it."""
        return Batch(**{name: t.pin_memory() for name, t in vars(self).items()})


def clip_frames(samples: int) -> int:
    """Feature frames of a clip: 25 ms every 10 ms."""
    return (samples - 400) // 160 + 1


def clip_rows(samples: int) -> int:
    """Encoder rows of a clip: one for 8 frames."""
    return -(-clip_frames(samples) // 8)


class Batches(Dataset[Batch]):
    """Batch number ``i`` depends on the seed and on ``i`` only, whichever worker makes it."""

    def __init__(
        self, checkpoint: Path, bank: VoiceBank, seed: int, size: int, count: int, first: int = 0
    ) -> None:
        self._tokenizer = Tokenizer.from_file(str(checkpoint / "tokenizer.json"))
        self._bank = bank
        self._seed, self._size, self._count, self._first = seed, size, count, first

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, index: int) -> Batch:
        rng = np.random.default_rng([self._seed, self._first + index])
        seconds = rng.uniform(*SHORT_SECONDS), rng.uniform(*LONG_SECONDS)
        examples = Examples(rng, self._bank, [int(length * RATE) for length in seconds])
        return Builder(self._tokenizer).build([examples.conversation() for _ in range(self._size)])


class Builder:
    """Makes tensors of conversations."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        marks = (SYSTEM, USER, ASSISTANT, END, IMAGE, AUDIO)
        vocabulary = tokenizer.get_vocab()
        self._system, self._user, self._assistant, self._end, self._image, self._audio = (
            vocabulary[mark] for mark in marks
        )
        self._encode = lru_cache(maxsize=8192)(
            lambda text: tokenizer.encode(text, add_special_tokens=False).ids
        )

    def build(self, conversations: list[list[Turn]]) -> Batch:
        """One batch of conversations; there must be a picture and a clip in it."""
        lines, pictures, clips, beside = [], [], [], []
        for turns in conversations:
            lines.append(self._tokens(turns))
            media = [item for turn in turns for item in turn.media]
            pictures += [item for item in media if isinstance(item, Picture)]
            sounds = [item for item in media if isinstance(item, Clip)]
            clips += sounds
            beside += [len(sounds) < len(media)] * len(sounds)
        longest = -(-max(len(tokens) for tokens, _ in lines) // 16) * 16
        tokens = np.zeros((len(lines), longest), np.int64)
        targets = np.full((len(lines), longest), IGNORED, np.int64)
        for i, (ids, answers) in enumerate(lines):
            tokens[i, : len(ids)] = ids
            # What a position predicts is the token after it.
            targets[i, : len(ids) - 1] = np.where(answers[1:], ids[1:], IGNORED)
        longest_clip = max(len(clip.samples) for clip in clips)
        heard = [label for clip in clips for label in clip.labels]
        parts = {
            "tokens": tokens,
            "targets": targets,
            "pictures": np.stack([picture.pixels for picture in pictures]),
            "cells": np.stack([picture.cells for picture in pictures]),
            "clips": np.stack([_at_length(clip.samples, longest_clip) for clip in clips]),
            "clip_lengths": np.array([len(clip.samples) for clip in clips], np.int64),
            "noise": np.array([clip.noise for clip in clips], np.float32),
            "beside_picture": np.array(beside),
            "heard": np.array(heard, np.int64),
            "heard_lengths": np.array([len(clip.labels) for clip in clips], np.int64),
        }
        return Batch(**{name: torch.from_numpy(part) for name, part in parts.items()})

    def _tokens(self, turns: list[Turn]) -> tuple[np.ndarray, np.ndarray]:
        ids: list[int] = []
        answers: list[bool] = []
        for turn in turns:
            if turn.system:
                system = [self._system, *self._encode(turn.system), self._end]
                ids += system
                answers += [False] * len(system)
            media: list[int] = []
            for item in turn.media:
                if isinstance(item, Picture):
                    media += [self._image] * ROWS_OF_A_PICTURE
                else:
                    media += [self._audio] * clip_rows(len(item.samples))
            text = self._encode(turn.question)
            asked = [*media, *text] if turn.media_first else [*text, *media]
            asked = [self._user, *asked, self._end, self._assistant]
            answer = [*self._encode(turn.answer), self._end]
            ids += asked + answer
            answers += [False] * len(asked) + [True] * len(answer)
        return np.array(ids), np.array(answers)


def _at_length(samples: np.ndarray, length: int) -> np.ndarray:
    return np.pad(samples, (0, length - len(samples)))
