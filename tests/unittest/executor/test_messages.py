# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""What goes over the wire is what was put in, field by field."""

from __future__ import annotations

import dataclasses
import inspect
from typing import Any

import msgspec
import numpy as np
import pytest
import torch
from support.wire import connected, receive

from tensorrt_llm import errors
from tensorrt_llm.errors import (
    EmbeddingMismatchError,
    EngineError,
    LimitExceededError,
    RequestError,
    TrtllmError,
    UnsupportedModalityError,
)
from tensorrt_llm.executor.executor import ModelInfo, ResolvedRequest
from tensorrt_llm.executor.messages import (
    EngineReady,
    Failure,
    Submit,
    ToDoor,
    ToEngine,
    Turn,
    Update,
)
from tensorrt_llm.executor.request import AdapterIdentity, GenerationRequest
from tensorrt_llm.executor.result import GenerationUpdate, StageTimes, TokenLogprobs
from tensorrt_llm.executor.retention import KvCacheRetentionConfig, TokenRangeRetentionConfig
from tensorrt_llm.inputs.data import (
    DeferredContent,
    DeferredInputs,
    Digest,
    PlaceholderRun,
    ProcessedItem,
    ProcessedPrompt,
)
from tensorrt_llm.sampling_params import GuidedDecodingParams, SamplingParams


def sent(message, incoming):
    """What arrives of a message at the engine, or at the door, through a real connection."""
    with connected() as (door, engine):
        source, target = (door, engine) if incoming is ToEngine else (engine, door)
        source.send(message)
        return receive(target)


def other_than_default(field: dataclasses.Field):
    """A value of a sampling option that is not its default."""
    values = {
        "max_tokens": 77,
        "temperature": 0.25,
        "top_k": 9,
        "top_p": 0.5,
        "seed": 2**64 - 1,
        "stop": ["a", "b"],
        "stop_token_ids": [3, 4],
        "logprobs": 5,
        "min_p": 0.125,
        "repetition_penalty": 1.5,
        "presence_penalty": -0.5,
        "frequency_penalty": 0.5,
        "logit_bias": {3: -1.5, 70000: 2.0},
        "bad": ["c", "d"],
        "bad_token_ids": [9],
        "min_tokens": 2,
        "prompt_logprobs": 1,
        "n": 2,
        "best_of": 3,
        "guided_decoding": GuidedDecodingParams(json={"type": "array", "items": {"a": [1]}}),
    }
    return values.get(field.name, not field.default)


def request(**sampling) -> GenerationRequest:
    item = ProcessedItem(
        modality="image",
        identity=Digest(bytes(range(32))),
        runs=(PlaceholderRun(1, 2), PlaceholderRun(5, 1)),
        encoder_inputs={"plain": [1, 2]},
        encoder_kwargs={"mode": "speech"},
        uuid="mine",
        part="messages[0]",
        deferred=DeferredContent(lambda: "pixels"),
        grid=(1, 3),
    )
    positions = np.arange(27, dtype=np.int32).reshape(3, 9)
    prompt = ProcessedPrompt(np.arange(9, dtype=np.int32), (item,), "text", "vision", positions, 3)
    adapter = AdapterIdentity(-(2**63), 2**63 - 1)
    return GenerationRequest(
        prompt, SamplingParams(**sampling), "salt", 0.25, 30.0, RETENTION, adapter
    )


RETENTION = KvCacheRetentionConfig(
    [TokenRangeRetentionConfig(1, 5, 90, 1000), TokenRangeRetentionConfig(5, None, 10, 1)], 40, 7
)
# Fields that stay behind, and why that is right.
NOT_SENT = {
    (ProcessedPrompt, "text"): "the engine has no use for it",
    (ProcessedItem, "deferred"): "only the door decodes",
    (ProcessedItem, "grid"): "only who asks the door for rows is told",
}
# Fields of the examples at their defaults, because there is no other value beside the others'.
ONE_VALUE = {(GuidedDecodingParams, name) for name in ("regex", "grammar", "json_object", "choice")}
# A search goes with few other options; it has a test of its own.
ONE_VALUE |= {
    (SamplingParams, name) for name in ("use_beam_search", "length_penalty", "early_stopping")
}


def has_fields(value: Any) -> bool:
    """Whether a value is a dataclass or a struct."""
    return dataclasses.is_dataclass(value) or isinstance(value, msgspec.Struct)


def fields_of(value: Any) -> list[dataclasses.Field]:
    """Name and default of each field; those of a struct in a dataclass's words."""
    if dataclasses.is_dataclass(value):
        return list(dataclasses.fields(value))
    # The same names stand for the same things: only what says that there is none differs.
    given = [
        (one.name, Any, dataclasses.field(default=one.default))
        for one in msgspec.structs.fields(value)
    ]
    return list(dataclasses.fields(dataclasses.make_dataclass("Fields", given)))


def assert_filled(value: Any) -> None:
    """An example says something in each of its fields, so that one left behind is missed."""
    for field in fields_of(value):
        here = getattr(value, field.name)
        if (type(value), field.name) not in ONE_VALUE:
            default = field.default
            if field.default_factory is not dataclasses.MISSING:
                default = field.default_factory()
            same = type(here) is type(default) and np.array_equal(here, default)
            assert not same, f"give {type(value).__name__}.{field.name} a value"
        for part in here if isinstance(here, (list, tuple)) else (here,):
            if has_fields(part):
                assert_filled(part)


def assert_same(given: Any, got: Any, where: str) -> None:
    """Equal in every field, whichever fields there are."""
    assert type(given) is type(got), where
    if has_fields(given):
        for field in fields_of(given):
            if (type(given), field.name) not in NOT_SENT:
                values = getattr(given, field.name), getattr(got, field.name)
                assert_same(*values, f"{where}.{field.name}")
    elif isinstance(given, (list, tuple)):
        assert len(given) == len(got), where
        for index, pair in enumerate(zip(given, got, strict=True)):
            assert_same(*pair, f"{where}[{index}]")
    elif isinstance(given, (np.ndarray, torch.Tensor)):
        assert given.dtype == got.dtype, where
        np.testing.assert_array_equal(given, got, where)
    elif isinstance(given, Exception):
        assert (str(given), vars(given)) == (str(got), vars(got)), where
    else:
        assert given == got, where


def test_every_field_of_a_request_travels() -> None:
    options = {
        field.name: other_than_default(field)
        for field in dataclasses.fields(SamplingParams)
        if (SamplingParams, field.name) not in ONE_VALUE
    }
    given = ResolvedRequest(
        request(**options), 12, frozenset({1, 2}), ((3,), (4, 5)), "start: /a+/"
    )
    assert_filled(given)
    message = sent(Submit.of(7, given), ToEngine)
    assert message.request_id == 7
    got = message.resolved()
    assert_same(given, got, "request")
    assert got.request.prompt.position_delta == given.request.prompt.position_delta != 0


@pytest.mark.parametrize("early", [True, "never"])
def test_a_beam_search_travels(early) -> None:
    options = {"use_beam_search": True, "best_of": 3, "length_penalty": 0.5}
    asked = request(**options, early_stopping=early)
    given = ResolvedRequest(asked, 1, frozenset())
    assert_same(given, sent(Submit.of(1, given), ToEngine).resolved(), "request")


def test_positions_that_are_indices_need_no_array() -> None:
    whole = request()
    prompt = dataclasses.replace(whole.prompt, positions=None)
    given = ResolvedRequest(dataclasses.replace(whole, prompt=prompt), 1, frozenset())
    assert sent(Submit.of(1, given), ToEngine).resolved().request.prompt.positions is None


def test_inputs_that_are_still_to_be_made_stay_with_the_door() -> None:
    made = []

    def load():
        made.append(1)
        return {"a": 1}

    whole = request()
    item = dataclasses.replace(whole.prompt.items[0], encoder_inputs=DeferredInputs(load))
    prompt = dataclasses.replace(whole.prompt, items=(item,))
    given = ResolvedRequest(dataclasses.replace(whole, prompt=prompt), 1, frozenset())
    for at_hand in (False, True):
        got = sent(Submit.of(1, given), ToEngine).resolved().request.prompt.items[0]
        assert (got.inputs_at_hand, len(made)) == (at_hand, int(at_hand))
        assert dict(item.encoder_inputs) == {"a": 1}
    assert dict(got.encoder_inputs) == {"a": 1}


@pytest.mark.parametrize(
    ("option", "value"), [("temperature", "hot"), ("stop_token_ids", ["x"]), ("seed", 1.5)]
)
def test_an_option_of_a_wrong_type_is_refused_by_the_door(option: str, value) -> None:
    sampling = SamplingParams()
    object.__setattr__(sampling, option, value)
    wrong = dataclasses.replace(request(), sampling_params=sampling)
    with pytest.raises(RequestError, match=option):
        Submit.of(1, ResolvedRequest(wrong, 1, frozenset()))


@pytest.mark.parametrize(
    "option", [{"max_tokens": 10**20}, {"top_k": 2**64}, {"stop_token_ids": [2**64]}]
)
def test_a_number_that_the_wire_cannot_hold_is_refused_by_the_door(option: dict) -> None:
    large = dataclasses.replace(request(), sampling_params=SamplingParams(**option))
    with pytest.raises(RequestError, match=r"2\*\*64") as caught:
        Submit.of(1, ResolvedRequest(large, 1, frozenset()))
    assert caught.value.part == "sampling_params"


def test_every_field_of_an_update_travels() -> None:
    given = GenerationUpdate(
        token_ids=(5, 6),
        cached_tokens=3,
        logprobs=(TokenLogprobs(5, -0.5, ((5, -0.5), (7, float("-inf"))), 1),),
        logits=torch.arange(6.0).reshape(2, 3),
        finish_reason="stop",
        stop_reason=6,
        error=EngineError("there is an end or an error, but either travels"),
        index=2,
        prompt_logprobs=(TokenLogprobs(6, -1.5, (), 9), TokenLogprobs(7, -2.5, ((1, -0.25),), 2)),
        stages=StageTimes(1.5, (2.5, 3.5)),
        context_logits=torch.arange(12.0).reshape(4, 3),
    )
    assert_filled(given)
    turn = sent(Turn(1, 2, [Update.of(9, given)], [{"iter": 1}]), ToDoor)
    assert (turn.num_taken, turn.num_waiting, turn.stats) == (1, 2, [{"iter": 1}])
    assert turn.updates[0].request_id == 9
    assert_same(given, turn.updates[0].update(), "update")


def example(kind: type[TrtllmError]) -> TrtllmError:
    special = {
        LimitExceededError: lambda: LimitExceededError("max", 5, 4, "tokens", part="prompt"),
        UnsupportedModalityError: lambda: UnsupportedModalityError("video", ("image",)),
        EmbeddingMismatchError: lambda: EmbeddingMismatchError("image", 3, 4),
    }
    if kind in special:
        return special[kind]()
    try:
        return kind("what happened")
    except ValueError:  # one that is made from a number
        return kind(1.5)


@pytest.mark.parametrize(
    "kind",
    [
        kind
        for _, kind in inspect.getmembers(errors, inspect.isclass)
        if issubclass(kind, TrtllmError)
    ],
)
def test_every_error_arrives_as_what_it_was(kind: type[TrtllmError]) -> None:
    given = example(kind)
    update = Update.of(1, GenerationUpdate(error=given))
    got = sent(Turn(0, 0, [update], []), ToDoor).updates[0].update().error
    assert type(got) is kind
    assert str(got) == str(given)
    for name, value in vars(given).items():
        assert getattr(got, name) == (list(value) if isinstance(value, tuple) else value)


def test_an_error_that_is_not_ours_becomes_one_of_the_engine() -> None:
    error = Failure.of(ZeroDivisionError("oh"), "the step failed").error()
    assert type(error) is EngineError
    assert str(error) == "the step failed: ZeroDivisionError: oh"
    # No name on the wire makes anything but an error of this package.
    assert type(Failure("SystemExit", "x", {}).error()) is EngineError
    assert type(Failure("annotations", "x", {}).error()) is EngineError


def test_the_facts_on_a_model_travel() -> None:
    info = ModelInfo(
        "llama", ("image",), frozenset({"image"}), 10, 20, "float32", "cpu", 3, 96, frozenset({1})
    )
    assert_same(info, sent(EngineReady(info), ToDoor).model_info, "info")


@pytest.mark.parametrize(
    "wrong",
    [["Turn", 1], ["Turn", "1", 0, [], []], ["Nothing"], ["Turn", 0, 0, [], [], 1], {}, None],
)
def test_what_is_no_message_is_refused(wrong) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.msgpack.decode(msgspec.msgpack.encode(wrong), type=ToDoor)
