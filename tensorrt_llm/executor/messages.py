# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""What the door and the engine's process say to each other.

| door to engine | engine to door |
|---|---|
| ``StartEngine`` | ``EngineConnected``, then ``EngineReady`` or ``StartFailed`` |
| ``Submit``, ``Cancel`` | ``Turn``: all that a turn of the loop brought; also the heartbeat |
| ``ProvideItem``, ``FailItems`` | ``RequestItems`` |
| ``Call``, ``EncodeItems``, ``LoadAdapter``, ``UnloadAdapter`` | ``Return`` |
| ``StopEngine`` | ``EngineStopped`` |

Both ends are of one version, which the first message tells. Values are plain data, checked against
these types on arrival; tensors stand anywhere in a field of type ``Any`` (see ``ipc``). Nothing is
pickled.
"""

from __future__ import annotations

import dataclasses
from typing import Any, TypeAlias

import msgspec
import numpy as np

from tensorrt_llm import errors
from tensorrt_llm.errors import EngineError, RequestError, TrtllmError
from tensorrt_llm.executor.executor import ModelInfo, Question, ResolvedRequest
from tensorrt_llm.executor.request import AdapterIdentity, GenerationRequest
from tensorrt_llm.executor.result import FinishReason, GenerationUpdate, StageTimes, TokenLogprobs
from tensorrt_llm.executor.retention import KvCacheRetentionConfig
from tensorrt_llm.inputs.data import (
    DeferredInputs,
    Digest,
    PlaceholderRun,
    ProcessedItem,
    ProcessedPrompt,
)
from tensorrt_llm.sampling_params import SamplingParams

PROTOCOL = 7
"""Changes with every change of a message."""


class _Message(msgspec.Struct, tag=True, array_like=True, forbid_unknown_fields=True, frozen=True):
    """Base of all messages: an array that begins with the message's name."""


class _Part(msgspec.Struct, array_like=True, forbid_unknown_fields=True, frozen=True):
    """Base of the values inside messages."""


class Failure(_Part, frozen=True):
    """An exception of this package.

    Attributes:
        kind: Name of its class in ``errors``.
        message: Its text.
        state: Its attributes.
    """

    kind: str
    message: str
    state: dict[str, Any]

    @classmethod
    def of(cls, error: Exception, what: str) -> Failure:
        """Takes an exception apart; one that is not ours becomes an ``EngineError``.

        Args:
            error: The exception.
            what: What failed, for an error that is not ours.
        """
        if not isinstance(error, TrtllmError):
            error = EngineError(f"{what}: {type(error).__name__}: {error}")
        return cls(type(error).__name__, str(error.args[0] if error.args else ""), vars(error))

    def error(self) -> TrtllmError:
        """The exception again."""
        kind = getattr(errors, self.kind, None)
        if not (isinstance(kind, type) and issubclass(kind, TrtllmError)):
            return EngineError(f"{self.kind}: {self.message}")
        # Not through the constructor, whose arguments differ from class to class.
        error = kind.__new__(kind, self.message)
        error.args = (self.message,)
        vars(error).update(self.state)
        return error


class Item(_Part, frozen=True):
    """A ``ProcessedItem``.

    Attributes:
        inputs: Encoder inputs; None if they are still to be made.
    """

    modality: str
    identity: bytes | None
    runs: list[PlaceholderRun]
    inputs: Any
    encoder_kwargs: dict[str, Any]
    uuid: str | None
    part: str | None


class Update(_Part, frozen=True):
    """A ``GenerationUpdate`` of one request."""

    request_id: int
    token_ids: tuple[int, ...]
    cached_tokens: int
    logprobs: tuple[TokenLogprobs, ...] | None = None
    logits: Any = None
    finish_reason: FinishReason | None = None
    stop_reason: int | None = None
    failure: Failure | None = None
    index: int = 0
    prompt_logprobs: tuple[TokenLogprobs, ...] | None = None
    stages: StageTimes | None = None
    context_logits: Any = None

    @classmethod
    def of(cls, request_id: int, update: GenerationUpdate) -> Update:
        """Packs an update."""
        return cls(
            request_id,
            update.token_ids,
            update.cached_tokens,
            update.logprobs,
            update.logits,
            update.finish_reason,
            update.stop_reason,
            None if update.error is None else Failure.of(update.error, "the request failed"),
            update.index,
            update.prompt_logprobs,
            update.stages,
            update.context_logits,
        )

    def update(self) -> GenerationUpdate:
        """Unpacks it."""
        return GenerationUpdate(
            token_ids=self.token_ids,
            cached_tokens=self.cached_tokens,
            logprobs=self.logprobs,
            logits=self.logits,
            finish_reason=self.finish_reason,
            stop_reason=self.stop_reason,
            error=None if self.failure is None else self.failure.error(),
            index=self.index,
            prompt_logprobs=self.prompt_logprobs,
            stages=self.stages,
            context_logits=self.context_logits,
        )


class StartEngine(_Message, frozen=True):
    """Load this and begin.

    Attributes:
        args: ``LlmArgs`` as JSON.
        log_level: Number of the least severe level that is logged.
        tokenizer: The tokenizer as JSON, which guides answers; None without one.
    """

    args: bytes
    log_level: int
    tokenizer: str | None


class Submit(_Message, frozen=True):
    """A request.

    Attributes:
        request_id: Its number; its other answers have those behind.
        token_ids: int32, in the machine's byte order.
        positions: As in ``ProcessedPrompt``.
        position_delta: Likewise.
        adapter: As in ``GenerationRequest``.
        fields: All other fields of the ``GenerationRequest``, plain values by name.
    """

    request_id: int
    token_ids: bytes
    items: list[Item]
    adapter_mode: str
    positions: Any
    position_delta: int
    adapter: AdapterIdentity | None
    sampling_params: SamplingParams
    fields: dict[str, Any]
    max_new_tokens: int
    stop_token_ids: frozenset[int]
    bad_words: tuple[tuple[int, ...], ...]
    grammar: str | None
    retention: KvCacheRetentionConfig | None = None

    @classmethod
    def of(cls, request_id: int, resolved: ResolvedRequest) -> Submit:
        """Packs a request. Inputs that are still to be made stay here.

        Raises:
            RequestError: If a sampling option has a wrong type or is out of range.
        """
        request = resolved.request
        try:
            # As the wire does it, so that nothing goes wrong there.
            sampling = msgspec.msgpack.decode(
                msgspec.msgpack.encode(request.sampling_params), type=SamplingParams, strict=False
            )
        except (msgspec.ValidationError, TypeError, OverflowError) as error:
            raise RequestError(str(error), part="sampling_params") from error
        return cls(
            request_id=request_id,
            token_ids=np.ascontiguousarray(request.prompt.token_ids, np.int32).tobytes(),
            items=[_pack_item(item) for item in request.prompt.items],
            adapter_mode=request.prompt.adapter_mode,
            positions=request.prompt.positions,
            position_delta=request.prompt.position_delta,
            adapter=request.adapter,
            sampling_params=sampling,
            fields={
                field.name: getattr(request, field.name)
                for field in dataclasses.fields(request)
                if field.name not in ("prompt", "sampling_params", "retention", "adapter")
            },
            max_new_tokens=resolved.max_new_tokens,
            stop_token_ids=resolved.stop_token_ids,
            retention=request.retention,
            bad_words=resolved.bad_words,
            grammar=resolved.grammar,
        )

    def resolved(self) -> ResolvedRequest:
        """Unpacks it."""
        prompt = ProcessedPrompt(
            token_ids=np.frombuffer(self.token_ids, np.int32),
            items=tuple(_unpack_item(item) for item in self.items),
            adapter_mode=self.adapter_mode,
            positions=None if self.positions is None else self.positions.numpy(),
            position_delta=self.position_delta,
        )
        request = GenerationRequest(
            prompt,
            self.sampling_params,
            retention=self.retention,
            adapter=self.adapter,
            **self.fields,
        )
        return ResolvedRequest(
            request, self.max_new_tokens, self.stop_token_ids, self.bad_words, self.grammar
        )


class Cancel(_Message, frozen=True):
    """Give a request up."""

    request_id: int


class ProvideItem(_Message, frozen=True):
    """Encoder inputs that were asked for.

    Attributes:
        inputs: Tensors and plain values by name.
    """

    request_id: int
    index: int
    inputs: dict[str, Any]


class FailItems(_Message, frozen=True):
    """Items that were asked for cannot be prepared."""

    request_id: int
    failure: Failure


class Call(_Message, frozen=True):
    """A question that is answered between two steps.

    Attributes:
        call_id: Its number.
        name: The loop's method that answers, without ``_now``.
        arguments: What that takes, plain values by name.
        request: The request that it is about; it is not run.
    """

    call_id: int
    name: Question
    arguments: dict[str, Any] = {}
    request: Submit | None = None

    @classmethod
    def of(
        cls,
        call_id: int,
        name: Question,
        arguments: dict[str, Any],
        request: GenerationRequest | None,
    ) -> Call:
        """Packs a question."""
        about = None
        if request is not None:
            about = Submit.of(0, ResolvedRequest(request, 1, frozenset()))
        return cls(call_id, name, arguments, about)

    def all_arguments(self) -> dict[str, Any]:
        """What the loop's method takes."""
        if self.request is None:
            return self.arguments
        return {"request": self.request.resolved().request, **self.arguments}


class EncodeItems(_Message, frozen=True):
    """Encode a request's items, and run nothing else of it.

    Attributes:
        call_id: Its number; the answer is a list of tensors, one an item.
        request: The request, with all encoder inputs.
    """

    call_id: int
    request: Submit

    @classmethod
    def of(cls, call_id: int, request: GenerationRequest) -> EncodeItems:
        """Packs the task."""
        return cls(call_id, Submit.of(0, ResolvedRequest(request, 1, frozenset())))


class LoadAdapter(_Message, frozen=True):
    """Read an adapter's folder; the answer is its identity, as a pair of numbers."""

    call_id: int
    path: str


class UnloadAdapter(_Message, frozen=True):
    """Take no more requests with an adapter."""

    call_id: int
    adapter: AdapterIdentity


class StopEngine(_Message, frozen=True):
    """End after the present step; what runs fails."""


class EngineConnected(_Message, frozen=True):
    """Both ends of the connection are taken.

    Attributes:
        protocol: ``PROTOCOL``.
    """

    protocol: int


class EngineReady(_Message, frozen=True):
    """The model is loaded and requests are taken."""

    model_info: ModelInfo


class StartFailed(_Message, frozen=True):
    """The model cannot be loaded; the process ends."""

    failure: Failure


class Turn(_Message, frozen=True):
    """What a turn of the loop brought; empty ones say that it turns.

    Attributes:
        num_taken: ``Submit`` messages received since start.
        num_waiting: Of those, how many are not admitted yet.
        updates: New tokens, ends and errors.
        stats: Records of iterations.
    """

    num_taken: int
    num_waiting: int
    updates: list[Update]
    stats: list[dict[str, Any]]


class Alive(_Message, frozen=True):
    """The process runs, whatever its loop does: a step may take longer than silence is borne."""


class RequestItems(_Message, frozen=True):
    """Prepare these items of a request, and send their inputs."""

    request_id: int
    indices: list[int]


class Return(_Message, frozen=True):
    """The answer to a question: a value, or why there is none."""

    call_id: int
    value: Any = None
    failure: Failure | None = None


class EngineStopped(_Message, frozen=True):
    """Nothing follows."""


ToEngine: TypeAlias = (
    StartEngine
    | Submit
    | Cancel
    | ProvideItem
    | FailItems
    | Call
    | EncodeItems
    | LoadAdapter
    | UnloadAdapter
    | StopEngine
)
ToDoor: TypeAlias = (
    EngineConnected
    | EngineReady
    | StartFailed
    | Turn
    | Alive
    | RequestItems
    | Return
    | EngineStopped
)


def _pack_item(item: ProcessedItem) -> Item:
    return Item(
        modality=item.modality,
        identity=item.identity,
        runs=list(item.runs),
        inputs=dict(item.encoder_inputs) if item.inputs_at_hand else None,
        encoder_kwargs=dict(item.encoder_kwargs),
        uuid=item.uuid,
        part=item.part,
    )


def _unpack_item(item: Item) -> ProcessedItem:
    return ProcessedItem(
        modality=item.modality,
        identity=None if item.identity is None else Digest(item.identity),
        runs=tuple(item.runs),
        encoder_inputs=DeferredInputs(_not_here) if item.inputs is None else item.inputs,
        encoder_kwargs=item.encoder_kwargs,
        uuid=item.uuid,
        part=item.part,
    )


def _not_here() -> dict[str, Any]:
    raise AssertionError("encoder inputs that only the door can make")
