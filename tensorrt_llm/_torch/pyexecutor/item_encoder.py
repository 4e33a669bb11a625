# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Encoder rows for the items of running requests: found in the store, or encoded once.

An item is encoded only when a chunk needs rows of it that the KV cache does not hold, and always
alone, so that its rows depend on nothing beside it and a failure concerns one request.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import torch

from tensorrt_llm._torch.models.modeling_multimodal_utils import get_multimodal_embeddings
from tensorrt_llm._torch.models.modeling_utils import DecoderModel, MultimodalDecoderModel
from tensorrt_llm._torch.pyexecutor.embedding_store import EmbeddingKey, EmbeddingStore
from tensorrt_llm._torch.pyexecutor.llm_request import LlmRequest, RequestItem
from tensorrt_llm.errors import EmbeddingMismatchError, EngineError, QueueFullError
from tensorrt_llm.inputs.multimodal import MultimodalParams


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

    def provide(self, request: LlmRequest, begin: int, end: int) -> None:
        """Makes the rows of every item in the chunk ``[begin, end)`` available.

        Raises:
            EmbeddingMismatchError: If an encoder's rows do not fill the item's runs exactly.
            EngineError: If an encoder fails, or gives rows that are not finite numbers.
        """
        for index, item in enumerate(request.items):
            if item.rows is None and item.touches(begin, end):
                self._find_or_encode(request, index, item)

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

    def _find_or_encode(self, request: LlmRequest, index: int, item: RequestItem) -> None:
        if item.item.identity is None:
            item.rows = self._encode(request, index, item)
            return
        key = EmbeddingKey(item.item.identity, request.request.cache_salt)
        stored = self._store.acquire(key, item.item.num_rows, item.item.modality)
        if stored is None:
            stored = self._store.insert(key, self._encode(request, index, item))
        item.rows, item.stored = stored.rows, stored

    def _encode(self, request: LlmRequest, index: int, item: RequestItem) -> torch.Tensor:
        modality, expected = item.item.modality, item.item.num_rows
        assert isinstance(self._model, MultimodalDecoderModel)
        model = self._model

        def forward(pending: Sequence[MultimodalParams], **kwargs: object) -> torch.Tensor:
            (params,) = pending
            rows = model.encode(modality, params.multimodal_data, **kwargs)
            if rows.shape[0] != expected:
                raise EmbeddingMismatchError(modality, rows.shape[0], expected)
            return rows

        where = item.item.part or f"{modality} {index}"
        self.runs[modality] += 1
        try:
            params = item.params(0, request.prompt_len, request.prompt_len, with_inputs=True)
            (rows,) = get_multimodal_embeddings(forward, [params], item.item.encoder_kwargs)
        except (EngineError, QueueFullError):
            raise
        except Exception as error:
            raise EngineError(f"{where}: the {modality} encoder failed: {error}") from error
        if not bool(torch.isfinite(rows).all()):
            raise EngineError(f"{where}: the {modality} encoder gave values that are not finite")
        return rows

    def _give_back(self, item: RequestItem) -> None:
        stored, item.rows, item.stored = item.stored, None, None
        if stored is not None:
            self._store.release(stored)
