# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Requests in, growing answers out; the executor owns the engine.

``LoRARequest`` is here because users look for it here; it loads on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tensorrt_llm.executor.request import LoRARequest

__all__ = ["LoRARequest"]


def __getattr__(name: str) -> Any:
    if name != "LoRARequest":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from tensorrt_llm.executor.request import LoRARequest

    return LoRARequest
