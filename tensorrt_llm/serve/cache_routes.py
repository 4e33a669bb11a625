# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Routes for who runs the server: what the KV cache does.

What waits for the engine runs in threads of its own, so that a step that takes long keeps neither
the event loop nor the preparation of prompts waiting.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from functools import partial
from typing import TypeVar

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from tensorrt_llm.executor.request import GenerationRequest
from tensorrt_llm.executor.retention import KvCacheRetentionConfig
from tensorrt_llm.llmapi.llm import LLM
from tensorrt_llm.sampling_params import SamplingParams
from tensorrt_llm.serve.access import check_administrator, check_local, in_tenant
from tensorrt_llm.serve.adapter_routes import AdapterRoutes
from tensorrt_llm.serve.cache_protocol import FlushResponse, WarmRequest, WarmResponse
from tensorrt_llm.serve.explanation import ExplainResponse, Pool, explain
from tensorrt_llm.serve.guard import guarded
from tensorrt_llm.serve.openai_protocol import Answer, ChatCompletionRequest
from tensorrt_llm.serve.prompt_preparer import PromptPreparer
from tensorrt_llm.serve.route_table import RouteTable
from tensorrt_llm.serve.streaming import while_connected
from tensorrt_llm.serve.thumbnails import Thumbnails
from tensorrt_llm.version import __version__

_THREADS = 2
_TELLS_ALL = "tells of all tenants"

_Value = TypeVar("_Value")


class CacheRoutes:
    """Shows and changes what is cached.

    Args:
        llm: The loaded model.
        prepare: Makes the prompts, just as for requests that generate.
        adapters: Know the adapter of a request.
        thumbnails: Go with what is forgotten; None where there are none.
    """

    def __init__(
        self,
        llm: LLM,
        prepare: PromptPreparer,
        adapters: AdapterRoutes,
        thumbnails: Thumbnails | None,
    ) -> None:
        self._llm = llm
        self._prepare = prepare
        self._adapters = adapters
        self._thumbnails = thumbnails
        self._threads = ThreadPoolExecutor(_THREADS, "operations")

    def close(self) -> None:
        """Takes no more work; what has not begun is dropped."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    def declare(self, table: RouteTable) -> None:
        """Adds the routes."""
        table.add("POST", "/kv_cache/explain", self.explain, ExplainResponse)
        table.add("POST", "/kv_cache/flush", self.flush, FlushResponse)
        table.add("POST", "/kv_cache/warm", self.warm, WarmResponse)
        table.add("GET", "/server_info", self.server_info)
        table.add("POST", "/kv_cache_events", self.events)

    @guarded
    async def events(self, http: Request) -> Response:
        """What happened to cached blocks since the last call; whoever reads first has it."""
        check_local(http, _TELLS_ALL)
        lines = await self._ask(self._llm.take_kv_cache_events)
        return Response(f"[{','.join(lines)}]", media_type="application/json")

    @guarded
    async def explain(self, body: ChatCompletionRequest, http: Request) -> Response:
        """How much of a conversation is cached now, and why no more. Runs nothing."""
        check_administrator(http)
        # Told only if asked for, and to this machine: it tells what other tenants have sent.
        other_salts = http.query_params.get("other_salts", "") in ("1", "true")
        if other_salts:
            check_local(http, _TELLS_ALL)
        body = in_tenant(http, body)
        sampling, adapter = body.sampling_params(), self._adapters.identity_of(body)
        prompt = await while_connected(http, self._prepare.conversation(body))
        request = GenerationRequest(
            prompt, sampling, body.cache_salt, body.priority, adapter=adapter
        )
        return await self._ask(partial(self._explained, request, other_salts))

    @guarded
    async def flush(self, http: Request) -> Response:
        """Forgets all that was cached of earlier requests; those that run are not disturbed."""
        check_administrator(http)
        if self._thumbnails is not None:
            self._thumbnails.clear()
        return _json(FlushResponse(**await self._ask(self._llm.flush)))

    @guarded
    async def warm(self, body: WarmRequest, http: Request) -> Response:
        """Computes a conversation's prompt, and keeps it for longer than others."""
        check_administrator(http)
        body = in_tenant(http, body)
        body.sampling_params()  # refused here as it would be there
        adapter = self._adapters.identity_of(body)
        prompt = await while_connected(http, self._prepare.conversation(body))
        seconds = body.retention_seconds
        request = GenerationRequest(
            prompt,
            SamplingParams(max_tokens=1),
            body.cache_salt,
            body.priority,
            retention=KvCacheRetentionConfig.whole_prompt(
                body.retention_priority, None if seconds is None else round(1e3 * seconds)
            ),
            adapter=adapter,
        )
        result = await self._ask(partial(self._llm.submit, request))
        try:
            await while_connected(http, result.aresult())
        finally:
            result.abort()
        return _json(WarmResponse(prompt_tokens=len(prompt), cached_tokens=result.cached_tokens))

    @guarded
    async def server_info(self, http: Request) -> Response:
        """The configuration, and facts on the model and the engine."""
        check_administrator(http)
        llm = self._llm
        facts = {
            **asdict(llm.model_info),
            "bidirectional_modalities": sorted(llm.model_info.bidirectional_modalities),
            "stop_token_ids": sorted(llm.model_info.stop_token_ids),
        }
        config = llm.args.effective()
        # Anything but its folder is an object of the program that made the LLM.
        if not isinstance(config["tokenizer"], str):
            config["tokenizer"] = None
        problem = llm.health_problem()
        return JSONResponse(
            {
                "version": __version__,
                "model": facts,
                "configuration": config,
                "engine": {"problem": problem, "restarts": llm.num_engine_restarts},
            }
        )

    def _explained(self, request: GenerationRequest, other_salts: bool) -> Response:
        report = self._llm.explain(request, other_salts=other_salts)
        config, info = self._llm.args.kv_cache_config, self._llm.model_info
        pool = Pool(config.tokens_per_block, info.kv_cache_tokens, config.enable_partial_reuse)
        answer = explain(request.prompt, report, pool, self._llm.tokenizer.decode)
        return _json(answer)

    async def _ask(self, question: Callable[[], _Value]) -> _Value:
        return await asyncio.get_running_loop().run_in_executor(self._threads, question)


def _json(answer: Answer) -> Response:
    return Response(answer.to_json(), media_type="application/json")
