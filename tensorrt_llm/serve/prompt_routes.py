# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Routes that show how a prompt looks to the engine, and run nothing.

A router needs them to place a request where its blocks are; a person, to count tokens.
"""

from __future__ import annotations

from collections import defaultdict

from starlette.requests import Request
from starlette.responses import Response

from tensorrt_llm.inputs.data import ProcessedItem, ProcessedPrompt
from tensorrt_llm.llmapi.adapters import LoadedAdapter
from tensorrt_llm.llmapi.llm import LLM
from tensorrt_llm.serve.access import in_tenant
from tensorrt_llm.serve.adapter_routes import AdapterRoutes
from tensorrt_llm.serve.files import FileRoutes
from tensorrt_llm.serve.guard import guarded
from tensorrt_llm.serve.openai_protocol import Answer, ChatCompletionRequest
from tensorrt_llm.serve.prompt_preparer import PromptPreparer, naming
from tensorrt_llm.serve.prompt_protocol import (
    DetokenizeRequest,
    DetokenizeResponse,
    PlaceholderRange,
    RenderedMedia,
    RenderResponse,
    TokenizeRequest,
    TokenizeResponse,
)
from tensorrt_llm.serve.route_table import RouteTable
from tensorrt_llm.serve.streaming import while_connected


class PromptRoutes:
    """Answers what a prompt is made of.

    Args:
        llm: The loaded model.
        prepare: Makes the prompts, just as for requests that generate.
        served_model_name: The model's name in answers.
        adapters: Know the adapter of a request.
        files: Gives uploaded media.
    """

    def __init__(
        self,
        llm: LLM,
        prepare: PromptPreparer,
        served_model_name: str,
        adapters: AdapterRoutes,
        files: FileRoutes,
    ) -> None:
        self._llm = llm
        self._prepare = prepare
        self._name = served_model_name
        self._adapters = adapters
        self._files = files

    def declare(self, table: RouteTable) -> None:
        """Adds the routes."""
        table.add("POST", "/tokenize", self.tokenize, TokenizeResponse)
        table.add("POST", "/detokenize", self.detokenize, DetokenizeResponse)
        table.add("POST", "/v1/chat/completions/render", self.render, RenderResponse)

    @guarded
    async def tokenize(self, body: TokenizeRequest, http: Request) -> Response:
        """The tokens of a text or of a conversation."""
        files = self._files.lookup(http, body.cache_salt)
        body = in_tenant(http, body)
        if body.prompt is not None:
            work = self._prepare.plain(
                body.prompt,
                "prompt",
                add_special_tokens=body.add_special_tokens is not False,
                cache_salt=body.cache_salt,
            )
        else:
            work = self._prepare.conversation(body.conversation(), files)
        prompt = await while_connected(http, work)
        return await self._prepare.in_thread(self._tokens, prompt, body.return_token_strs)

    @guarded
    async def detokenize(self, body: DetokenizeRequest, http: Request) -> Response:
        """The text of tokens."""
        return await self._prepare.in_thread(self._text, body.tokens)

    @guarded
    async def render(self, body: ChatCompletionRequest, http: Request) -> Response:
        """What the engine would be asked for a conversation."""
        files = self._files.lookup(http, body.cache_salt)
        body = in_tenant(http, body)
        # Refused here as it would be there.
        body.sampling_params()
        adapter = self._adapters.of(body)
        prompt = await while_connected(http, self._prepare.conversation(body, files))
        return await self._prepare.in_thread(self._rendered, prompt, body.cache_salt, adapter)

    # A prompt may be as long as a body: nothing that looks at each token runs in the event loop.

    def _tokens(self, prompt: ProcessedPrompt, with_names: bool) -> Response:
        ids = prompt.token_ids.tolist()
        answer = TokenizeResponse(
            count=len(ids), max_model_len=self._llm.model_info.max_seq_len, tokens=ids
        )
        if with_names:
            answer.token_strs = self._llm.tokenizer.convert_ids_to_tokens(ids)
        return _json(answer)

    def _text(self, tokens: list[int]) -> Response:
        with naming("tokens"):
            self._llm.preprocessor.check_token_ids(tokens)
        return _json(DetokenizeResponse(prompt=self._llm.tokenizer.decode(tokens)))

    def _rendered(
        self, prompt: ProcessedPrompt, cache_salt: str | None, adapter: LoadedAdapter | None
    ) -> Response:
        return _json(
            RenderResponse(
                model=self._name if adapter is None else adapter.name,
                token_ids=prompt.token_ids.tolist(),
                features=_media(prompt) if prompt.items else None,
                cache_salt=cache_salt,
                adapter=None if adapter is None else adapter.identity.hex(),
                adapter_mode=prompt.adapter_mode,
                tokens_per_block=self._llm.args.kv_cache_config.tokens_per_block,
            )
        )


def _media(prompt: ProcessedPrompt) -> RenderedMedia:
    hashes, spans, runs = defaultdict(list), defaultdict(list), defaultdict(list)
    for item in prompt.items:
        hashes[item.modality].append(None if item.identity is None else item.identity.hex())
        spans[item.modality].append(_span(item))
        runs[item.modality].append(
            [PlaceholderRange(offset=run.position, length=run.length) for run in item.runs]
        )
    return RenderedMedia(mm_hashes=hashes, mm_placeholders=spans, mm_runs=runs)


def _span(item: ProcessedItem) -> PlaceholderRange:
    first, last = item.runs[0], item.runs[-1]
    return PlaceholderRange(
        offset=first.position, length=last.position + last.length - first.position
    )


def _json(answer: Answer) -> Response:
    return Response(answer.to_json(), media_type="application/json")
