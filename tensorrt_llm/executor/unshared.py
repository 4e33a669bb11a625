# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Which prompt tokens of a request are never shared with another, and why."""

from __future__ import annotations

from typing import Literal, TypeAlias

from tensorrt_llm.executor.request import GenerationRequest

UnsharedReason: TypeAlias = Literal[
    "reuse_disabled", "prompt_logprobs", "context_logits", "unidentified_media"
]


def unshared_tokens(
    request: GenerationRequest, *, reuses: bool, tokens_per_block: int
) -> dict[UnsharedReason, int]:
    """Prompt tokens that neither take blocks from earlier requests nor leave any to later ones.

    Args:
        request: The request.
        reuses: Whether blocks are reused at all.
        tokens_per_block: Tokens of a block.

    Returns:
        Number of tokens by the reason; empty where all of the prompt can be shared.
    """
    prompt = request.prompt
    if not reuses:
        return {"reuse_disabled": len(prompt)}
    if request.sampling_params.prompt_logprobs is not None:
        # What is found was not scored, so such a request looks for nothing.
        return {"prompt_logprobs": len(prompt)}
    if request.sampling_params.return_context_logits:
        return {"context_logits": len(prompt)}
    unknown = [item.runs[0].position for item in prompt.items if item.identity is None]
    if unknown:
        begin = min(unknown) // tokens_per_block * tokens_per_block
        return {"unidentified_media": len(prompt) - begin}
    return {}
