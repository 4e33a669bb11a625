# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""What goes over the wire is what was put in, field by field."""

from __future__ import annotations

import dataclasses
import inspect

import msgspec
import numpy as np
import pytest

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
from tensorrt_llm.executor.request import GenerationRequest
from tensorrt_llm.executor.result import GenerationUpdate, TokenLogprobs
from tensorrt_llm.inputs.data import (
    DeferredInputs,
    Digest,
    PlaceholderRun,
    ProcessedItem,
    ProcessedPrompt,
)
from tensorrt_llm.sampling_params import SamplingParams


def sent(message, incoming):
    return msgspec.msgpack.decode(msgspec.msgpack.encode(message), type=incoming)


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
        "n": 1,
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
    )
    prompt = ProcessedPrompt(np.arange(9, dtype=np.int32), (item,), "text", "vision")
    return GenerationRequest(prompt, SamplingParams(**sampling), "salt")


def test_every_field_of_a_request_travels() -> None:
    options = {
        field.name: other_than_default(field) for field in dataclasses.fields(SamplingParams)
    }
    given = ResolvedRequest(request(**options), 12, frozenset({1, 2}))
    message = sent(Submit.of(7, given), ToEngine)
    assert message.request_id == 7
    got = message.resolved()
    assert (got.max_new_tokens, got.stop_token_ids) == (12, frozenset({1, 2}))
    assert got.request.sampling_params == given.request.sampling_params
    for field in dataclasses.fields(GenerationRequest):
        if field.name != "prompt":
            assert getattr(got.request, field.name) == getattr(given.request, field.name)
    assert got.request.cache_salt == "salt"
    left, right = given.request.prompt, got.request.prompt
    np.testing.assert_array_equal(left.token_ids, right.token_ids)
    assert right.token_ids.dtype == np.int32
    assert right.text is None, "the engine has no use for it"
    for field in dataclasses.fields(ProcessedPrompt):
        if field.name not in ("token_ids", "items", "text", "positions"):
            assert getattr(left, field.name) == getattr(right, field.name), field.name
    for field in dataclasses.fields(ProcessedItem):
        assert getattr(left.items[0], field.name) == getattr(right.items[0], field.name), field.name


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


def test_every_field_of_an_update_travels() -> None:
    given = GenerationUpdate(
        token_ids=(5, 6),
        cached_tokens=3,
        logprobs=(TokenLogprobs(5, -0.5, ((5, -0.5), (7, float("-inf")))),),
        logits=None,
        finish_reason="stop",
        stop_reason=6,
        error=None,
    )
    turn = sent(Turn(1, 2, [Update.of(9, given)], [{"iter": 1}]), ToDoor)
    assert (turn.num_taken, turn.num_waiting, turn.stats) == (1, 2, [{"iter": 1}])
    assert turn.updates[0].request_id == 9
    got = turn.updates[0].update()
    for field in dataclasses.fields(GenerationUpdate):
        assert getattr(got, field.name) == getattr(given, field.name), field.name


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
    assert sent(EngineReady(info), ToDoor).model_info == info


@pytest.mark.parametrize(
    "wrong",
    [["Turn", 1], ["Turn", "1", 0, [], []], ["Nothing"], ["Turn", 0, 0, [], [], 1], {}, None],
)
def test_what_is_no_message_is_refused(wrong) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.msgpack.decode(msgspec.msgpack.encode(wrong), type=ToDoor)
