# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""The one request type in which all doors meet."""

from __future__ import annotations

from dataclasses import dataclass

from tensorrt_llm.inputs.data import ProcessedPrompt
from tensorrt_llm.sampling_params import SamplingParams


@dataclass(frozen=True, eq=False)
class GenerationRequest:
    """A processed prompt with what to do with it.

    Attributes:
        prompt: Token ids and media items.
        sampling_params: How to choose tokens and when to stop.
        cache_salt: Only requests with the same salt share blocks. None shares with the unsalted.
    """

    prompt: ProcessedPrompt
    sampling_params: SamplingParams
    cache_salt: str | None = None
