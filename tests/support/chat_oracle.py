# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""What a server must report for a chat: found by brute force, from the payloads themselves.

Content is written as a test thinks of it: text, Pillow pictures, arrays of samples at 16 kHz, and
pairs of samples and their rate.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import soundfile
from PIL import Image

from benchmarks.prefix_model import PrefixModel, scope_of, token_keys
from support.families import modality_of
from support.media import RATE, data_uri, image_bytes, wav_bytes
from support.prompts import PromptMaker
from tensorrt_llm.inputs.data import ProcessedPrompt
from tensorrt_llm.inputs.video_data import VideoClip

Sound: TypeAlias = "np.ndarray | tuple[np.ndarray, int]"
Part: TypeAlias = "str | Image.Image | VideoClip | Sound"
Message: TypeAlias = "tuple[str, Sequence[Part]]"
Options: TypeAlias = "Mapping[str, Any] | None"

BLOCK = 32


def part_json(part: Part) -> dict[str, Any]:
    """The part as it goes over HTTP."""
    if isinstance(part, str):
        return {"type": "text", "text": part}
    if isinstance(part, Image.Image):
        return {"type": "image_url", "image_url": {"url": data_uri(image_bytes(part), "image/png")}}
    url = data_uri(wav_bytes(*samples_and_rate(part)), "audio/wav")
    return {"type": "audio_url", "audio_url": {"url": url}}


def samples_and_rate(sound: Sound) -> tuple[np.ndarray, int]:
    """Samples as ``[frames]`` or ``[frames, channels]``, and their rate."""
    return sound if isinstance(sound, tuple) else (sound, RATE)


def content_json(*parts: Part) -> list[dict[str, Any]]:
    """A user's content as it goes over HTTP."""
    return [part_json(part) for part in parts]


def messages_json(*messages: Message) -> list[dict[str, Any]]:
    """A conversation as it goes over HTTP."""
    return [{"role": role, "content": content_json(*parts)} for role, parts in messages]


class ChatOracle:
    """Knows every conversation that a server has seen.

    Args:
        checkpoint: A tiny multimodal model.
    """

    def __init__(self, checkpoint: Path) -> None:
        self.make = PromptMaker(checkpoint)
        self.model = PrefixModel(BLOCK)
        self._prompts: dict[str, ProcessedPrompt] = {}

    def prompt(self, *messages: Message, options: Options = None) -> ProcessedPrompt:
        """The prompt of a conversation, as the checkpoint's chat template writes it.

        Args:
            messages: The conversation.
            options: ``mm_processor_kwargs`` that are no defaults.

        Returns:
            The same object for equal conversations.
        """
        shape = [
            (role, [part if isinstance(part, str) else None for part in parts])
            for role, parts in messages
        ]
        key = repr((shape, self.names(*messages, options=options)))
        if key not in self._prompts:
            self._prompts[key] = self._made(messages, options)
        return self._prompts[key]

    def _made(self, messages: Sequence[Message], options: Options) -> ProcessedPrompt:
        media = [part for _, parts in messages for part in parts if not isinstance(part, str)]
        conversation = [
            {"role": role, "content": [_template_part(part) for part in parts]}
            for role, parts in messages
        ]
        text = self.make.tokenizer.apply_chat_template(
            conversation, tokenize=False, add_generation_prompt=True
        )
        return self.make(text, *map(_as_sent, media), **(options or {}))

    def names(self, *messages: Message, options: Options = None) -> list[str]:
        """What the media of a conversation is, one name an item: all that makes it another."""
        told = f" {sorted(options.items())}" if options else ""
        media = [part for _, parts in messages for part in parts if not isinstance(part, str)]
        return [_name(part) + told for part in media]

    def expect(self, *messages: Message, salt: str | None = None, options: Options = None) -> int:
        """Most tokens that can be cached now."""
        prompt = self.prompt(*messages, options=options)
        keys = token_keys(prompt, self.names(*messages, options=options))
        return self.model.longest(keys, scope_of(prompt, salt))

    def seen(
        self,
        *messages: Message,
        generated: Sequence[int] = (),
        salt: str | None = None,
        options: Options = None,
    ) -> None:
        """Remembers a conversation that was answered.

        Args:
            messages: The conversation.
            generated: Tokens of the answer whose KV was written: all but the last.
            salt: Its cache salt.
            options: As for `prompt`.
        """
        prompt = self.prompt(*messages, options=options)
        keys = token_keys(prompt, self.names(*messages, options=options), generated)
        self.model.write(keys, scope_of(prompt, salt))

    def ask(self, *messages: Message, salt: str | None = None) -> tuple[int, int]:
        """Expected (prompt tokens, cached tokens) of a request that is answered now."""
        expected = self.expect(*messages, salt=salt)
        self.seen(*messages, salt=salt)
        return len(self.prompt(*messages)), expected


def _template_part(part: Part) -> dict[str, str]:
    """The part as stock chat templates take it."""
    if isinstance(part, str):
        return {"type": "text", "text": part}
    return {"type": modality_of(part)}


def _as_sent(
    part: Image.Image | VideoClip | Sound,
) -> Image.Image | VideoClip | tuple[np.ndarray, int]:
    """What a receiver has: samples lose what a 16-bit file cannot hold."""
    if isinstance(part, Image.Image | VideoClip):
        return part
    return soundfile.read(io.BytesIO(wav_bytes(*samples_and_rate(part))), dtype="float32")


def _name(part: Image.Image | VideoClip | Sound) -> str:
    """All that makes a payload what it is; no digest of the product is involved."""
    if isinstance(part, Image.Image):
        return f"{part.mode} {part.size} {hashlib.sha256(part.tobytes()).hexdigest()}"
    if isinstance(part, VideoClip):
        heard = "" if part.audio is None else _name((part.audio.samples, part.audio.sample_rate))
        shown = hashlib.sha256(part.frames.tobytes()).hexdigest()
        return f"{part.frames.shape} {shown} {part.timestamps} {part.fps} {heard}"
    samples, rate = samples_and_rate(part)
    return f"{samples.shape} {rate} {hashlib.sha256(wav_bytes(samples, rate)).hexdigest()}"
