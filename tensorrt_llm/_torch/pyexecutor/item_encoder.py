# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Encoder rows for the items of running requests: found in the store, or encoded once.

An item is encoded only when a chunk needs rows of it that the KV cache does not hold, and always
alone, so that its rows depend on nothing beside it and a failure concerns one request.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence

import torch

from tensorrt_llm._torch.models.modeling_multimodal_utils import get_multimodal_embeddings
from tensorrt_llm._torch.models.modeling_utils import DecoderModel, MultimodalDecoderModel
from tensorrt_llm._torch.peft import AdapterRows
from tensorrt_llm._torch.pyexecutor.embedding_store import EmbeddingKey, EmbeddingStore
from tensorrt_llm._torch.pyexecutor.llm_request import LlmRequest, RequestItem
from tensorrt_llm.errors import EmbeddingMismatchError, EngineError, RequestError
from tensorrt_llm.inputs.multimodal import MultimodalParams
from tensorrt_llm.inputs.multimodal_params import EMBEDDING_KEY


class ItemEncoder:
    """Provides the rows of items and gives them back when they are no longer needed.

    Attributes:
        runs: Encoder runs so far, by modality.

    Args:
        model: Model whose encoders are used.
        store: Rows of earlier requests.
    """

    def __init__(self, model: DecoderModel, store: EmbeddingStore) -> None:
        self._model = model
        self._store = store
        self.runs: dict[str, int] = dict.fromkeys(model.modalities, 0)

    def provide(self, request: LlmRequest, begin: int, end: int) -> set[int]:
        """Makes the rows of every item in the chunk ``[begin, end)`` available.

        Returns:
            Items that have neither rows nor encoder inputs here: if the chunk holds one, those
            behind it are named too, so that all can be prepared side by side. Empty if the chunk
            can run.

        Raises:
            EmbeddingMismatchError: If an encoder's rows do not fill the item's runs exactly.
            EngineError: If an encoder fails, or gives rows that are not finite numbers.
        """
        missing = False
        for index, item in enumerate(request.items):
            if item.rows is None and item.touches(begin, end):
                missing |= not self._find_or_encode(request, index, item)
        if not missing:
            return set()
        return {
            index
            for index, item in enumerate(request.items)
            if item.rows is None
            and item.inputs is None
            and item.touches(begin, request.prompt_len)
            and not self._is_stored(request, item)
        }

    def encode_alone(self, request: LlmRequest) -> list[torch.Tensor]:
        """The rows of all items of a request that is not run, one item after the other.

        Returns:
            Of each item ``[num_rows, row_width]``, on the CPU.

        Raises:
            EngineError: As ``provide``, or if an item has no encoder inputs.
        """
        try:
            missing = self.provide(request, 0, request.prompt_len)
            if missing:
                raise EngineError(f"items {sorted(missing)} came without their encoder inputs")
            # Copies: what the store keeps is nobody else's to change.
            return [
                item.rows.to("cpu", copy=True) for item in request.items if item.rows is not None
            ]
        finally:
            self.release(request)

    def release_written(self, requests: Iterable[LlmRequest]) -> None:
        """Gives back the rows of items whose last row is in the KV pool."""
        for request in requests:
            for item in request.items:
                if item.rows is not None and item.last < request.num_written:
                    self._give_back(item)

    def release(self, request: LlmRequest) -> None:
        """Gives back all rows of a request."""
        for item in request.items:
            self._give_back(item)

    def _is_stored(self, request: LlmRequest, item: RequestItem) -> bool:
        key = _key(request, item)
        return key is not None and key in self._store

    def _find_or_encode(self, request: LlmRequest, index: int, item: RequestItem) -> bool:
        """Whether the item has its rows now; not if they must be encoded and cannot be yet."""
        key, stored = _key(request, item), None
        if key is not None:
            stored = self._store.acquire(key, item.item.num_rows, item.item.modality)
        if stored is None:
            if item.inputs is None:
                return False
            began = time.monotonic() if request.encoded_at is None else request.encoded_at[0]
            rows = self._encode(request, index, item)
            request.encoded_at = (began, time.monotonic())
            if key is None:
                item.rows = rows
                return True
            stored = self._store.insert(key, rows, item.item.modality)
        item.rows, item.stored = stored.rows, stored
        return True

    def _encode(self, request: LlmRequest, index: int, item: RequestItem) -> torch.Tensor:
        modality, expected = item.item.modality, item.item.num_rows
        given = (item.inputs or {}).get(EMBEDDING_KEY)
        if given is not None:
            return self._given(given, item)
        assert isinstance(self._model, MultimodalDecoderModel)
        model = self._model

        def forward(pending: Sequence[MultimodalParams], **kwargs: object) -> torch.Tensor:
            (params,) = pending
            with model.lora.applied([AdapterRows(one) for one in request.encoder_adapters]):
                rows = model.encode(modality, params.multimodal_data, **kwargs)
            if rows.shape[0] != expected:
                raise EmbeddingMismatchError(modality, rows.shape[0], expected)
            return rows

        where = item.item.part or f"{modality} {index}"
        self.runs[modality] += 1
        try:
            params = item.params(0, request.prompt_len, request.prompt_len, with_inputs=True)
            (rows,) = get_multimodal_embeddings(forward, [params], item.item.encoder_kwargs)
        except EngineError:
            raise
        except Exception as error:
            raise EngineError(f"{where}: the {modality} encoder failed: {error}") from error
        if not bool(torch.isfinite(rows).all()):
            raise EngineError(f"{where}: the {modality} encoder gave values that are not finite")
        return rows

    def _given(self, given: torch.Tensor, item: RequestItem) -> torch.Tensor:
        """Rows that the caller made, as the decoder takes them."""
        if given.shape[0] != item.item.num_rows:
            raise EmbeddingMismatchError(item.item.modality, given.shape[0], item.item.num_rows)
        rows = given.to(self._model.device, self._model.dtype)
        if not bool(torch.isfinite(rows).all()):
            raise RequestError(
                f"the embeddings hold numbers too large for {self._model.dtype}",
                part=item.item.part,
            )
        return rows

    def _give_back(self, item: RequestItem) -> None:
        stored, item.rows, item.stored = item.stored, None, None
        if stored is not None:
            self._store.release(stored)


def _key(request: LlmRequest, item: RequestItem) -> EmbeddingKey | None:
    """Where the store keeps the item's rows; nowhere if the item has no identity."""
    if item.item.identity is None:
        return None
    # Adapters that leave the encoders alone share the rows; only the decoder tells them apart.
    adapters = request.encoder_adapters
    return EmbeddingKey(
        item.item.identity,
        request.request.cache_salt,
        b"".join(adapter.digest for adapter in adapters) or None,
    )
