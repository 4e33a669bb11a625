# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""A running server of one family beside all that can say what it must answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from support.chat_oracle import ChatOracle, content_json
from support.families import FAMILIES
from support.media import clip, picture
from support.reference import ReferenceModel
from support.server import Reply, Server
from tensorrt_llm.inputs.data import ProcessedPrompt

ANSWER = 12


@dataclass(frozen=True)
class Served:
    """A server of one family, what it must report, and what it must answer.

    Attributes:
        name: The family, as in ``examples/tiny_checkpoints.py``.
        server: Takes files below the tests' media folder, and media on loopback.
        oracle: Knows what it has seen.
        reference: Knows its answers.
    """

    name: str
    server: Server
    oracle: ChatOracle
    reference: ReferenceModel

    @property
    def kind(self) -> str:
        """The one modality that tests send it."""
        return next(family.modalities[0] for family in FAMILIES if family.name == self.name)

    def media(self, seed: int) -> Any:
        """Payloads of one length, whatever the seed."""
        return clip(seed, 16.0) if self.kind == "audio" else picture(seed, 300, 200)

    def prompt(self, *parts: Any) -> ProcessedPrompt:
        """The prompt of a user's message."""
        return self.oracle.prompt(("user", parts))

    def first_row(self, *parts: Any) -> int:
        """Where the rows of the first item begin."""
        return self.prompt(*parts).items[0].runs[0].position

    def full(self, *parts: Any) -> int:
        """What a full repeat finds: all but the last token."""
        return len(self.prompt(*parts)) - 1

    def ask(self, *parts: Any, sent: list[dict[str, Any]] | None = None, **fields: Any) -> Reply:
        """Asks without looking at the answer; arguments as for `check`."""
        content = content_json(*parts) if sent is None else sent
        return self.server.chat(content, max_tokens=ANSWER, ignore_eos=True, **fields)

    def check(
        self,
        *parts: Any,
        sent: list[dict[str, Any]] | None = None,
        options: Mapping[str, Any] | None = None,
        salt: str | None = None,
        **fields: Any,
    ) -> int:
        """Asks, compares everything with the oracles, and gives the cached tokens.

        Args:
            parts: The content of a user's message as it is meant.
            sent: The same as it goes over HTTP, where that is no plain PNG or WAV.
            options: ``mm_processor_kwargs`` that change the item.
            salt: The request's cache salt.
            fields: Further fields of the body that change nothing about what is meant.
        """
        message = ("user", parts)
        if options is not None:
            fields["mm_processor_kwargs"] = dict(options)
        expected = self.oracle.expect(message, salt=salt, options=options)
        prompt = self.oracle.prompt(message, options=options)
        answer = self.reference.greedy(prompt, ANSWER).tokens
        reply = self.ask(*parts, sent=sent, cache_salt=salt, **fields)
        assert reply.status == 200, reply.error
        assert (reply.usage or {})["prompt_tokens"] == len(prompt)
        assert reply.cached == expected
        assert reply.text == self.oracle.make.tokenizer.decode(answer, skip_special_tokens=True)
        self.oracle.seen(message, generated=answer[:-1], salt=salt, options=options)
        return reply.cached
