# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""``/v1/chat/completions`` and ``/v1/completions``: what makes text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from starlette.requests import Request
from starlette.responses import Response

from tensorrt_llm.errors import RequestError
from tensorrt_llm.executor.result import GenerationResult
from tensorrt_llm.llmapi.adapters import LoadedAdapter
from tensorrt_llm.llmapi.llm import LLM
from tensorrt_llm.serve.access import in_tenant
from tensorrt_llm.serve.adapter_routes import AdapterRoutes
from tensorrt_llm.serve.files import FileRoutes
from tensorrt_llm.serve.guard import guarded
from tensorrt_llm.serve.openai_protocol import (
    ChatCompletionRequest,
    ChatCompletionResponse,
    CompletionRequest,
    CompletionResponse,
    GenerationFields,
)
from tensorrt_llm.serve.postprocess import AnswerWriter, ChatWriter, CompletionWriter
from tensorrt_llm.serve.prompt_preparer import PromptPreparer, all_of
from tensorrt_llm.serve.route_table import EVENTS, JSON, RouteTable
from tensorrt_llm.serve.streaming import streamed_answer, while_connected, whole_answer
from tensorrt_llm.serve.submission import Submission, request_of
from tensorrt_llm.serve.tool_use import ToolUse
from tensorrt_llm.serve.tracing import note_results, staged


class GenerationRoutes:
    """Answers conversations and continues prompts.

    Args:
        llm: The loaded model.
        prepare: Makes the prompts.
        submit: Hands a request to the engine.
        tools: Knows how the model calls tools.
        served_model_name: The model's name in answers.
        adapters: Know the adapter of a request.
        files: Gives uploaded media.
    """

    def __init__(
        self,
        llm: LLM,
        prepare: PromptPreparer,
        submit: Submission,
        tools: ToolUse,
        served_model_name: str,
        adapters: AdapterRoutes,
        files: FileRoutes,
    ) -> None:
        self._llm = llm
        self._prepare = prepare
        self._submit = submit
        self._tools = tools
        self._name = served_model_name
        self._adapters = adapters
        self._files = files

    def declare(self, table: RouteTable) -> None:
        """Adds the routes."""
        chat, plain, kinds = ChatCompletionResponse, CompletionResponse, (JSON, EVENTS)
        table.add("POST", "/v1/chat/completions", self.chat_completions, chat, kinds=kinds)
        table.add("POST", "/v1/completions", self.completions, plain, kinds=kinds)

    @guarded
    async def chat_completions(self, body: ChatCompletionRequest, http: Request) -> Response:
        """Answers a conversation."""
        files = self._files.lookup(http, body.cache_salt)
        body = in_tenant(http, body)
        _refuse_disaggregated(body)
        sampling, adapter = self._tools.sampling_params(body), self._adapters.of(body)
        with staged(http, "load"):
            messages = self._prepare.read(body, files=files)
            prompt = self._prepare.at_once(messages, body)
            if prompt is None:
                work = self._prepare.dialogue(messages, body)
                prompt = await while_connected(http, work)
        request = request_of(body, prompt, sampling, adapter)
        result = await self._submit(request, "messages")
        writer = self._writer(partial(ChatWriter, tools=self._tools.syntax(body)), body, adapter)
        return await _reply(body, http, [result], writer)

    @guarded
    async def completions(self, body: CompletionRequest, http: Request) -> Response:
        """Continues one or several prompts."""
        body = in_tenant(http, body)
        _refuse_disaggregated(body)
        sampling, adapter = body.sampling_params(), self._adapters.of(body)
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
        work = all_of(
            self._prepare.plain(
                prompt,
                part,
                add_special_tokens=body.add_special_tokens,
                cache_salt=body.cache_salt,
            )
            for prompt, part in zip(prompts, parts, strict=True)
        )
        with staged(http, "load"):
            prepared = await while_connected(http, work)
        results: list[GenerationResult] = []
        try:
            for prompt, part in zip(prepared, parts, strict=True):
                request = request_of(body, prompt, sampling, adapter)
                results.append(await self._submit(request, part))
        except Exception:
            for result in results:
                result.abort()
            raise
        return await _reply(body, http, results, self._writer(CompletionWriter, body, adapter))

    def _writer(
        self,
        kind: Callable[..., AnswerWriter],
        body: GenerationFields,
        adapter: LoadedAdapter | None,
    ) -> AnswerWriter:
        return kind(
            self._name if adapter is None else adapter.name,
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
    note_results(http, results)
    if body.stream:
        return await streamed_answer(http, results[0], writer)
    return await whole_answer(http, results, writer)
