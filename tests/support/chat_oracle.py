# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""What a server must report for a chat: found by brute force, from the payloads themselves.

Content is written as a test thinks of it: text, Pillow pictures and arrays of samples at 16 kHz.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import soundfile
from PIL import Image

from benchmarks.prefix_model import PrefixModel, scope_of, token_keys
from support.media import data_uri, image_bytes, wav_bytes
from support.prompts import PromptMaker
from tensorrt_llm.inputs.data import ProcessedPrompt

Part: TypeAlias = "str | Image.Image | np.ndarray"
Message: TypeAlias = "tuple[str, Sequence[Part]]"

BLOCK = 32


def part_json(part: Part) -> dict[str, Any]:
    """The part as it goes over HTTP."""
    if isinstance(part, str):
        return {"type": "text", "text": part}
    if isinstance(part, Image.Image):
        return {"type": "image_url", "image_url": {"url": data_uri(image_bytes(part), "image/png")}}
    return {"type": "audio_url", "audio_url": {"url": data_uri(wav_bytes(part), "audio/wav")}}


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

    def prompt(self, *messages: Message) -> ProcessedPrompt:
        """The prompt of a conversation, as the checkpoint's chat template writes it."""
        media = [part for _, parts in messages for part in parts if not isinstance(part, str)]
        conversation = [
            {"role": role, "content": [_template_part(part) for part in parts]}
            for role, parts in messages
        ]
        text = self.make.tokenizer.apply_chat_template(
            conversation, tokenize=False, add_generation_prompt=True
        )
        return self.make(text, *map(_as_sent, media))

    def expect(self, *messages: Message, salt: str | None = None) -> int:
        """Most tokens that can be cached now."""
        prompt = self.prompt(*messages)
        return self.model.longest(token_keys(prompt, _names(messages)), scope_of(prompt, salt))

    def seen(
        self, *messages: Message, generated: Sequence[int] = (), salt: str | None = None
    ) -> None:
        """Remembers a conversation that was answered.

        Args:
            messages: The conversation.
            generated: Tokens of the answer whose KV was written: all but the last.
            salt: Its cache salt.
        """
        prompt = self.prompt(*messages)
        self.model.write(token_keys(prompt, _names(messages), generated), scope_of(prompt, salt))

    def ask(self, *messages: Message, salt: str | None = None) -> tuple[int, int]:
        """Expected (prompt tokens, cached tokens) of a request that is answered now."""
        expected = self.expect(*messages, salt=salt)
        self.seen(*messages, salt=salt)
        return len(self.prompt(*messages)), expected


def _template_part(part: Part) -> dict[str, str]:
    """The part as stock chat templates take it."""
    if isinstance(part, str):
        return {"type": "text", "text": part}
    return {"type": "image" if isinstance(part, Image.Image) else "audio"}


def _names(messages: Sequence[Message]) -> list[str]:
    return [_name(part) for _, parts in messages for part in parts if not isinstance(part, str)]


def _as_sent(part: Image.Image | np.ndarray) -> Image.Image | np.ndarray:
    """What a receiver has: samples lose what a 16-bit file cannot hold."""
    if isinstance(part, Image.Image):
        return part
    return soundfile.read(io.BytesIO(wav_bytes(part)), dtype="float32")[0]


def _name(part: Image.Image | np.ndarray) -> str:
    """All that makes a payload what it is; no digest of the product is involved."""
    if isinstance(part, Image.Image):
        return f"{part.mode} {part.size} {hashlib.sha256(part.tobytes()).hexdigest()}"
    return f"{part.shape} {hashlib.sha256(wav_bytes(part)).hexdigest()}"
