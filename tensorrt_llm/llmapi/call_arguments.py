# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Arguments of the Python door that stand for one prompt or for many, or for a later release."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def is_single(inputs: Any) -> bool:
    """Whether these are one prompt: neither a tuple nor a list, unless of token ids."""
    if isinstance(inputs, list):
        return bool(inputs) and all(type(token) is int for token in inputs)
    return not isinstance(inputs, tuple)


def spread(name: str, value: Any, count: int) -> Sequence[Any]:
    """One value for each prompt: the same for all, or a list in step with the prompts.

    Raises:
        ValueError: If a list has another length. The message names the argument.
    """
    if not isinstance(value, list | tuple):
        return [value] * count
    if len(value) != count:
        raise ValueError(f"{name} has {len(value)} entries for {count} prompts")
    return value


def refuse_arguments(**arguments: Any) -> None:
    """Refuses what is not None.

    Raises:
        NotImplementedError: If there is one. The message names it.
    """
    for name, value in arguments.items():
        if value is not None:
            raise NotImplementedError(f"{name} is not available in this release; leave it unset")
