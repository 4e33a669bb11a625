# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""The routes of ``/v1/responses``: a chat whose earlier turns the server keeps.

What is kept of a turn are its messages and the bytes of its media, so that the next one neither
sends nor fetches nor decodes them again.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from starlette.requests import Request
from starlette.responses import Response

from tensorrt_llm.errors import RequestError
from tensorrt_llm.executor.result import GenerationResult
from tensorrt_llm.inputs.data import ProcessedPrompt
from tensorrt_llm.serve.access import in_tenant, owner_of
from tensorrt_llm.serve.adapter_routes import AdapterRoutes
from tensorrt_llm.serve.chat_utils import MediaSource, ParsedMessage, TextSource
from tensorrt_llm.serve.errors import UnknownIdError
from tensorrt_llm.serve.files import FileRoutes
from tensorrt_llm.serve.guard import guarded
from tensorrt_llm.serve.openai_protocol import ChatCompletionRequest
from tensorrt_llm.serve.prompt_preparer import PromptPreparer
from tensorrt_llm.serve.response_input import joined
from tensorrt_llm.serve.response_protocol import Deleted, ResponseObject, ResponseRequest
from tensorrt_llm.serve.response_writer import ResponseWriter
from tensorrt_llm.serve.route_table import ERRORS, EVENTS, JSON, RouteTable
from tensorrt_llm.serve.streaming import streamed_events, while_connected
from tensorrt_llm.serve.submission import Submission, request_of
from tensorrt_llm.serve.tenant_store import TenantStore
from tensorrt_llm.serve.tool_use import ToolUse
from tensorrt_llm.serve.tracing import note_results, staged

# What a message takes beside its text, rounded up.
_MESSAGE_BYTES = 1000


@dataclass(frozen=True)
class StoredResponse:
    """An answer, and the conversation up to and with it."""

    answer: ResponseObject
    messages: tuple[ParsedMessage, ...]

    @property
    def nbytes(self) -> int:
        """About what it takes, media that it shares with other answers included."""
        return sum(map(_size, self.messages)) + len(self.answer.to_json())


class ResponseRoutes:
    """Answers, and what they left with the server.

    Args:
        prepare: Makes the prompts.
        submit: Hands a request to the engine.
        tools: Knows how the model calls tools.
        served_model_name: The model's name in answers.
        adapters: Know the adapter of a request.
        store: Keeps answers.
        files: Gives uploaded media.
    """

    def __init__(
        self,
        prepare: PromptPreparer,
        submit: Submission,
        tools: ToolUse,
        served_model_name: str,
        adapters: AdapterRoutes,
        store: TenantStore[StoredResponse],
        files: FileRoutes,
    ) -> None:
        self._prepare = prepare
        self._submit = submit
        self._tools = tools
        self._name = served_model_name
        self._adapters = adapters
        self._store = store
        self._files = files

    def declare(self, table: RouteTable) -> None:
        """Adds the routes."""
        one, errors = "/v1/responses/{response_id}", (404, *ERRORS)
        kinds = (JSON, EVENTS)
        table.add("POST", "/v1/responses", self.create, ResponseObject, errors, kinds=kinds)
        table.add("GET", one, self.retrieve, ResponseObject, errors)
        table.add("DELETE", one, self.delete, Deleted, errors)

    @guarded
    async def create(self, body: ResponseRequest, http: Request) -> Response:
        """Answers, after an earlier answer or from nothing."""
        try:
            return await self._create(body, http)
        except RequestError as error:
            # Items of the input were messages on the way.
            part = error.part or ""
            if part == "messages" or part.startswith("messages["):
                error.part = "input" + part.removeprefix("messages")
            raise

    async def _create(self, body: ResponseRequest, http: Request) -> Response:
        owner = owner_of(http, body.cache_salt)
        chat = in_tenant(http, body.chat())
        sampling, adapter = self._tools.sampling_params(chat), self._adapters.of(chat)
        earlier: tuple[ParsedMessage, ...] = ()
        if body.previous_response_id is not None:
            found = self._found(owner, body.previous_response_id, "previous_response_id")
            earlier = found.messages
        messages = joined(
            self._prepare.read(chat, earlier, self._files.lookup(http, body.cache_salt))
        )
        with staged(http, "load"):
            prompt, messages = await while_connected(http, self._prompt(body, chat, messages))
        result = await self._submit(request_of(chat, prompt, sampling, adapter), "input")
        note_results(http, [result])
        keep = partial(self._keep, owner, messages) if body.store else _forget
        name = self._name if adapter is None else adapter.name
        writer = ResponseWriter(body, name, self._tools.syntax(chat), keep)
        if body.stream:
            return await streamed_events(http, result, partial(writer.events, result))
        try:
            await while_connected(http, _ended(result))
        finally:
            result.abort()
        return _json(writer.response(result))

    @guarded
    async def retrieve(
        self, http: Request, response_id: str, cache_salt: str | None = None
    ) -> Response:
        """An answer that was stored."""
        return _json(self._found(owner_of(http, cache_salt), response_id, "response_id").answer)

    @guarded
    async def delete(
        self, http: Request, response_id: str, cache_salt: str | None = None
    ) -> Response:
        """Forgets an answer, for retrieval and as an earlier one."""
        owner = owner_of(http, cache_salt)
        if not self._store.delete(owner, response_id):
            raise _unknown(response_id, "response_id")
        return _json(Deleted(id=response_id, object="response", deleted=True))

    async def _prompt(
        self, body: ResponseRequest, chat: ChatCompletionRequest, messages: list[ParsedMessage]
    ) -> tuple[ProcessedPrompt, list[ParsedMessage]]:
        if body.store:
            messages = await self._prepare.keep(messages)
        said = messages
        if body.instructions is not None:
            said = [ParsedMessage("system", body.instructions), *messages]
        return await self._prepare.dialogue(said, chat), messages

    def _keep(
        self,
        owner: str | None,
        messages: list[ParsedMessage],
        answer: ResponseObject,
        message: ParsedMessage,
    ) -> None:
        stored = StoredResponse(answer, (*messages, message))
        self._store.put(owner, answer.id, stored, stored.nbytes)

    def _found(self, owner: str | None, response_id: str, part: str) -> StoredResponse:
        stored = self._store.get(owner, response_id)
        if stored is None:
            raise _unknown(response_id, part)
        return stored


def _unknown(response_id: str, part: str) -> UnknownIdError:
    return UnknownIdError(
        f"there is no response {response_id!r:.80}: it was never stored, has expired or was "
        "deleted, or had another cache_salt",
        part=part,
    )


def _forget(answer: ResponseObject, message: ParsedMessage) -> None:
    """For answers that are not stored."""


async def _ended(result: GenerationResult) -> None:
    await result.aresult()


def _size(message: ParsedMessage) -> int:
    size = _MESSAGE_BYTES
    for source in [message.content] if isinstance(message.content, str) else message.content:
        if isinstance(source, MediaSource):
            size += 0 if source.kept is None else len(source.kept.data)
        else:
            size += len(source.text if isinstance(source, TextSource) else source)
    return size + len(str(message.more))


def _json(answer: ResponseObject | Deleted) -> Response:
    return Response(answer.to_json(), media_type="application/json")
