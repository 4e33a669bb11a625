# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""How much of a prompt could be reused: found by comparing it with all earlier ones, key by key.

It knows nothing of hashes, trees or digests. A token's key is its id together with, for a media
token, the *name* that the test gave the payload and the row's number in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from tensorrt_llm.inputs.data import ProcessedPrompt

TokenKey = tuple[Any, ...]


def token_keys(
    prompt: ProcessedPrompt, names: Sequence[str], generated: Sequence[int] = ()
) -> list[TokenKey]:
    """Keys of a prompt and the tokens generated after it.

    Args:
        prompt: The processed prompt.
        names: One a media item: equal names mean equal payload, options and context.
        generated: Generated tokens whose KV was written.
    """
    keys: list[TokenKey] = [(int(token),) for token in [*prompt.token_ids.tolist(), *generated]]
    for name, item in zip(names, prompt.items, strict=True):
        row = 0
        for run in item.runs:
            for position in range(run.position, run.position + run.length):
                keys[position] = (*keys[position], name, row)
                row += 1
    return keys


@dataclass
class PrefixModel:
    """A cache without bounds that keeps every sequence ever written.

    Attributes:
        block: Tokens in a block.
        partial: Whether the leading part of a block can be reused.
        written: Keys of the written tokens of earlier sequences, by scope.
    """

    block: int
    partial: bool = True
    written: dict[Any, list[list[TokenKey]]] = field(default_factory=dict)

    def longest(self, keys: Sequence[TokenKey], scope: Any = None) -> int:
        """Most cached tokens of a prompt: what it shares with an earlier one, but its last."""
        best = 0
        for earlier in self.written.get(scope, ()):
            common = 0
            for ours, theirs in zip(keys[: len(keys) - 1], earlier, strict=False):
                if ours != theirs:
                    break
                common += 1
            best = max(best, common)
        return best if self.partial else best // self.block * self.block

    def write(self, keys: Sequence[TokenKey], scope: Any = None) -> None:
        """Remembers a sequence of which all these tokens were written."""
        self.written.setdefault(scope, []).append(list(keys))


def scope_of(prompt: ProcessedPrompt, cache_salt: str | None = None) -> tuple[str | None, str]:
    """What must be equal for two sequences to share anything."""
    return (cache_salt, prompt.adapter_mode)
