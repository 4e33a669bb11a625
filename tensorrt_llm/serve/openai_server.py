# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""The OpenAI-compatible server: what its rooms share, and the rooms.

A route parses, prepares in worker threads what takes time (media, templates, tokens), builds one
`GenerationRequest`, and streams the answer. The event loop itself never waits.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import Response

from tensorrt_llm.inputs.media_access import MediaAccess
from tensorrt_llm.inputs.media_io import MediaLoader
from tensorrt_llm.llmapi.llm import LLM
from tensorrt_llm.serve.access import Access
from tensorrt_llm.serve.adapter_routes import AdapterRoutes
from tensorrt_llm.serve.api_keys import ApiKeys
from tensorrt_llm.serve.body_limit import BodyLimit
from tensorrt_llm.serve.cache_routes import CacheRoutes
from tensorrt_llm.serve.described_app import DescribedApp
from tensorrt_llm.serve.errors import error_response
from tensorrt_llm.serve.files import FileRoutes, StoredFile
from tensorrt_llm.serve.generation_routes import GenerationRoutes
from tensorrt_llm.serve.header_limit import HeaderLimit
from tensorrt_llm.serve.heap import keep_trimmed
from tensorrt_llm.serve.json_body import JsonRoute
from tensorrt_llm.serve.limits import (
    DEFAULT_MAX_HEADER_BYTES,
    DEFAULT_MAX_MEDIA_ITEMS,
    DEFAULT_MAX_REQUEST_BYTES,
    DEFAULT_MAX_STORED_BYTES,
    DEFAULT_STORED_SECONDS,
    MAX_STORED,
)
from tensorrt_llm.serve.metrics import ServerMetrics
from tensorrt_llm.serve.metrics_route import CountAnswers, MetricsRoute
from tensorrt_llm.serve.prompt_preparer import PromptPreparer
from tensorrt_llm.serve.prompt_routes import PromptRoutes
from tensorrt_llm.serve.responses import ResponseRoutes, StoredResponse
from tensorrt_llm.serve.route_table import Room, RouteTable, methods_at
from tensorrt_llm.serve.status_routes import StatusRoutes
from tensorrt_llm.serve.submission import Submission
from tensorrt_llm.serve.tenant_store import TenantStore
from tensorrt_llm.serve.thumbnails import Thumbnails
from tensorrt_llm.serve.tool_calls import SyntaxName
from tensorrt_llm.serve.tool_use import ToolUse
from tensorrt_llm.serve.trace_export import SpanExport
from tensorrt_llm.serve.tracing import TraceRequests
from tensorrt_llm.serve.ui_routes import UiRoutes
from tensorrt_llm.version import __version__


@dataclass(frozen=True)
class ServerConfig:
    """What the HTTP door adds to the configuration of the model.

    Attributes:
        served_model_name: Name in ``/v1/models`` and in answers.
        media_access: Which media a request may name.
        api_keys: Who may ask; everyone if there are none.
        allowed_origins: Origins whose web pages may ask; ``*`` is all of them.
        max_header_bytes: Most bytes of a request's path and headers.
        max_request_bytes: Most bytes of a request body.
        max_media_items: Most pieces of media in a request.
        limit_mm_per_prompt: Most pieces by modality.
        media_io_kwargs: How media is decoded unless a request says otherwise, by modality.
        max_stored_bytes: Most bytes of stored responses, and as many of files; 0 stores none.
        stored_seconds: Time that they are kept.
        tool_parser: How the model writes calls of tools; None to tell by its chat template.
        page_thumbnails: Most thumbnails of media that the page of the caches shows; 0 shows none.
    """

    served_model_name: str
    media_access: MediaAccess = field(default_factory=MediaAccess)
    api_keys: ApiKeys = field(default_factory=ApiKeys)
    allowed_origins: tuple[str, ...] = ()
    max_header_bytes: int = DEFAULT_MAX_HEADER_BYTES
    max_request_bytes: int = DEFAULT_MAX_REQUEST_BYTES
    max_media_items: int = DEFAULT_MAX_MEDIA_ITEMS
    limit_mm_per_prompt: Mapping[str, int] = field(default_factory=dict)
    media_io_kwargs: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    tool_parser: SyntaxName | None = None
    max_stored_bytes: int = DEFAULT_MAX_STORED_BYTES
    stored_seconds: int = DEFAULT_STORED_SECONDS
    page_thumbnails: int = 0


class OpenAIServer:
    """Serves an `LLM` over HTTP.

    Attributes:
        app: The ASGI application.
        tracing: Sends traces; None where no endpoint is set.
        media_loader: Loads the media that requests name; counts what it decodes.

    Args:
        llm: The loaded model. The caller shuts it down.
        config: The door's own settings.
    """

    def __init__(self, llm: LLM, config: ServerConfig) -> None:
        cache = llm.args.kv_cache_config
        endpoint = llm.args.otlp_traces_endpoint
        name = config.served_model_name
        self.tracing = None if endpoint is None else SpanExport(endpoint, name)
        self._metrics = ServerMetrics(cache.enable_block_reuse, cache.tokens_per_block)
        self.media_loader = MediaLoader(
            config.media_access,
            llm.hasher,
            fetcher=self._metrics.fetcher(config.media_access),
            decoder=None if config.media_access.trusted else self._metrics.decoder(),
            memo=llm.media_memo,
            default_options=config.media_io_kwargs,
        )
        shown = Thumbnails(config.page_thumbnails) if config.page_thumbnails else None
        tools = ToolUse(llm.preprocessor.template, llm.tokenizer, config.tool_parser)
        self._prepare = PromptPreparer(
            llm.preprocessor,
            self.media_loader,
            config.max_media_items,
            config.limit_mm_per_prompt,
            tools,
            shown,
        )
        adapters = AdapterRoutes(llm.adapters, self._prepare, name, llm.model_info.max_seq_len)
        submit = Submission(llm, self._prepare)
        bounds = (config.max_stored_bytes, MAX_STORED, config.stored_seconds)
        stored_files = TenantStore[StoredFile](*bounds)
        files = FileRoutes(self._prepare, stored_files, config.stored_seconds)
        responses = TenantStore[StoredResponse](*bounds)
        self._cache = CacheRoutes(llm, self._prepare, adapters, shown)
        stores: dict[str, TenantStore[Any]] = {"files": stored_files, "responses": responses}
        self._metrics_route = MetricsRoute(llm, self._metrics, stores)
        self._ui = UiRoutes(llm, self._metrics, shown)
        self.app = DescribedApp(title="trtllm-serve", version=__version__, lifespan=self._lifespan)
        self.app.router.route_class = JsonRoute
        self._add_middleware(config)
        for kind in (HTTPException, RequestValidationError):
            self.app.add_exception_handler(kind, _answer_error)
        rooms: tuple[Room, ...] = (
            GenerationRoutes(llm, self._prepare, submit, tools, name, adapters, files),
            PromptRoutes(llm, self._prepare, name, adapters, files),
            adapters,
            ResponseRoutes(self._prepare, submit, tools, name, adapters, responses, files),
            files,
            self._cache,
            self._ui,
            StatusRoutes(llm, name, adapters),
            self._metrics_route,
        )
        table = RouteTable(self.app.router)
        for room in rooms:
            room.declare(table)

    def _add_middleware(self, config: ServerConfig) -> None:
        # The last one added is the first to see a request.
        self.app.add_middleware(BodyLimit, max_bytes=config.max_request_bytes)
        self.app.add_middleware(Access, keys=config.api_keys)
        self.app.add_middleware(HeaderLimit, max_bytes=config.max_header_bytes)
        self.app.add_middleware(CountAnswers, metrics=self._metrics)
        if self.tracing is not None:
            self.app.add_middleware(TraceRequests, tracer=self.tracing)
        if config.allowed_origins:
            # Outermost: a page may read refusals too, and asks without a key whether it may ask.
            self.app.add_middleware(
                CORSMiddleware,
                allow_origins=config.allowed_origins,
                allow_methods=["GET", "POST", "DELETE"],
                allow_headers=["*"],
            )

    @asynccontextmanager
    async def _lifespan(self, app: FastAPI) -> AsyncIterator[None]:
        trimming = asyncio.create_task(keep_trimmed(lambda: self.media_loader.decodes))
        yield
        trimming.cancel()
        self._prepare.close()
        self._cache.close()
        self._metrics_route.close()
        self._ui.close()
        if self.tracing is not None:  # what is left is sent, which may take a while
            await asyncio.to_thread(self.tracing.close)


async def _answer_error(http: Request, error: Exception) -> Response:
    response = error_response(error)
    if response.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
        # The framework names those of the first route only, and each of ours has one.
        response.headers["Allow"] = ", ".join(methods_at(http))
    return response
