# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""What of a model's prompts can be shared between requests: known at start, and said there."""

from __future__ import annotations

from dataclasses import dataclass

from tensorrt_llm.errors import ConfigurationError
from tensorrt_llm.inputs.registry import InputProcessor
from tensorrt_llm.llmapi.llm_args import KvCacheConfig


@dataclass(frozen=True)
class ReusePolicy:
    """Which kinds of prompt tokens are shared.

    Attributes:
        enabled: Whether blocks are reused at all.
        safe: Kinds whose items are identified, ``"text"`` first.
        unsafe: Modalities whose items never are: a prompt shares nothing from the first one on.
    """

    enabled: bool
    safe: tuple[str, ...]
    unsafe: tuple[str, ...]

    @classmethod
    def of(cls, config: KvCacheConfig, processor: InputProcessor) -> ReusePolicy:
        """The policy for a model.

        Raises:
            ConfigurationError: If ``strict_reuse`` is set and the model takes an unsafe modality.
        """
        unsafe = tuple(
            one for one in processor.modalities if one in processor.unidentified_modalities
        )
        if config.strict_reuse and unsafe:
            raise ConfigurationError(
                f"strict_reuse: {type(processor).__name__} does not identify {', '.join(unsafe)}, "
                "so requests with it would share nothing from there on; start without "
                "--strict_reuse to accept that"
            )
        safe = tuple(one for one in processor.modalities if one not in unsafe)
        return cls(config.enable_block_reuse, ("text", *safe), unsafe)

    def describe(self) -> str:
        """One line for who starts the model."""
        line = f"block reuse: {'on' if self.enabled else 'off'}; reuse-safe: {', '.join(self.safe)}"
        return line + (f"; never shared: {', '.join(self.unsafe)}" if self.unsafe else "")
