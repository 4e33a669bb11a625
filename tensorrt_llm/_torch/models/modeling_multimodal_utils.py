# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""From media items to the embeddings of one step.

Three calls, in this order, each usable alone:

1. ``get_multimodal_embeddings`` runs the encoder for what is not encoded yet;
2. ``find_input_mm_embeds`` keeps the rows that the step's chunks need;
3. ``fuse_input_embeds`` puts them between the text embeddings.

Names and behaviour follow TensorRT-LLM's module of the same name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from tensorrt_llm.inputs.multimodal import MultimodalParams
from tensorrt_llm.inputs.multimodal_params import EMBEDDING_KEY
from tensorrt_llm.llmapi.llm_args import refuse_disaggregated
from tensorrt_llm.logger import get_logger

logger = get_logger(__name__)


EncoderForward = Callable[..., "torch.Tensor | list[torch.Tensor]"]


def get_multimodal_embeddings(
    encoder_forward_fn: EncoderForward,
    multimodal_params: Sequence[MultimodalParams],
    encoder_kwargs: Mapping[str, Any] | None = None,
) -> list[torch.Tensor]:
    """Encodes what is not encoded yet, once, and remembers it in the params.

    Args:
        encoder_forward_fn: Called with the list of params that still need encoding and
            ``encoder_kwargs``; gives their rows ``[total_rows, hidden_size]`` in order.
        multimodal_params: Params of context requests. Rows found under
            ``multimodal_data["multimodal_embedding"]`` (a tensor or a list of them) are used as
            they are.
        encoder_kwargs: Passed to the encoder.

    Returns:
        ``[]`` without params; otherwise one tensor with the rows of all params. An encoder that
        gives several tensors, or params without runtime data, are returned as the encoder gave
        them and not remembered.

    Raises:
        NotImplementedError: In disaggregated mode.
        ValueError: If the encoder's rows do not add up to what the prompts hold.
    """
    refuse_disaggregated()
    if not multimodal_params:
        return []
    pending = [
        params
        for params in multimodal_params
        if params.has_content() and params.multimodal_data.get(EMBEDDING_KEY) is None
    ]
    if pending:
        encoded = encoder_forward_fn(pending, **dict(encoder_kwargs or {}))
        tensors = [encoded] if isinstance(encoded, torch.Tensor) else list(encoded)
        if len(tensors) != 1:
            return tensors
        if any(params.multimodal_runtime is None for params in pending):
            logger.warning("multimodal params without runtime data: their rows are not kept")
            return tensors
        _remember(tensors[0], pending)
    return [torch.cat([_stored_rows(params) for params in multimodal_params])]


def _remember(rows: torch.Tensor, pending: Sequence[MultimodalParams]) -> None:
    counts = [_total_rows(params) for params in pending]
    if sum(counts) != rows.shape[0]:
        raise ValueError(
            f"the encoder gave {rows.shape[0]} rows, the prompts hold {sum(counts)} placeholders"
        )
    for params, own in zip(pending, rows.split(counts), strict=True):
        params.multimodal_data[EMBEDDING_KEY] = own


def _total_rows(params: MultimodalParams) -> int:
    assert params.multimodal_runtime is not None
    return int(params.multimodal_runtime.total_embeds_in_request)


def _stored_rows(params: MultimodalParams) -> torch.Tensor:
    stored = params.multimodal_data[EMBEDDING_KEY]
    return stored if isinstance(stored, torch.Tensor) else torch.cat(list(stored))


def find_input_mm_embeds(
    mm_embeds: Sequence[torch.Tensor], multimodal_params: Sequence[MultimodalParams]
) -> list[torch.Tensor]:
    """Keeps the rows that belong to the current chunk of each param.

    Args:
        mm_embeds: One tensor with the rows of all params, or one tensor a param.
        multimodal_params: The params, with the runtime data of this chunk.

    Returns:
        ``[]`` if no row is needed; the input if all are; else one concatenated tensor (batched
        input) or one view a param, possibly empty.

    Raises:
        ValueError: If the two lists do not fit each other.
    """
    if not mm_embeds and not multimodal_params:
        return []
    if len(mm_embeds) not in (1, len(multimodal_params)):
        raise ValueError(
            f"Number of mm_embeds ({len(mm_embeds)}) does not match number of multimodal params "
            f"({len(multimodal_params)})"
        )
    if not multimodal_params or multimodal_params[0].multimodal_runtime is None:
        return list(mm_embeds)
    runtimes = [params.multimodal_runtime for params in multimodal_params]
    assert all(runtime is not None for runtime in runtimes)
    needed = [int(runtime.num_mm_tokens_in_chunk) for runtime in runtimes if runtime is not None]
    totals = [_total_rows(params) for params in multimodal_params]
    if not any(needed):
        return []
    if needed == totals:
        return list(mm_embeds)
    batched = len(mm_embeds) == 1
    owned = mm_embeds[0].split(totals) if batched else mm_embeds
    parts = [
        rows.narrow(0, int(runtime.num_cached_mm_tokens), int(runtime.num_mm_tokens_in_chunk))
        for rows, runtime in zip(owned, runtimes, strict=True)
        if runtime is not None
    ]
    return [torch.cat(parts)] if batched and len(parts) > 1 else parts


def filter_mm_token_from_input_ids(
    input_ids: torch.Tensor,
    vocab_size: int,
    mm_token_ids: torch.Tensor | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Splits token indices into text and media.

    Args:
        input_ids: int ``[num_tokens]``.
        vocab_size: Ids at or above it are media, unless ``mm_token_ids`` is given.
        mm_token_ids: The placeholder ids; may live on another device than ``input_ids``.

    Returns:
        ``(text_token_indices, mm_token_indices)``, int64 on the device of ``input_ids``.
    """
    if mm_token_ids is None:
        is_media = input_ids >= vocab_size
    else:
        # isin needs both on one device, and comparing ids needs one integer type.
        ids = mm_token_ids.to(device=input_ids.device, dtype=input_ids.dtype)
        is_media = torch.isin(input_ids, ids)
    return torch.where(~is_media)[0], torch.where(is_media)[0]


def fuse_input_embeds(
    embedding_layer: torch.nn.Module,
    input_ids: torch.Tensor,
    mm_embeds: Sequence[torch.Tensor],
    mm_token_ids: torch.Tensor | None = None,
    text_token_indices: torch.Tensor | None = None,
    mm_token_indices: torch.Tensor | None = None,
    **_: Any,
) -> tuple[torch.Tensor | None, torch.Tensor | None]:
    """Puts media rows between text embeddings.

    Media ids never reach the embedding layer, so they may lie outside its vocabulary.

    Args:
        embedding_layer: Token ids to ``[n, hidden_size]``; must have ``num_embeddings`` unless
            indices or ids are given.
        input_ids: int ``[num_tokens]``.
        mm_embeds: Row tensors in token order.
        mm_token_ids: Placeholder ids that mark media tokens.
        text_token_indices: Where text tokens are; with ``mm_token_indices`` overrides the ids.
        mm_token_indices: Where media tokens are.

    Returns:
        ``(input_ids, None)`` without rows, else ``(None, inputs_embeds)`` with
        ``[num_tokens, hidden_size]`` in the embedding's dtype.

    Raises:
        ValueError: If the number of rows is not the number of media tokens.
    """
    if not mm_embeds:
        return input_ids, None
    rows = mm_embeds[0] if len(mm_embeds) == 1 else torch.cat(list(mm_embeds))
    if text_token_indices is None or mm_token_indices is None:
        vocab_size = 0 if mm_token_ids is not None else int(embedding_layer.num_embeddings)  # type: ignore[arg-type]
        text_token_indices, mm_token_indices = filter_mm_token_from_input_ids(
            input_ids, vocab_size, mm_token_ids
        )
    if mm_token_indices.shape[0] != rows.shape[0]:
        raise ValueError(
            f"Multimodal token count mismatch: found {mm_token_indices.shape[0]} media tokens in "
            f"input_ids but received {rows.shape[0]} media embeddings"
        )
    text = embedding_layer(input_ids[text_token_indices])
    fused = torch.empty(
        input_ids.shape[0], rows.shape[-1], dtype=text.dtype, device=input_ids.device
    )
    fused[text_token_indices] = text
    fused[mm_token_indices] = rows.to(dtype=text.dtype, device=fused.device)
    return None, fused
