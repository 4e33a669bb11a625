# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Rotary frequencies that stay what they are for the life of the model.

Cached keys carry their positions. If the frequencies may change with the length of what is being
run, keys written under one set meet queries under another, and a long request changes its
neighbours in the flattened batch.
"""

from __future__ import annotations

from typing import Any

from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

from tensorrt_llm.errors import ConfigurationError

# Under any name that transformers does not know as changing, the frequencies are taken as they
# stand.
_PINNED = "pinned"


def pin_rotary(rotary: Any, max_seq_len: int) -> None:
    """Fixes which of longrope's two factor sets is used; leaves constant rope types as they are.

    The long set serves every length; it is used whenever ``max_seq_len`` can exceed the length the
    model was first trained with.

    Args:
        rotary: A decoder's rotary embedding module.
        max_seq_len: Longest sequence that will be run, in tokens.

    Raises:
        ConfigurationError: If the rope type changes with length in a way that cannot be fixed.
    """
    rope_type = rotary.rope_type
    by_layer = isinstance(rope_type, dict)
    kinds = set(rope_type.values()) if by_layer else {rope_type}
    if any("dynamic" in kind for kind in kinds) or (by_layer and "longrope" in kinds):
        raise ConfigurationError(
            f"rope_type {rope_type!r} changes with the length of a request; its keys cannot be "
            "cached"
        )
    if "longrope" not in kinds:
        return
    frequencies, rotary.attention_scaling = ROPE_INIT_FUNCTIONS["longrope"](
        rotary.config, rotary.inv_freq.device, seq_len=max_seq_len
    )
    rotary.inv_freq.copy_(frequencies)
    rotary.rope_type = _PINNED
