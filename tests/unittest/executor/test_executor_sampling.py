# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Several answers to a prompt, log-probabilities of prompts, and options that need a tokenizer."""

from __future__ import annotations

import dataclasses
import json
import re

import numpy as np
import pytest
import torch
from support.engine import assert_idle, held, running, start, text_prompt, total, wait_until
from support.media import picture
from support.prompts import PromptMaker
from support.reference import ReferenceModel, assert_same_logits

from tensorrt_llm.errors import DeadlineExceededError, RequestError
from tensorrt_llm.sampling_params import GuidedDecodingParams

WILD = {"temperature": 1.2, "top_p": 0.95}


def prompt(seed: int, length: int):
    return text_prompt(np.random.default_rng(seed).integers(5, 1200, length))


def answers(result) -> list[list[int]]:
    return [output.token_ids for output in result.outputs]


@pytest.fixture(scope="module")
def apart(llama_checkpoint) -> list[list[int]]:
    """What five requests for one answer get, without reuse, with five seeds in a row."""
    with running(llama_checkpoint, block_reuse=False) as executor:
        results = [start(executor, prompt(1, 77), 75, seed=10 + n, **WILD) for n in range(5)]
        found = [result.result().outputs[0].token_ids for result in results]
    assert len({tuple(tokens) for tokens in found}) == 5
    return found


@pytest.mark.parametrize("reuse", [True, False])
def test_n_answers_are_those_of_n_requests_and_cost_one_prompt(
    llama_checkpoint, apart, reuse
) -> None:
    with running(llama_checkpoint, block_reuse=reuse) as executor:
        for cached in (0, 76 * reuse):
            result = start(executor, prompt(1, 77), 75, seed=10, n=5, **WILD)
            pieces: list[list[int]] = [[] for _ in range(5)]
            for update in result:
                for output in update.outputs:
                    pieces[output.index] += output.token_ids_diff
            assert pieces == answers(result) == apart
            assert result.cached_tokens == cached
            assert {output.finish_reason for output in result.outputs} == {"length"}
            tokens = total(executor.iteration_stats(), "numCtxTokens")
            assert tokens == 77 - cached
        assert_idle(executor)


@pytest.mark.parametrize(
    "options",
    [
        {"kv_max_tokens": 256},
        {"max_batch_size": 2},
        {"kv_max_tokens": 256, "block_reuse": False},
        {
            "kv_max_tokens": 224,
            "scheduler_config": {"capacity_scheduler_policy": "MAX_UTILIZATION"},
        },
    ],
    ids=["pool", "batch", "pool-no-reuse", "pauses"],
)
def test_answers_for_which_there_is_no_room_wait(llama_checkpoint, apart, options) -> None:
    with running(llama_checkpoint, **options) as executor:
        with held(executor):
            result = start(executor, prompt(1, 77), 75, seed=10, n=5, **WILD)
            beside = start(executor, prompt(1, 77), 75, seed=11, **WILD)
        assert answers(result.result(timeout=60)) == apart
        assert answers(beside.result(timeout=60)) == apart[1:2]
        assert result.cached_tokens == 0, "the first answer found nothing; others may have"
        iterations = executor.iteration_stats()
        waited = max(iteration["numQueuedRequests"] for iteration in iterations)
        paused = total(iterations, "numPausedRequests")
        assert paused > 0 if "scheduler_config" in options else waited > 0, "no pressure"
        assert_idle(executor)


def test_answers_about_a_picture(phi4mm_checkpoint) -> None:
    make = PromptMaker(phi4mm_checkpoint)
    asked = make("<|user|><|image|>?<|end|><|assistant|>", picture(3))
    anonymous = dataclasses.replace(
        asked, items=tuple(dataclasses.replace(item, identity=None) for item in asked.items)
    )
    with running(phi4mm_checkpoint, max_batch_size=3) as executor:
        alone = [start(executor, asked, 12, seed=n, **WILD).result() for n in range(4)]
        for one in (asked, anonymous):
            # The last has to wait, and without an identity it computes all of it again.
            result = start(executor, one, 12, seed=0, n=4, **WILD).result(timeout=60)
            assert answers(result) == [output.token_ids for r in alone for output in r.outputs]
        assert_idle(executor)


def test_a_stop_text_ends_the_answer_that_has_it(llama_checkpoint) -> None:
    with running(llama_checkpoint) as executor:
        whole = start(executor, prompt(2, 40), 40, seed=3, n=3, **WILD).result()
        texts = [output.text for output in whole.outputs]
        stop = next(
            texts[1][at : at + 3]
            for at in range(5, len(texts[1]) - 3)
            if not any(texts[1][at : at + 3] in text for text in (texts[0], texts[2]))
        )
        result = start(executor, prompt(2, 40), 40, seed=3, n=3, stop=stop, **WILD).result()
        assert [output.finish_reason for output in result.outputs] == ["length", "stop", "length"]
        assert result.outputs[1].text == texts[1][: texts[1].index(stop)]
        assert [answers(result)[n] for n in (0, 2)] == [answers(whole)[n] for n in (0, 2)]
        at_least = result.outputs[1].length + 1
        result = start(
            executor, prompt(2, 40), 40, seed=3, n=3, stop=stop, min_tokens=at_least, **WILD
        ).result()
        assert result.outputs[1].length >= at_least
        wait_until(lambda: executor.snapshot()["numActiveRequests"] == 0, "nothing runs")
        assert_idle(executor)


def test_the_best_answers_are_the_likeliest(llama_checkpoint) -> None:
    with running(llama_checkpoint) as executor:
        options = {"seed": 5, "logprobs": 0, **WILD}
        every = start(executor, prompt(3, 20), 8, n=6, **options).result().outputs
        sums = [sum(entry.logprob for entry in output.logprobs) for output in every]
        assert [output.cumulative_logprob for output in every] == pytest.approx(sums)
        result = start(executor, prompt(3, 20), 8, n=2, best_of=6, **options).result()
        best = sorted(range(6), key=lambda index: -sums[index])[:2]
        assert answers(result) == [every[index].token_ids for index in best]
        assert [output.index for output in result.outputs] == [0, 1]
        options.pop("logprobs")
        result = start(executor, prompt(3, 20), 8, n=2, best_of=6, **options).result()
        assert answers(result) == [every[index].token_ids for index in best]
        assert result.outputs[0].logprobs is None, "they were not asked for"


@pytest.mark.parametrize("own_process", [False, True])
def test_giving_up_gives_all_answers_up(llama_checkpoint, engine_host, own_process) -> None:
    host = engine_host if own_process else None
    with running(llama_checkpoint, host=host, max_batch_size=3, max_num_tokens=32) as executor:
        running_on = start(executor, prompt(4, 40), 200, n=5, **WILD)
        next(iter(running_on))
        before = start(executor, prompt(5, 400), 200, n=3, **WILD)
        for result in (running_on, before):
            result.abort()
        for result in (running_on, before):
            result.result(timeout=60)
            assert {output.finish_reason for output in result.outputs} == {"cancelled"}
        late = start(executor, prompt(6, 400), 400, n=3, timeout=0.05, **WILD)
        with pytest.raises(DeadlineExceededError):
            late.result(timeout=60)
        assert answers(start(executor, prompt(4, 40), 3, n=2).result()) != []
        assert_idle(executor)
        if own_process:
            assert not executor._results


@pytest.mark.parametrize("chunk", [23, 8192])
def test_prompt_logprobs_are_transformers_and_find_nothing(llama_checkpoint, chunk) -> None:
    reference = ReferenceModel(llama_checkpoint)
    asked = prompt(7, 300)
    ids = torch.from_numpy(asked.token_ids).long()[None]
    with torch.no_grad():
        expected = reference.model(ids).logits[0, :-1].log_softmax(-1)
    own = expected.gather(1, ids[0, 1:, None])[:, 0]
    with running(llama_checkpoint, max_num_tokens=chunk) as executor:
        for cached in (0, 299):  # its twin finds all there is to find
            result = start(executor, asked, 3, prompt_logprobs=2, n=2).result()
            scores = result.outputs[0].prompt_logprobs
            assert [entry.token_id for entry in scores] == ids[0, 1:].tolist()
            ours = torch.tensor([entry.logprob for entry in scores])
            assert_same_logits(ours, own)
            best = torch.tensor([[value for _, value in entry.top] for entry in scores])
            assert_same_logits(best, expected.topk(2).values)
            assert result.outputs[1].prompt_logprobs == scores
            assert answers(result) == [reference.greedy(asked, 3).tokens] * 2
            assert result.cached_tokens == 0
            assert start(executor, asked, 3).result().cached_tokens == cached
        assert_idle(executor)


@pytest.mark.parametrize("chunk", [23, 8192])
def test_logits_of_the_prompt_are_transformers(llama_checkpoint, chunk, engine_host) -> None:
    reference = ReferenceModel(llama_checkpoint)
    asked = prompt(8, 300)
    with torch.no_grad():
        expected = reference.model(torch.from_numpy(asked.token_ids).long()[None]).logits[0]
    host = engine_host if chunk == 23 else None
    with running(llama_checkpoint, host=host, max_num_tokens=chunk) as executor:
        for more in ({}, {"prompt_logprobs": 1}):
            result = start(executor, asked, 3, return_context_logits=True, n=2, **more).result()
            assert result.context_logits.dtype == torch.float32
            assert_same_logits(result.context_logits, expected)
            assert (result.outputs[0].prompt_logprobs is not None) == bool(more)
            assert result.cached_tokens == 0 and list(result.unshared_tokens.values()) == [300]
            assert 0 < result.metrics_dict["ttft"] <= result.metrics_dict["e2e"]
        plain = start(executor, asked, 3).result()
        assert plain.context_logits is None and plain.disaggregated_params is None
        assert answers(result)[0] == answers(plain)[0]
        assert_idle(executor)


SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string", "maxLength": 6}, "age": {"type": "integer"}},
    "required": ["name", "age"],
    "additionalProperties": False,
}


def test_guided_answers(llama_checkpoint, engine_host) -> None:
    """Of a model that speaks noise, in an engine that has the tokenizer from the door."""
    free = {"seed": 1, "n": 2, **WILD}
    with running(llama_checkpoint, host=engine_host) as executor:

        def ask(count: int = 60, **kind):
            options = {"guided_decoding": GuidedDecodingParams(**kind), **free}
            return start(executor, prompt(8, 30), count, **options)

        alone = start(executor, prompt(8, 30), 30, **free).result()
        with_all = [
            ask(choice=["yes", "no, never", 'the "third" \\way']),
            ask(regex=r"[a-f]{3}-\d{4}"),
            ask(200, json=SCHEMA),
            ask(200, json=json.dumps(SCHEMA)),
            ask(grammar='start: ("ab" | "cd")~4'),
            ask(grammar='root ::= "x" item "y"\nitem ::= [0-9] [0-9]'),
        ]
        beside = start(executor, prompt(8, 30), 30, **free).result()
        assert answers(beside) == answers(alone)
        texts = [[output.text for output in result.result().outputs] for result in with_all]
        reasons = {output.finish_reason for result in with_all[:2] for output in result.outputs}
        assert reasons == {"stop"}
        assert set(texts[0]) <= {"yes", "no, never", 'the "third" \\way'}
        for index, pattern in ((1, r"[a-f]{3}-\d{4}"), (4, "(ab|cd){4}"), (5, r"x\d\dy")):
            assert all(re.fullmatch(pattern, text) for text in texts[index]), texts[index]
        for text, output in zip(texts[2] + texts[3], with_all[2].outputs * 2, strict=True):
            if output.finish_reason == "stop":
                assert set(json.loads(text)) == {"name", "age"}
        assert texts[2] == texts[3]
        assert texts[1][0] != texts[1][1], "answers have states of their own"
        (text,) = {output.text for output in ask(300, json_object=True).result().outputs[:1]}
        assert text.lstrip().startswith("{")
        assert_idle(executor)


@pytest.mark.parametrize(
    ("kind", "says"),
    [
        ({"regex": "(a"}, "no valid grammar"),
        ({"grammar": "start: nothing"}, "no valid grammar"),
        ({"json": "{"}, "guided_decoding"),
        ({"json": {"type": "frobnicate"}}, "no valid grammar"),
    ],
)
def test_what_is_no_grammar_is_refused_at_the_door(llama_checkpoint, kind, says) -> None:
    with (
        running(llama_checkpoint) as executor,
        pytest.raises(RequestError, match=says) as caught,
    ):
        start(executor, prompt(1, 5), 5, guided_decoding=GuidedDecodingParams(**kind))
    assert caught.value.part == "guided_decoding"


def test_options_that_name_tokens_fit_the_model(llama_checkpoint) -> None:
    with running(llama_checkpoint) as executor:
        size = executor.model_info.vocab_size
        for name, value in (("logit_bias", {size: 1.0}), ("bad_token_ids", [-1])):
            with pytest.raises(RequestError, match="outside the vocabulary") as caught:
                start(executor, prompt(1, 5), 5, **{name: value})
            assert caught.value.part == name
        text = start(executor, prompt(9, 30), 30).result().outputs[0].text
        word = next(one for one in re.findall(r"\w+", text) if len(one) > 1)
        clean = start(executor, prompt(9, 30), 30, bad=word).result().outputs[0].text
        assert word in text and clean != text
        assert not re.search(rf"(?<!\w){re.escape(word)}(?!\w)", clean)
