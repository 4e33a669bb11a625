# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""What travels with a request through the engine: media tensors, and rows of the current chunk."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from tensorrt_llm.inputs.multimodal import MultimodalInput

EMBEDDING_KEY = "multimodal_embedding"
"""Where rows stand that need no encoder, among an item's tensors."""

# The scheduler reads these at every step, so they never leave the CPU.
_HOST_ONLY = ("multimodal_embed_mask_cumsum", "multimodal_embedding_lengths")
# These say where rows go, not what is in them: alone they are no content.
_METADATA = (*_HOST_ONLY, "mrope_config", "special_token_offsets", "layout_metadata")


@dataclass
class MultimodalRuntimeData:
    """Which embedding rows of a request are behind, inside and ahead of the current chunk.

    Framing tokens around an item are no rows and are not counted.

    Args:
        past_seen_token_num: Prompt tokens whose KV exists: reused or computed in earlier chunks.
        chunk_end_pos: Prompt index just past the chunk.
        embed_mask_cumsum: int64 CPU tensor ``[prompt_len]``: how many of the tokens up to and
            including each one are rows.

    Attributes:
        num_cached_mm_tokens: Rows before the chunk.
        num_mm_tokens_in_chunk: Rows inside it.
        total_embeds_in_request: Rows of the whole prompt.

    Raises:
        ValueError: If the cumulative sum is None or ``past_seen_token_num`` is negative.
        AssertionError: If the chunk lies outside of the prompt, or the tensor is of another type,
            shape or device. The engine makes these, so it is our own fault.
    """

    past_seen_token_num: int
    chunk_end_pos: int
    embed_mask_cumsum: torch.Tensor

    num_cached_mm_tokens: int = field(init=False)
    num_mm_tokens_in_chunk: int = field(init=False)
    total_embeds_in_request: int = field(init=False)

    def __post_init__(self) -> None:
        cumsum = self.embed_mask_cumsum
        if cumsum is None:
            raise ValueError("embed_mask_cumsum must be a tensor, not None")
        if self.past_seen_token_num < 0:
            raise ValueError(
                f"past_seen_token_num must be non-negative, not {self.past_seen_token_num}"
            )
        assert cumsum.device.type == "cpu", f"embed_mask_cumsum is on {cumsum.device}, not the CPU"
        assert cumsum.dtype == torch.int64, f"embed_mask_cumsum is {cumsum.dtype}, not torch.int64"
        assert cumsum.ndim == 1, f"embed_mask_cumsum has {cumsum.ndim} axes, not 1"
        prompt_len = cumsum.numel()
        assert self.past_seen_token_num <= self.chunk_end_pos <= prompt_len, (
            f"a chunk from {self.past_seen_token_num} to {self.chunk_end_pos} in a prompt of "
            f"{prompt_len} tokens"
        )
        self.num_cached_mm_tokens = self._rows_before(self.past_seen_token_num)
        rows_to_end = self._rows_before(self.chunk_end_pos)
        self.num_mm_tokens_in_chunk = rows_to_end - self.num_cached_mm_tokens
        self.total_embeds_in_request = self._rows_before(prompt_len)

    def _rows_before(self, position: int) -> int:
        return int(self.embed_mask_cumsum[position - 1]) if position else 0


@dataclass
class MultimodalParams:
    """Media of one request as a model's forward takes it.

    Attributes:
        multimodal_input: Digests and runs.
        multimodal_data: Tensors by modality and name, nested dicts; after encoding also
            ``multimodal_embedding``. Owned by the request.
        multimodal_runtime: Rows of the current chunk.
        input_ids_start_offset: Where the request starts in the flattened batch.
        mm_item_order: Items in prompt order as (modality, index within it).
        encoder_event: CUDA event to wait for before reading the embeddings.
    """

    multimodal_input: MultimodalInput | None = None
    multimodal_data: dict[str, Any] = field(default_factory=dict)
    multimodal_runtime: MultimodalRuntimeData | None = None
    input_ids_start_offset: int = 0
    mm_item_order: list[tuple[str, int]] | None = None
    encoder_event: Any = None

    def has_content(self) -> bool:
        """Whether there is anything to encode or to put in, and not only metadata."""
        return any(
            key not in _METADATA
            and value is not None
            and not (isinstance(value, dict) and not value)
            for key, value in self.multimodal_data.items()
        )

    def to_device(
        self,
        element: str,
        device: torch.device | str,
        *,
        pin_memory: bool = False,
        target_keywords: Iterable[str] | None = None,
    ) -> None:
        """Moves the tensors of ``multimodal_data``, in place.

        Args:
            element: ``"multimodal_data"``, the only element that holds tensors to move.
            device: Where to.
            pin_memory: Whether to copy from pinned host memory, without waiting.
            target_keywords: Dotted paths below which tensors move, for example
                ``"image.pixel_values"``; None for all. Tensors that only the scheduler reads stay.

        Raises:
            ValueError: If the element is another one.
        """
        if element != "multimodal_data":
            raise ValueError(f"element must be 'multimodal_data', not {element!r}")
        targets = (
            None if target_keywords is None else [tuple(k.split(".")) for k in target_keywords]
        )
        target_device = torch.device(device)

        def move(tensor: torch.Tensor, path: tuple[str, ...]) -> torch.Tensor:
            if path[0] in _HOST_ONLY:
                return tensor
            if targets is not None and not any(path[: len(t)] == t for t in targets):
                return tensor
            # Pinning is for host memory on its way to a device, and means nothing elsewhere.
            if pin_memory and tensor.device.type == "cpu" and target_device.type == "cuda":
                tensor = tensor.pin_memory()
            return tensor.to(target_device, non_blocking=pin_memory)

        self.multimodal_data = {
            key: _map_tensors(value, (key,), move) for key, value in self.multimodal_data.items()
        }

    def strip_for_generation(self) -> None:
        """Drops all that only the context phase reads, so that its memory returns.

        Of ``multimodal_data`` only ``mrope_config.mrope_position_deltas`` stays.
        """
        deltas = (self.multimodal_data.get("mrope_config") or {}).get("mrope_position_deltas")
        # In place: the request may hold the same dict.
        self.multimodal_data.clear()
        if deltas is not None:
            self.multimodal_data["mrope_config"] = {"mrope_position_deltas": deltas}
        self.multimodal_input = None
        self.multimodal_runtime = None
        self.encoder_event = None


def _map_tensors(value: Any, path: tuple[str, ...], move: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return move(value, path)
    if isinstance(value, dict):
        return {key: _map_tensors(item, (*path, str(key)), move) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(_map_tensors(item, path, move) for item in value)
    return value
