# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""The one request type in which all doors meet."""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass

from tensorrt_llm.errors import RequestError
from tensorrt_llm.executor.retention import KvCacheRetentionConfig
from tensorrt_llm.inputs.data import ProcessedPrompt
from tensorrt_llm.sampling_params import SamplingParams

DEFAULT_PRIORITY = 0.5


@dataclass(frozen=True)
class AdapterIdentity:
    """Which adapter: the two halves of the first 128 bits of a digest over its content.

    Equal content is one adapter, whatever its name and wherever it was read from.

    Attributes:
        adapter_id: Signed 64-bit number.
        version: Likewise.
    """

    adapter_id: int
    version: int

    @classmethod
    def of(cls, digest: bytes) -> AdapterIdentity:
        """The identity of content with this digest, of at least 16 bytes."""
        return cls(*struct.unpack_from("<qq", digest))

    def hex(self) -> str:
        """32 hex digits, as they are shown."""
        return struct.pack("<qq", self.adapter_id, self.version).hex()


@dataclass(frozen=True)
class LoRARequest:
    """An adapter that a request asks for. It is loaded when it is first asked for.

    Attributes:
        lora_name: The adapter's name.
        lora_int_id: A number above 0 of the caller's choice; it says nothing here, where content
            decides what is shared.
        lora_path: Folder as PEFT saves it. May be empty for a name that is loaded.
        lora_ckpt_source: Only ``"hf"``.
    """

    lora_name: str
    lora_int_id: int
    lora_path: str = ""
    lora_ckpt_source: str = "hf"

    def __post_init__(self) -> None:
        if not isinstance(self.lora_name, str) or not self.lora_name.strip():
            raise RequestError("must not be blank", part="lora_request.lora_name")
        if type(self.lora_int_id) is not int or self.lora_int_id < 1:
            raise RequestError("must be a whole number above 0", part="lora_request.lora_int_id")
        if self.lora_ckpt_source != "hf":
            raise RequestError("must be 'hf'", part="lora_request.lora_ckpt_source")


@dataclass(frozen=True, eq=False)
class GenerationRequest:
    """A processed prompt with what to do with it.

    Attributes:
        prompt: Token ids and media items.
        sampling_params: How to choose tokens and when to stop.
        cache_salt: Only requests with the same salt share blocks. None shares with the unsalted.
        priority: 0 to 1; decides among those who wait to be admitted (see docs/architecture.md).
        timeout: Seconds from its submission after which it is given up; None: never.
        retention: How long its blocks are kept; None: as all others.
        adapter: The loaded adapter that it is to be answered with; None: the model's own weights.
    """

    prompt: ProcessedPrompt
    sampling_params: SamplingParams
    cache_salt: str | None = None
    priority: float = DEFAULT_PRIORITY
    timeout: float | None = None
    retention: KvCacheRetentionConfig | None = None
    adapter: AdapterIdentity | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.priority <= 1:
            raise RequestError(f"must be in [0, 1], got {self.priority}", part="priority")
        if self.timeout is not None and not 0 < self.timeout < math.inf:
            raise RequestError(f"must be above 0 seconds, got {self.timeout}", part="timeout")
