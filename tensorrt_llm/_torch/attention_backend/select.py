# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Which backend computes attention."""

from __future__ import annotations

import importlib.util

import torch

from tensorrt_llm._torch.attention_backend.interface import AttentionBackend
from tensorrt_llm._torch.attention_backend.sdpa import SdpaAttention
from tensorrt_llm.errors import ConfigurationError
from tensorrt_llm.logger import get_logger

logger = get_logger(__name__)


def choose_backend(
    name: str, *, num_heads: int, num_kv_heads: int, dtype: torch.dtype, device: torch.device
) -> AttentionBackend:
    """The backend that was asked for, or the best one that runs.

    Args:
        name: ``"auto"``, ``"triton"`` or ``"sdpa"``.
        num_heads: Query heads.
        num_kv_heads: Key and value heads.
        dtype: Of the queries.
        device: Where the model runs.

    Raises:
        ConfigurationError: If the one asked for does not run here.
    """
    lack = None
    if device.type != "cuda":
        lack = "needs a CUDA device"
    elif importlib.util.find_spec("triton") is None:
        lack = "needs the package triton"
    if name == "triton" and lack is not None:
        raise ConfigurationError(f"attn_backend: triton {lack}")
    if name == "sdpa" or lack is not None:
        if name == "auto" and device.type == "cuda":
            logger.warning("attention runs slowly, one call a sequence: the fast one %s", lack)
        return SdpaAttention()
    # Imported here: where there is no GPU there is no Triton either.
    from tensorrt_llm._torch.attention_backend.triton_paged import TritonAttention

    return TritonAttention(
        num_heads=num_heads,
        num_kv_heads=num_kv_heads,
        dtype=dtype,
        processors=torch.cuda.get_device_properties(device).multi_processor_count,
    )
