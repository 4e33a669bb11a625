# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""How long a request wants its blocks kept: plain values, as users and messages have them."""

from __future__ import annotations

from dataclasses import dataclass, field

from tensorrt_llm import bindings
from tensorrt_llm.errors import RequestError

DEFAULT_RETENTION_PRIORITY = 35


@dataclass(frozen=True)
class TokenRangeRetentionConfig:
    """The priority of the blocks that begin in a range of the prompt.

    Attributes:
        token_start: First token of the range.
        token_end: End of the range; None: that of the prompt.
        priority: 0, given up first, to 100.
        duration_ms: After so many milliseconds unused it is 35 again; None: never.
    """

    token_start: int
    token_end: int | None
    priority: int
    duration_ms: int | None = None


@dataclass(frozen=True)
class KvCacheRetentionConfig:
    """How long a request wants its blocks kept.

    Attributes:
        token_range_retention_configs: Ranges of the prompt, in order and apart; only the last may
            be open.
        decode_retention_priority: Of blocks that begin with a generated token.
        decode_duration_ms: Likewise.

    Raises:
        RequestError: If a value is out of its range, or ranges overlap.
    """

    token_range_retention_configs: list[TokenRangeRetentionConfig] = field(default_factory=list)
    decode_retention_priority: int = DEFAULT_RETENTION_PRIORITY
    decode_duration_ms: int | None = None

    def __post_init__(self) -> None:
        self.for_manager()

    @classmethod
    def whole_prompt(cls, priority: int, duration_ms: int | None) -> KvCacheRetentionConfig:
        """One priority for all blocks of a prompt."""
        return cls([TokenRangeRetentionConfig(0, None, priority, duration_ms)])

    def for_manager(self) -> bindings.KvCacheRetentionConfig:
        """As the cache manager takes it, which also checks it."""
        try:
            return bindings.KvCacheRetentionConfig(
                [
                    bindings.TokenRangeRetentionConfig(
                        entry.token_start, entry.token_end, entry.priority, entry.duration_ms
                    )
                    for entry in self.token_range_retention_configs
                ],
                self.decode_retention_priority,
                self.decode_duration_ms,
            )
        except (bindings.InvalidArgumentError, TypeError, AttributeError) as error:
            raise RequestError(str(error), part="kv_cache_retention_config") from error
