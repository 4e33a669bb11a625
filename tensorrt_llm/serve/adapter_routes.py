# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Adapters over HTTP: loaded and unloaded by an administrator, named by anyone as a model."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from tensorrt_llm.errors import RequestError
from tensorrt_llm.executor.request import AdapterIdentity
from tensorrt_llm.llmapi.adapters import AdapterRegistry, LoadedAdapter
from tensorrt_llm.serve.access import check_administrator
from tensorrt_llm.serve.adapter_protocol import LoadAdapterRequest, UnloadAdapterRequest
from tensorrt_llm.serve.guard import guarded
from tensorrt_llm.serve.openai_protocol import GenerationFields, ModelCard
from tensorrt_llm.serve.prompt_preparer import PromptPreparer
from tensorrt_llm.serve.route_table import RouteTable


class AdapterRoutes:
    """Routes of adapters, and the adapter of a request.

    Args:
        adapters: The loaded ones.
        prepare: Its threads read folders.
        served_model_name: Name of the model itself.
        max_model_len: Most tokens of a request.
    """

    def __init__(
        self,
        adapters: AdapterRegistry,
        prepare: PromptPreparer,
        served_model_name: str,
        max_model_len: int,
    ) -> None:
        self._adapters = adapters
        self._prepare = prepare
        self._name = served_model_name
        self._max_model_len = max_model_len

    def declare(self, table: RouteTable) -> None:
        """Adds the routes."""
        table.add("POST", "/v1/load_lora_adapter", self.load, ModelCard)
        table.add("POST", "/v1/unload_lora_adapter", self.unload, ModelCard)

    @guarded
    async def load(self, body: LoadAdapterRequest, http: Request) -> Response:
        """Reads an adapter; from then on its name is a model."""
        check_administrator(http)
        if body.lora_name == self._name:
            raise RequestError("is the name of the model itself", part="lora_name")
        adapter = await self._prepare.in_thread(self._adapters.load, body.lora_name, body.lora_path)
        return Response(self._card(adapter).to_json(), media_type="application/json")

    @guarded
    async def unload(self, body: UnloadAdapterRequest, http: Request) -> Response:
        """Takes a name back; requests that run go on to their end."""
        check_administrator(http)
        adapter = await self._prepare.in_thread(self._adapters.unload, body.lora_name)
        return Response(self._card(adapter).to_json(), media_type="application/json")

    def cards(self) -> list[ModelCard]:
        """What the list of models says of them."""
        return [self._card(adapter) for adapter in self._adapters.all()]

    def of(self, body: GenerationFields) -> LoadedAdapter | None:
        """The adapter that a request asks for: by the model's name, or by ``lora_request``.

        Raises:
            RequestError: If that adapter is not loaded (any more).
        """
        wanted = body.lora_request
        if wanted is None:
            if body.model is not None and self._adapters.was_unloaded(body.model):
                raise RequestError(f"the adapter {body.model!r} was unloaded", part="model")
            return None if body.model is None else self._adapters.get(body.model)
        adapter = self._adapters.get(wanted.lora_name)
        # A folder of the server's is for its administrator to name.
        if adapter is None or wanted.lora_path not in ("", adapter.path):
            raise RequestError(
                f"no adapter {wanted.lora_name!r} of that folder is loaded; POST "
                "/v1/load_lora_adapter loads one",
                part="lora_request",
            )
        return adapter

    def identity_of(self, body: GenerationFields) -> AdapterIdentity | None:
        """What the engine knows that adapter by.

        Raises:
            RequestError: As ``of``.
        """
        adapter = self.of(body)
        return None if adapter is None else adapter.identity

    def _card(self, adapter: LoadedAdapter) -> ModelCard:
        return ModelCard(
            id=adapter.name,
            object="model",
            created=adapter.created,
            owned_by="tensorrt_llm",
            max_model_len=self._max_model_len,
            parent=self._name,
        )
