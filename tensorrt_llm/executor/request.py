# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""The one request type in which all doors meet."""

from __future__ import annotations

import math
from dataclasses import dataclass

from tensorrt_llm.errors import RequestError
from tensorrt_llm.inputs.data import ProcessedPrompt
from tensorrt_llm.sampling_params import SamplingParams

DEFAULT_PRIORITY = 0.5


@dataclass(frozen=True, eq=False)
class GenerationRequest:
    """A processed prompt with what to do with it.

    Attributes:
        prompt: Token ids and media items.
        sampling_params: How to choose tokens and when to stop.
        cache_salt: Only requests with the same salt share blocks. None shares with the unsalted.
        priority: 0 to 1; decides among those who wait to be admitted (see docs/architecture.md).
        timeout: Seconds from its submission after which it is given up; None: never.
    """

    prompt: ProcessedPrompt
    sampling_params: SamplingParams
    cache_salt: str | None = None
    priority: float = DEFAULT_PRIORITY
    timeout: float | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.priority <= 1:
            raise RequestError(f"must be in [0, 1], got {self.priority}", part="priority")
        if self.timeout is not None and not 0 < self.timeout < math.inf:
            raise RequestError(f"must be above 0 seconds, got {self.timeout}", part="timeout")
