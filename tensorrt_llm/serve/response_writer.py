# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Writes one result of the engine in the shapes of ``/v1/responses``, whole or as events."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

from tensorrt_llm.executor.result import CompletionOutput, GenerationResult
from tensorrt_llm.serve.chat_utils import ParsedMessage
from tensorrt_llm.serve.errors import describe
from tensorrt_llm.serve.postprocess import usage_of
from tensorrt_llm.serve.response_protocol import ResponseObject, ResponseRequest
from tensorrt_llm.serve.tool_calls import Found, ToolCall, ToolSyntax

Event = dict[str, Any]


class ResponseWriter:
    """Writes the answer to one request.

    Attributes:
        id: Of the answer.

    Args:
        body: The request.
        model: Name of the model, as served.
        tools: How to read calls in what the model writes; None where there are none.
        finished: Told the whole answer and the message that it is, before the client is.
    """

    def __init__(
        self,
        body: ResponseRequest,
        model: str,
        tools: ToolSyntax | None,
        finished: Callable[[ResponseObject, ParsedMessage], None],
    ) -> None:
        self.id = _new("resp")
        self._body = body
        self._model = model
        self._created = int(time.time())
        self._reader = tools.reader() if tools is not None else None
        self._finished = finished
        self._output: list[dict[str, Any]] = []
        self._number = -1

    def response(self, result: GenerationResult) -> ResponseObject:
        """The whole answer."""
        output = result.outputs[0]
        for _ in self._ended(output.text):
            pass
        return self._conclude(result)

    async def events(
        self, result: GenerationResult, updates: AsyncIterator[GenerationResult]
    ) -> AsyncIterator[str]:
        """The events of a stream; the first update is there."""
        try:
            for kind in ("created", "in_progress"):
                yield self._event(f"response.{kind}", response=self._plain("in_progress"))
            for event in self._update(result.outputs[0]):
                yield event
            async for _ in updates:
                for event in self._update(result.outputs[0]):
                    yield event
            whole = self._conclude(result)
            kind = "completed" if whole.status == "completed" else "incomplete"
            yield self._event(f"response.{kind}", response=_as_data(whole))
        except Exception as error:
            # The status is sent already, so the error goes where the answer would have gone on.
            told, _ = describe(error)
            yield self._event("error", code=told.type, message=told.message, param=told.param)
            failed = self._plain("failed")
            failed["error"] = {"code": "server_error", "message": told.message}
            yield self._event("response.failed", response=failed)

    def _update(self, output: CompletionOutput) -> Iterator[str]:
        if output.finish_reason is not None:
            return self._ended(output.text_diff)
        found: list[Found] = [output.text_diff] if output.text_diff else []
        return self._add(self._reader.feed(output.text_diff) if self._reader else found)

    def _ended(self, text: str) -> Iterator[str]:
        """Takes the last of the text."""
        if self._reader is None:
            yield from self._add([text] if text else [])
        else:
            yield from self._add([*self._reader.feed(text), *self._reader.finish()])
        if not self._output:
            yield from self._open_message()
        yield from self._close_message()

    def _add(self, found: list[Found]) -> Iterator[str]:
        for one in found:
            if isinstance(one, ToolCall):
                yield from self._close_message()
                yield from self._call(one)
                continue
            if not self._has_open_message():
                yield from self._open_message()
            item = self._output[-1]
            item["content"][0]["text"] += one
            yield self._event("response.output_text.delta", **self._place(), delta=one, logprobs=[])

    def _has_open_message(self) -> bool:
        return bool(self._output) and self._output[-1]["status"] == "in_progress"

    def _open_message(self) -> Iterator[str]:
        item: dict[str, Any] = {
            "id": _new("msg"),
            "type": "message",
            "role": "assistant",
            "status": "in_progress",
            "content": [],
        }
        self._output.append(item)
        yield self._item("added")
        item["content"] = [{"type": "output_text", "text": "", "annotations": [], "logprobs": []}]
        yield self._event("response.content_part.added", **self._place(), part=item["content"][0])

    def _close_message(self) -> Iterator[str]:
        if not self._has_open_message():
            return
        item = self._output[-1]
        part = item["content"][0]
        yield self._event(
            "response.output_text.done", **self._place(), text=part["text"], logprobs=[]
        )
        yield self._event("response.content_part.done", **self._place(), part=part)
        item["status"] = "completed"
        yield self._item("done")

    def _call(self, call: ToolCall) -> Iterator[str]:
        item = {
            "id": _new("fc"),
            "type": "function_call",
            "call_id": _new("call"),
            "name": call.name,
            "arguments": "",
            "status": "in_progress",
        }
        self._output.append(item)
        yield self._item("added")
        place = {"item_id": item["id"], "output_index": len(self._output) - 1}
        yield self._event("response.function_call_arguments.delta", **place, delta=call.arguments)
        item |= {"arguments": call.arguments, "status": "completed"}
        yield self._event(
            "response.function_call_arguments.done",
            **place,
            name=call.name,
            arguments=call.arguments,
        )
        yield self._item("done")

    def _place(self) -> dict[str, Any]:
        index = len(self._output) - 1
        return {"item_id": self._output[index]["id"], "output_index": index, "content_index": 0}

    def _item(self, what: str) -> str:
        index = len(self._output) - 1
        return self._event(
            f"response.output_item.{what}", output_index=index, item=self._output[index]
        )

    def _event(self, kind: str, **fields: Any) -> str:
        self._number += 1
        event = {"type": kind, "sequence_number": self._number, **fields}
        return f"event: {kind}\ndata: {json.dumps(event, ensure_ascii=False)}\n\n"

    def _conclude(self, result: GenerationResult) -> ResponseObject:
        reason = result.outputs[0].finish_reason
        whole = self._object("completed" if reason == "stop" else "incomplete")
        whole.usage = _usage(result)
        if reason == "length":
            whole.incomplete_details = {"reason": "max_output_tokens"}
        self._finished(whole, self._message())
        return whole

    def _message(self) -> ParsedMessage:
        """The answer as a message of the conversation."""
        texts = [item["content"][0]["text"] for item in self._output if item["type"] == "message"]
        calls = [
            {
                "type": "function",
                "id": item["call_id"],
                "function": {"name": item["name"], "arguments": json.loads(item["arguments"])},
            }
            for item in self._output
            if item["type"] == "function_call"
        ]
        return ParsedMessage("assistant", "".join(texts), {"tool_calls": calls} if calls else {})

    def _plain(self, status: str) -> dict[str, Any]:
        return _as_data(self._object(status))

    def _object(self, status: str) -> ResponseObject:
        body = self._body
        choice = body.tool_choice
        return ResponseObject(
            id=self.id,
            object="response",
            created_at=self._created,
            status=status,
            model=self._model,
            output=self._output,
            usage=None,
            error=None,
            incomplete_details=None,
            instructions=body.instructions,
            previous_response_id=body.previous_response_id,
            max_output_tokens=body.max_output_tokens,
            temperature=body.temperature,
            top_p=body.top_p,
            tools=[tool.model_dump() for tool in body.tools],
            tool_choice=choice
            if isinstance(choice, str) or choice is None
            else choice.model_dump(),
            parallel_tool_calls=body.parallel_tool_calls,
            store=body.store,
            metadata=body.metadata or {},
            text=_text(body),
            truncation="disabled",
        )


def _text(body: ResponseRequest) -> dict[str, Any]:
    if body.text is None or body.text.format is None:
        return {"format": {"type": "text"}}
    return {"format": body.text.format.model_dump(exclude_unset=True, by_alias=True)}


def _usage(result: GenerationResult) -> dict[str, Any]:
    usage = usage_of([result])
    return {
        "input_tokens": usage.prompt_tokens,
        "input_tokens_details": usage.prompt_tokens_details.model_dump(exclude_unset=True),
        "output_tokens": usage.completion_tokens,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": usage.total_tokens,
    }


def _as_data(answer: ResponseObject) -> dict[str, Any]:
    return answer.model_dump(exclude_unset=True)


def _new(prefix: str) -> str:
    return f"{prefix}_{uuid.uuid4().hex}"
