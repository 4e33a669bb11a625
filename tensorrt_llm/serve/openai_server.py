# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""The routes of the OpenAI-compatible server.

A route parses, prepares in worker threads what takes time (media, templates, tokens), builds one
`GenerationRequest`, and streams the answer. The event loop itself never waits.
"""

from __future__ import annotations

import time
from collections.abc import (
    AsyncIterator,
    Mapping,
    Sequence,
)
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from tensorrt_llm.errors import RequestError
from tensorrt_llm.executor.request import GenerationRequest
from tensorrt_llm.executor.result import GenerationResult
from tensorrt_llm.inputs.media_access import MediaAccess
from tensorrt_llm.inputs.media_io import MediaLoader
from tensorrt_llm.llmapi.llm import LLM
from tensorrt_llm.serve.body_limit import BodyLimit
from tensorrt_llm.serve.errors import error_response
from tensorrt_llm.serve.guard import guarded
from tensorrt_llm.serve.json_body import JsonRoute
from tensorrt_llm.serve.limits import DEFAULT_MAX_MEDIA_ITEMS, DEFAULT_MAX_REQUEST_BYTES
from tensorrt_llm.serve.openai_protocol import (
    ChatCompletionRequest,
    ChatCompletionResponse,
    CompletionRequest,
    CompletionResponse,
    ErrorResponse,
    GenerationFields,
    ModelCard,
    ModelList,
)
from tensorrt_llm.serve.postprocess import AnswerWriter, ChatWriter, CompletionWriter
from tensorrt_llm.serve.prompt_preparer import PromptPreparer, all_of, naming
from tensorrt_llm.serve.prompt_protocol import DetokenizeResponse, RenderResponse, TokenizeResponse
from tensorrt_llm.serve.prompt_routes import PromptRoutes
from tensorrt_llm.serve.streaming import (
    streamed_answer,
    while_connected,
    whole_answer,
)
from tensorrt_llm.version import __version__


@dataclass(frozen=True)
class ServerConfig:
    """What the HTTP door adds to the configuration of the model.

    Attributes:
        served_model_name: Name in ``/v1/models`` and in answers.
        media_access: Which media a request may name.
        max_request_bytes: Most bytes of a request body.
        max_media_items: Most pieces of media in a request.
        limit_mm_per_prompt: Most pieces by modality.
        media_io_kwargs: How media is decoded unless a request says otherwise, by modality.
    """

    served_model_name: str
    media_access: MediaAccess = field(default_factory=MediaAccess)
    max_request_bytes: int = DEFAULT_MAX_REQUEST_BYTES
    max_media_items: int = DEFAULT_MAX_MEDIA_ITEMS
    limit_mm_per_prompt: Mapping[str, int] = field(default_factory=dict)
    media_io_kwargs: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


class OpenAIServer:
    """Serves an `LLM` over HTTP.

    Attributes:
        app: The ASGI application.
        media_loader: Loads the media that requests name; counts what it decodes.

    Args:
        llm: The loaded model. The caller shuts it down.
        config: The door's own settings.
    """

    def __init__(self, llm: LLM, config: ServerConfig) -> None:
        self._llm = llm
        self._config = config
        self._started = int(time.time())
        self.media_loader = MediaLoader(
            config.media_access,
            llm.hasher,
            memo=llm.media_memo,
            default_options=config.media_io_kwargs,
        )
        self._prepare = PromptPreparer(
            llm.preprocessor,
            self.media_loader,
            config.max_media_items,
            config.limit_mm_per_prompt,
        )
        self.app = FastAPI(title="trtllm-serve", version=__version__, lifespan=self._lifespan)
        self.app.router.route_class = JsonRoute
        self.app.add_middleware(BodyLimit, max_bytes=config.max_request_bytes)
        for kind in (HTTPException, RequestValidationError):
            self.app.add_exception_handler(kind, _answer_error)
        self._add_routes()

    def _add_routes(self) -> None:
        post = partial(self.app.add_api_route, methods=["POST"], response_model=None)
        get = partial(self.app.add_api_route, methods=["GET"], response_model=None)
        errors: dict[int | str, dict[str, Any]] = {
            status: {"model": ErrorResponse} for status in (400, 413, 429, 500, 501, 503)
        }
        post(
            "/v1/chat/completions",
            self.chat_completions,
            responses={**errors, 200: {"model": ChatCompletionResponse}},
        )
        post(
            "/v1/completions",
            self.completions,
            responses={**errors, 200: {"model": CompletionResponse}},
        )
        prompts = PromptRoutes(self._llm, self._prepare, self._config.served_model_name)
        post("/tokenize", prompts.tokenize, responses={**errors, 200: {"model": TokenizeResponse}})
        post(
            "/detokenize",
            prompts.detokenize,
            responses={**errors, 200: {"model": DetokenizeResponse}},
        )
        post(
            "/v1/chat/completions/render",
            prompts.render,
            responses={**errors, 200: {"model": RenderResponse}},
        )
        get("/v1/models", self.models, responses={200: {"model": ModelList}})
        get("/health", self.health)
        get("/version", self.version)
        get("/metrics", self.metrics)

    @asynccontextmanager
    async def _lifespan(self, app: FastAPI) -> AsyncIterator[None]:
        yield
        self._prepare.close()

    @guarded
    async def chat_completions(self, body: ChatCompletionRequest, http: Request) -> Response:
        """Answers a conversation."""
        _refuse_disaggregated(body)
        sampling = body.sampling_params()
        prompt = await while_connected(http, self._prepare.conversation(body))
        request = GenerationRequest(prompt, sampling, body.cache_salt, body.priority)
        result = await self._submit(request, "messages")
        return await _reply(body, http, [result], self._writer(ChatWriter, body))

    @guarded
    async def completions(self, body: CompletionRequest, http: Request) -> Response:
        """Continues one or several prompts."""
        _refuse_disaggregated(body)
        sampling = body.sampling_params()
        prompts = body.prompts()
        if not prompts:
            raise RequestError("the list of prompts is empty", part="prompt")
        if body.stream and len(prompts) > 1:
            raise RequestError(
                f"a stream carries one prompt, got {len(prompts)}; send a request for each",
                part="prompt",
            )
        single = isinstance(body.prompt, str) or prompts[0] is body.prompt
        parts = ["prompt"] if single else [f"prompt[{index}]" for index in range(len(prompts))]
        prepared = await while_connected(
            http,
            all_of(
                self._prepare.plain(
                    prompt,
                    part,
                    add_special_tokens=body.add_special_tokens,
                    cache_salt=body.cache_salt,
                )
                for prompt, part in zip(prompts, parts, strict=True)
            ),
        )
        results: list[GenerationResult] = []
        try:
            for prompt, part in zip(prepared, parts, strict=True):
                request = GenerationRequest(prompt, sampling, body.cache_salt, body.priority)
                results.append(await self._submit(request, part))
        except Exception:
            for result in results:
                result.abort()
            raise
        return await _reply(body, http, results, self._writer(CompletionWriter, body))

    async def models(self) -> Response:
        """Lists the one model that is served."""
        card = ModelCard(
            id=self._config.served_model_name,
            object="model",
            created=self._started,
            owned_by="tensorrt_llm",
            max_model_len=self._llm.model_info.max_seq_len,
        )
        listing = ModelList(object="list", data=[card])
        return Response(listing.to_json(), media_type="application/json")

    async def health(self) -> Response:
        """200 while the engine's loop turns, 503 with the reason otherwise."""
        problem = self._llm.health_problem()
        if problem is None:
            return Response(status_code=200)
        return error_response(HTTPException(503, problem))

    async def version(self) -> Response:
        """The version of this package."""
        return JSONResponse({"version": __version__})

    @guarded
    async def metrics(self) -> Response:
        """Statistics of the iterations since the last call, as a list."""
        return JSONResponse(self._llm.get_stats())

    async def _submit(self, request: GenerationRequest, part: str) -> GenerationResult:
        with naming(part):
            if any(item.inputs_at_hand for item in request.prompt.items):
                # They are copied on their way to the engine, which may take a while.
                return await self._prepare.in_thread(self._llm.submit, request)
            return self._llm.submit(request)

    def _writer(self, kind: type[AnswerWriter], body: GenerationFields) -> AnswerWriter:
        return kind(
            self._config.served_model_name,
            self._llm.tokenizer,
            include_usage=body.include_usage,
            continuous_usage=body.continuous_usage,
        )


def _refuse_disaggregated(body: GenerationFields) -> None:
    if body.disaggregated_params is not None:
        raise NotImplementedError(
            "disaggregated_params: disaggregated serving is not available in this release"
        )


async def _reply(
    body: GenerationFields,
    http: Request,
    results: Sequence[GenerationResult],
    writer: AnswerWriter,
) -> Response:
    if body.stream:
        return await streamed_answer(http, results[0], writer)
    return await whole_answer(http, results, writer)


async def _answer_error(http: Request, error: Exception) -> Response:
    return error_response(error)
