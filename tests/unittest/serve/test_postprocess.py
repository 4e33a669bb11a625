# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Answers in OpenAI's shapes, from results that the test drives itself."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import AutoTokenizer

from tensorrt_llm.executor.request import GenerationRequest
from tensorrt_llm.executor.result import GenerationResult, GenerationUpdate, TokenLogprobs
from tensorrt_llm.inputs.data import PlaceholderRun, ProcessedItem, ProcessedPrompt
from tensorrt_llm.sampling_params import SamplingParams
from tensorrt_llm.serve.postprocess import ChatWriter, CompletionWriter, usage_of

PROMPT = ProcessedPrompt(
    np.arange(10, dtype=np.int32),
    items=(
        ProcessedItem("image", None, (PlaceholderRun(1, 2), PlaceholderRun(4, 1)), {}),
        ProcessedItem("audio", None, (PlaceholderRun(6, 2),), {"x": torch.zeros(1)}),
        ProcessedItem("image", None, (PlaceholderRun(8, 1),), {}),
    ),
)


@pytest.fixture(scope="module", name="tokenizer")
def tiny_tokenizer(llama_checkpoint: Path):
    return AutoTokenizer.from_pretrained(llama_checkpoint)


def make(tokenizer, prompt: ProcessedPrompt = PROMPT, **sampling) -> GenerationResult:
    request = GenerationRequest(prompt, SamplingParams(**sampling))
    return GenerationResult(1, request, tokenizer, cancel=lambda number: None)


def logprobs(tokens: tuple[int, ...]) -> tuple[TokenLogprobs, ...]:
    return tuple(TokenLogprobs(t, -0.5, ((t, -0.5), (t + 1, -1.5)), 1) for t in tokens)


def writer(kind, tokenizer, include_usage=False, continuous_usage=False):
    return kind("m", tokenizer, include_usage=include_usage, continuous_usage=continuous_usage)


def as_dict(answer) -> dict:
    return json.loads(answer.to_json())


def test_usage_counts_rows_by_modality_and_sums_results(tokenizer) -> None:
    first, second = make(tokenizer), make(tokenizer, ProcessedPrompt(np.zeros(3, np.int32)))
    for result, cached in ((first, 8), (second, 0)):
        result.push(GenerationUpdate((300, 301), cached, finish_reason="length"))
        result.result()
    assert as_dict(usage_of([first])) == {
        "prompt_tokens": 10,
        "completion_tokens": 2,
        "total_tokens": 12,
        "prompt_tokens_details": {"cached_tokens": 8, "image_tokens": 4, "audio_tokens": 2},
    }
    assert as_dict(usage_of([second]))["prompt_tokens_details"] == {"cached_tokens": 0}
    both = usage_of([first, second])
    assert (both.prompt_tokens, both.completion_tokens, both.total_tokens) == (13, 4, 17)
    assert both.prompt_tokens_details.cached_tokens == 8


def test_a_whole_chat_answer(tokenizer) -> None:
    result = make(tokenizer, logprobs=2)
    tokens = (300, 400)
    result.push(
        GenerationUpdate(tokens, 4, logprobs(tokens), finish_reason="stop", stop_reason=400)
    )
    answer = as_dict(writer(ChatWriter, tokenizer).response([result.result()]))
    assert answer["object"] == "chat.completion" and answer["id"].startswith("chatcmpl-")
    (choice,) = answer["choices"]
    assert choice["message"] == {"role": "assistant", "content": tokenizer.decode(tokens)}
    assert (choice["finish_reason"], choice["stop_reason"]) == ("stop", 400)
    entries = choice["logprobs"]["content"]
    assert [entry["token"] for entry in entries] == [tokenizer.decode([t]) for t in tokens]
    for entry in entries:
        assert bytes(entry["bytes"]).decode() == entry["token"]
        assert [top["logprob"] for top in entry["top_logprobs"]] == [-0.5, -1.5]


@pytest.mark.parametrize("kind", [ChatWriter, CompletionWriter])
def test_the_chunks_add_up_to_the_whole(tokenizer, kind) -> None:
    tokens = tuple(range(300, 312))
    result = make(tokenizer, logprobs=1)
    whole = make(tokenizer, logprobs=1)
    whole.push(GenerationUpdate(tokens, 0, logprobs(tokens), finish_reason="length"))
    expected = as_dict(writer(kind, tokenizer).response([whole.result()]))["choices"][0]
    streaming = writer(kind, tokenizer, include_usage=True)
    chunks = []
    for index, token in enumerate(tokens):
        last = index == len(tokens) - 1
        result.push(
            GenerationUpdate(
                (token,), 0, logprobs((token,)), finish_reason="length" if last else None
            )
        )
    for index, _ in enumerate(result):
        if index == 0:
            chunks += streaming.opening(result)
        chunks += streaming.update(result)
    chunks.append(streaming.closing(result))
    bodies = [as_dict(chunk) for chunk in chunks if chunk is not None]
    assert len({body["id"] for body in bodies}) == 1
    assert bodies[-1]["choices"] == [] and bodies[-1]["usage"]["completion_tokens"] == 12
    choices = [body["choices"][0] for body in bodies[:-1]]
    assert [c["finish_reason"] for c in choices[:-1]] == [None] * (len(choices) - 1)
    assert choices[-1]["finish_reason"] == "length"
    if kind is ChatWriter:
        assert choices[0]["delta"] == {"role": "assistant", "content": ""}
        text = "".join(c["delta"].get("content", "") for c in choices)
        entries = [e for c in choices[1:] for e in c["logprobs"]["content"]]
        assert text == expected["message"]["content"]
        assert entries == expected["logprobs"]["content"]
    else:
        assert "".join(c["text"] for c in choices) == expected["text"]
        for name in ("tokens", "token_logprobs", "top_logprobs", "text_offset"):
            streamed = [v for c in choices for v in c["logprobs"][name]]
            assert streamed == expected["logprobs"][name]


def test_usage_on_every_chunk_only_if_asked(tokenizer) -> None:
    for continuous in (False, True):
        result = make(tokenizer)
        result.push(GenerationUpdate((300,), 7, finish_reason="length"))
        streaming = writer(ChatWriter, tokenizer, include_usage=True, continuous_usage=continuous)
        result.result()
        for chunk in (*streaming.opening(result), *streaming.update(result)):
            body = as_dict(chunk)
            assert ("usage" in body) is continuous
            if continuous:
                assert body["usage"]["prompt_tokens_details"]["cached_tokens"] == 7


def test_chunks_of_several_answers_name_their_answer_and_end_once(tokenizer) -> None:
    for kind in (ChatWriter, CompletionWriter):
        result = make(tokenizer, n=2, logprobs=0)
        streaming = writer(kind, tokenizer, include_usage=True)
        plan = [
            *((0, 300, None), (1, 400, None), (0, 301, "stop"), (1, 401, None)),
            *((1, 402, None), (1, 403, "length")),
        ]
        for index, token, reason in plan:
            result.push(
                GenerationUpdate((token,), 9, logprobs((token,)), index=index, finish_reason=reason)
            )
            next(iter(result))
            if token == 300:
                chunks = streaming.opening(result)
            chunks += streaming.update(result)
        assert result.finished
        bodies = [as_dict(chunk)["choices"] for chunk in chunks]
        assert all(len(choices) == 1 for choices in bodies)
        for index, reason in ((0, "stop"), (1, "length")):
            mine = [choice for (choice,) in bodies if choice["index"] == index]
            assert [c["finish_reason"] for c in mine if c["finish_reason"]] == [reason]
            text = "".join(
                c["delta"].get("content", "") if "delta" in c else c["text"] for c in mine
            )
            assert text == result.outputs[index].text
            if kind is CompletionWriter:
                assert mine[0]["logprobs"]["text_offset"] == [0]
        usage = as_dict(streaming.closing(result))["usage"]
        assert (usage["prompt_tokens"], usage["completion_tokens"]) == (10, 6)
        whole = as_dict(writer(kind, tokenizer).response([result]))
        assert [choice["index"] for choice in whole["choices"]] == [0, 1]


def test_a_token_that_is_half_a_character_has_no_bytes(tokenizer) -> None:
    pieces = [
        token
        for token in tokenizer("\N{SNOWMAN}", add_special_tokens=False)["input_ids"]
        if "\ufffd" in tokenizer.decode([token])
    ]
    assert pieces, "the tokenizer keeps this character whole"
    result = make(tokenizer, logprobs=0)
    entry = TokenLogprobs(pieces[0], -0.5, (), 1)
    result.push(GenerationUpdate((pieces[0],), 0, (entry,), finish_reason="length"))
    answer = as_dict(writer(ChatWriter, tokenizer).response([result.result()]))
    assert answer["choices"][0]["logprobs"]["content"][0]["bytes"] is None


def test_offsets_of_several_prompts_start_anew(tokenizer) -> None:
    results = [make(tokenizer, logprobs=0) for _ in range(2)]
    for result in results:
        tokens = (300, 301)
        result.push(GenerationUpdate(tokens, 0, logprobs(tokens), finish_reason="length"))
        result.result()
    answer = as_dict(writer(CompletionWriter, tokenizer).response(results))
    first = len(tokenizer.decode([300]))
    assert [c["index"] for c in answer["choices"]] == [0, 1]
    assert [c["logprobs"]["text_offset"] for c in answer["choices"]] == [[0, first]] * 2


@pytest.mark.parametrize("name", ["tiny", 'a "index":0 "" \\ ü'])
def test_chunks_written_by_hand_are_those_of_the_schema(tokenizer, name: str) -> None:
    writer = ChatWriter(name, tokenizer, include_usage=False, continuous_usage=False)
    result = make(tokenizer, n=2, max_tokens=9)
    texts = ["plain", ' "quoted" \\ \n\t', "\u2028 ü 語 🙂 \x00\x7f", "\ufffd"]
    for text in texts:
        for output in result.outputs:
            output.text_diff = text
        quick = [json.loads(chunk.to_json()) for chunk in writer.update(result)]
        choices = [writer._added(output) for output in result.outputs]
        slow = [json.loads(writer._chunk([choice], {}).to_json()) for choice in choices]
        assert quick == slow and [chunk["choices"][0]["index"] for chunk in quick] == [0, 1]
        assert [list(chunk) for chunk in quick] == [list(chunk) for chunk in slow]
