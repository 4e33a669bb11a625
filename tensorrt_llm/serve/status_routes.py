# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""What is served here, whether it is well, and what its iterations did."""

from __future__ import annotations

import time

import numpy as np
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from tensorrt_llm.executor.request import GenerationRequest
from tensorrt_llm.inputs.data import ProcessedPrompt
from tensorrt_llm.llmapi.llm import LLM
from tensorrt_llm.sampling_params import SamplingParams
from tensorrt_llm.serve.adapter_routes import AdapterRoutes
from tensorrt_llm.serve.errors import UnknownIdError, error_response
from tensorrt_llm.serve.guard import guarded
from tensorrt_llm.serve.openai_protocol import ModelCard, ModelList
from tensorrt_llm.serve.route_table import READING_ERRORS, RouteTable
from tensorrt_llm.serve.streaming import while_connected
from tensorrt_llm.version import __version__


class StatusRoutes:
    """Tells what there is.

    Args:
        llm: The loaded model.
        served_model_name: Its name.
        adapters: Stand for a model as well.
    """

    def __init__(self, llm: LLM, served_model_name: str, adapters: AdapterRoutes) -> None:
        self._llm = llm
        self._name = served_model_name
        self._adapters = adapters
        self._started = int(time.time())

    def declare(self, table: RouteTable) -> None:
        """Adds the routes."""
        # Names of models are paths as often as not.
        one, unknown = "/v1/models/{model_id:path}", (404, *READING_ERRORS)
        table.add("GET", "/v1/models", self.models, ModelList, READING_ERRORS)
        table.add("GET", one, self.model, ModelCard, unknown)
        table.add("GET", "/health", self.health, errors=READING_ERRORS, kinds=())
        table.add("GET", "/health_generate", self.health_generate, kinds=())
        table.add("GET", "/version", self.version, errors=READING_ERRORS)
        table.add("GET", "/metrics", self.metrics, errors=READING_ERRORS)

    async def models(self) -> Response:
        """Lists the model that is served, and the adapters that stand for one."""
        listing = ModelList(object="list", data=self._cards())
        return Response(listing.to_json(), media_type="application/json")

    @guarded
    async def model(self, model_id: str) -> Response:
        """What the list says of one of them."""
        for card in self._cards():
            if card.id == model_id:
                return Response(card.to_json(), media_type="application/json")
        raise UnknownIdError(f"there is no model {model_id!r:.80}", part="model")

    async def health(self) -> Response:
        """200 while the engine's loop turns, 503 with the reason otherwise."""
        problem = self._llm.health_problem()
        if problem is None:
            return Response(status_code=200)
        return error_response(HTTPException(503, problem))

    @guarded
    async def health_generate(self, http: Request) -> Response:
        """200 once the engine has generated a token for this very question."""
        # One token is no block, so nothing is found and nothing is left behind.
        prompt = ProcessedPrompt(np.zeros(1, dtype=np.int32))
        request = GenerationRequest(prompt, SamplingParams(max_tokens=1, ignore_eos=True))
        result = self._llm.submit(request)
        try:
            await while_connected(http, result.aresult())
        finally:
            result.abort()
        return Response(status_code=200)

    async def version(self) -> Response:
        """The version of this package."""
        return JSONResponse({"version": __version__})

    @guarded
    async def metrics(self) -> Response:
        """Statistics of the iterations since the last call, as a list."""
        return JSONResponse(self._llm.get_stats(timeout=0))

    def _cards(self) -> list[ModelCard]:
        card = ModelCard(
            id=self._name,
            object="model",
            created=self._started,
            owned_by="tensorrt_llm",
            max_model_len=self._llm.model_info.max_seq_len,
        )
        return [card, *self._adapters.cards()]
