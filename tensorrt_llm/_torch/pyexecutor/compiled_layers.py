# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""A decoder's layers compiled for a while, for the steps that are captured meanwhile.

Between two products of a layer lie a dozen small kernels: a norm alone is eight. Compiled they are
one. Attention stays as it is: it reads block tables through a kernel of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from transformers import AttentionInterface

from tensorrt_llm._torch.attention_backend import PAGED_ATTENTION
from tensorrt_llm._torch.attention_backend.interface import paged_attention_forward
from tensorrt_llm._torch.models.modeling_utils import DecoderModel

# Each batch size and each place in the stack may be compiled for itself.
_MOST_VERSIONS = 512


@contextmanager
def compiled_layers(model: DecoderModel, wanted: bool = True) -> Iterator[None]:
    """Compiles the decoder's layers for what runs inside.

    Args:
        model: The model.
        wanted: False changes nothing.
    """
    layers = getattr(model.decoder, "layers", None)
    if not wanted or layers is None:
        yield
        return
    # Imported here: it takes seconds, and most processes have no use for it.
    import torch._dynamo

    AttentionInterface.register(PAGED_ATTENTION, torch.compiler.disable(paged_attention_forward))
    for layer in layers:
        layer.compile(dynamic=False)
    try:
        with torch._dynamo.config.patch(recompile_limit=_MOST_VERSIONS):
            yield
    finally:
        for layer in layers:
            layer._compiled_call_impl = None
        AttentionInterface.register(PAGED_ATTENTION, paged_attention_forward)
