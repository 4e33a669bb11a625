# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Speculative decoding by prompt lookup: the answers are those without it, in fewer steps.

Of every comparison it is shown that drafts were accepted and that drafts were rejected.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from support.engine import assert_idle, held, running, start, text_prompt, total
from support.families import Family, sharing_prompts
from support.prompts import PromptMaker
from support.reference import Answer, ReferenceModel, assert_same_logits

from tensorrt_llm.errors import EngineError
from tensorrt_llm.executor.request import GenerationRequest
from tensorrt_llm.executor.result import GenerationResult
from tensorrt_llm.inputs.data import ProcessedPrompt
from tensorrt_llm.sampling_params import GuidedDecodingParams, SamplingParams

NGRAM = {"decoding_type": "NGram", "max_draft_len": 5, "max_matching_ngram_size": 3}
WILD = {"temperature": 0.7, "top_k": 4}
NEW = 60
# Among few tokens what follows is a guess that now and then holds.
FEW = {token: 100.0 for token in range(5, 12)}


def prompt(seed: int, length: int):
    """Random tokens out of the few."""
    return text_prompt(np.random.default_rng(seed).integers(5, 12, length))


def drafts(executor: Any) -> tuple[int, int]:
    """Tokens guessed, and those that held."""
    stats = executor.snapshot()["specDecodingStats"]
    return stats["numDraftTokens"], stats["numAcceptedTokens"]


def assert_both(executor: Any) -> None:
    drafted, accepted = drafts(executor)
    assert 0 < accepted < drafted, "drafts were accepted, and others were not"


class BiasedModel(ReferenceModel):
    """The stock model, with the stock bias towards the few tokens."""

    @torch.no_grad()
    def _greedy(self, prompt: ProcessedPrompt, count: int) -> Answer:
        ids = torch.from_numpy(prompt.token_ids).long()[None]
        output = self.model.generate(
            **self.inputs(prompt),
            attention_mask=torch.ones_like(ids),
            max_new_tokens=count,
            min_new_tokens=count,
            do_sample=False,
            sequence_bias=[[[token], bias] for token, bias in FEW.items()],
            output_logits=True,
            return_dict_in_generate=True,
            eos_token_id=None,
        )
        return Answer(output.sequences[0, -count:].tolist(), torch.cat(output.logits))


@pytest.fixture(scope="module")
def llama(llama_checkpoint) -> BiasedModel:
    return BiasedModel(llama_checkpoint)


def ask(executor: Any, asked: ProcessedPrompt, count: int, **options: Any) -> GenerationResult:
    return start(executor, asked, count, **{"logit_bias": FEW, **options})


@pytest.mark.parametrize("chunk", [7, 33, 8192])
@pytest.mark.parametrize("reuse", [True, False])
def test_greedy_answers_are_the_stock_models(llama_checkpoint, llama, chunk, reuse) -> None:
    prompts = [prompt(seed, 30 + 7 * seed) for seed in range(5)]
    options = {
        "max_num_tokens": chunk,
        "block_reuse": reuse,
        "disable_overlap_scheduler": reuse,
        "speculative_config": NGRAM,
    }
    with running(llama_checkpoint, **options) as executor:
        for _ in range(2):
            with held(executor):
                results = [ask(executor, one, NEW, logprobs=1) for one in prompts]
            for one, result in zip(prompts, results, strict=True):
                output = result.result(timeout=60).outputs[0]
                expected = llama.greedy(one, NEW)
                assert output.token_ids == expected.tokens
                difference = output.generation_logits - expected.logits
                assert float(difference.abs().max()) < 1e-3
                taken = torch.tensor(expected.tokens)[:, None]
                scores = expected.logits.log_softmax(-1).gather(1, taken)[:, 0]
                assert [entry.logprob for entry in output.logprobs] == pytest.approx(
                    scores.tolist(), abs=1e-3
                )
        assert_both(executor)
        records = executor.iteration_stats()
        assert total(records, "numGenRequests") < 10 * (NEW - 1), "fewer steps than tokens"
        by_step = [record["specDecodingStats"] for record in records]
        assert sum(step["numDraftTokens"] for step in by_step) == drafts(executor)[0]
        assert max(step["acceptanceLength"] for step in by_step) > 1
        assert all(record["inflightBatchingStats"]["numCtxTokens"] <= chunk for record in records)
        assert_idle(executor)


def test_answers_about_media(family: Family, family_checkpoint: Path) -> None:
    asked = sharing_prompts(family, PromptMaker(family_checkpoint)).prompts[:3]
    reference = ReferenceModel(family_checkpoint)
    options = {"max_num_tokens": 40 + family.whole_rows, "speculative_config": NGRAM}
    with running(family_checkpoint, **options) as executor:
        for _ in range(2):
            with held(executor):
                results = [start(executor, one, 24) for one, _ in asked]
            for (one, _), result in zip(asked, results, strict=True):
                output = result.result(timeout=60).outputs[0]
                expected = reference.greedy(one, 24)
                assert output.token_ids == expected.tokens
                assert_same_logits(output.generation_logits, expected.logits)
        assert drafts(executor)[0] > 0
        assert_idle(executor)


def test_sampled_answers_are_those_without_drafts(llama_checkpoint) -> None:
    """A draw is a function of seed and place, so a guess can be checked against it."""

    def answers(**options: Any) -> list[list[int]]:
        with running(llama_checkpoint, **options) as executor:
            with held(executor):
                results = [
                    ask(executor, prompt(seed, 40), NEW, seed=seed, n=2, min_tokens=9, **WILD)
                    for seed in range(4)
                ]
            found = [one.token_ids for result in results for one in result.result().outputs]
            if options:
                assert_both(executor)
            assert_idle(executor)
        return found

    assert answers(speculative_config=NGRAM) == answers()


@pytest.mark.parametrize("reuse", [True, False])
def test_pauses_change_nothing(llama_checkpoint, llama, reuse) -> None:
    prompts = [prompt(seed, 40 + seed) for seed in range(6)]
    options = {
        "kv_max_tokens": 288,
        "kv_tokens_per_block": 8,
        "max_num_tokens": 64,
        "block_reuse": reuse,
        "scheduler_config": {"capacity_scheduler_policy": "MAX_UTILIZATION"},
        "speculative_config": NGRAM,
    }
    with running(llama_checkpoint, **options) as executor:
        with held(executor):
            results = [ask(executor, one, 80) for one in prompts]
        for one, result in zip(prompts, results, strict=True):
            pieces: list[int] = []
            for update in result:
                pieces += update.outputs[0].token_ids_diff
            assert pieces == result.outputs[0].token_ids == llama.greedy(one, 80).tokens
        assert total(executor.iteration_stats(), "numPausedRequests") > 1, "no pressure"
        assert_both(executor)
        assert_idle(executor)


def runs_of(executor: Any, asked: Any, count: int) -> list[list[int]]:
    """What each step brought."""
    engine, found = executor._engine, []
    deliver = engine._deliver

    def noted(request: Any, choices: Any) -> None:
        found.append([choice.token_id for choice in choices])
        deliver(request, choices)

    engine._deliver = noted
    ask(executor, asked, count).result()
    engine._deliver = deliver
    return found


def place_inside(runs: list[list[int]]) -> tuple[list[int], list[int]] | None:
    """An answer up to a token that comes first inside a run, and all tokens to that run's end."""
    before: list[int] = []
    for run in runs:
        for at, token in enumerate(run[:-1]):
            if token not in before + run[:at]:
                return before + run[: at + 1], before + run
        before += run
    return None


def test_an_answer_that_ends_inside_an_accepted_run(llama_checkpoint) -> None:
    """Nothing behind the end is delivered, nor found by anybody."""
    ended = 0
    with running(llama_checkpoint, speculative_config=NGRAM) as executor:
        for seed in range(12):
            asked = prompt(seed, 40)
            runs = runs_of(executor, asked, 12)
            place = place_inside(runs)
            if place is None:
                continue
            expected, written = place
            executor.reset_reuse_state()
            result = ask(executor, asked, NEW, stop_token_ids=[expected[-1]]).result()
            output = result.outputs[0]
            assert (output.token_ids, output.stop_reason) == (expected, expected[-1])
            tokens = [*asked.token_ids, *written, 1]
            # As without drafts: the token that ended it was never fed back.
            found = executor.explain(request_for(tokens)).cached_tokens
            assert found == len(asked) + len(expected) - 1
            ended += 1
        assert_idle(executor)
    assert ended > 1, "no pressure"


def test_an_answer_that_ends_at_its_length(llama_checkpoint, llama) -> None:
    asked = prompt(1, 40)
    expected = llama.greedy(asked, NEW).tokens
    with running(llama_checkpoint, speculative_config=NGRAM, kv_max_tokens=128) as executor:
        for count in range(1, 30):
            assert ask(executor, asked, count).result().outputs[0].token_ids == expected[:count]
        assert_both(executor)
        assert_idle(executor)


def request_for(token_ids: Any) -> GenerationRequest:
    return GenerationRequest(text_prompt(list(token_ids)), SamplingParams(max_tokens=1))


@pytest.mark.parametrize("size", [2, 4, 32])
def test_no_rejected_token_is_ever_found(llama_checkpoint, size) -> None:
    """Each draft continues a prompt that is asked for: what is found ends where it was wrong."""
    asked = prompt(2, 37)
    options = {"kv_tokens_per_block": size, "speculative_config": NGRAM}
    with running(llama_checkpoint, **options) as executor:
        drafter = executor._engine._drafter
        add, guesses = drafter.add, []

        def noted(batch: Any) -> Any:
            batch = add(batch)
            for entry in batch.generation:
                if entry.draft:
                    guesses.append((list(entry.request.output_ids), entry.draft))
            return batch

        drafter.add = noted
        output = ask(executor, asked, NEW).result().outputs[0]
        whole = [*asked.token_ids.tolist(), *output.token_ids]
        written = len(whole) - 1
        rejected = 0
        for answer, draft in guesses:
            tokens = [*asked.token_ids.tolist(), *answer, *draft, 1, 1]
            same = next(
                (at for at, (a, b) in enumerate(zip(tokens, whole, strict=False)) if a != b),
                min(len(tokens), len(whole)),
            )
            rejected += same < len(tokens) - 2
            assert executor.explain(request_for(tokens)).cached_tokens == min(same, written)
        assert rejected > 3, "no pressure"
        # The twin: what was accepted is found, to the last token that was fed back.
        assert executor.explain(request_for([*whole, 1])).cached_tokens == written
        assert_both(executor)
        assert_idle(executor)


@pytest.mark.parametrize("after", [1, 5, 17])
def test_giving_up_at_any_time(llama_checkpoint, after) -> None:
    with running(llama_checkpoint, speculative_config=NGRAM) as executor:
        results = [ask(executor, prompt(seed, 40), 400) for seed in range(3)]
        for _, _ in zip(range(after), results[0], strict=False):
            pass
        for result in results:
            result.abort()
        for result in results:
            assert result.result(timeout=60).outputs[0].finish_reason == "cancelled"
        assert drafts(executor)[0] > 0
        assert_idle(executor)


@pytest.mark.parametrize(
    "options",
    [
        {"repetition_penalty": 1.3},
        {"frequency_penalty": 0.5, "temperature": 0.8, "seed": 3},
        {"bad": "t"},
        {"guided_decoding": GuidedDecodingParams(regex="(ab|c)+")},
    ],
    ids=["repetition", "frequency", "bad", "guided"],
)
def test_where_earlier_tokens_decide_nothing_is_guessed(llama_checkpoint, options) -> None:
    found = []
    for more in ({}, {"speculative_config": NGRAM}):
        with running(llama_checkpoint, **more) as executor:
            output = ask(executor, prompt(3, 50), 30, **options).result().outputs[0]
            found.append((output.token_ids, output.finish_reason))
            assert drafts(executor) == (0, 0)
    assert found[0] == found[1]


def test_a_fault_in_a_step_with_drafts_is_its_own(llama_checkpoint, llama) -> None:
    with running(llama_checkpoint, speculative_config=NGRAM) as executor:
        engine = executor._engine._runner._engine
        forward = engine.forward

        def failing(scheduled: Any, tables: Any) -> Any:
            if any(entry.draft and entry.request.prompt_len == 41 for entry in scheduled):
                raise RuntimeError("no")
            return forward(scheduled, tables)

        engine.forward = failing
        with held(executor):
            results = [ask(executor, prompt(seed, 40 + seed), NEW) for seed in range(3)]
        with pytest.raises(EngineError, match="step failed"):
            results[1].result(timeout=60)
        for seed in (0, 2):
            expected = llama.greedy(prompt(seed, 40 + seed), NEW).tokens
            assert results[seed].result(timeout=60).outputs[0].token_ids == expected
        assert_both(executor)
        assert_idle(executor)


def test_numbers_that_are_none_behind_a_guess_fail_nobody(llama_checkpoint, llama) -> None:
    """A token that was guessed wrong may lead anywhere; it was never the answer's."""
    asked = prompt(1, 40)
    with running(llama_checkpoint, speculative_config=NGRAM) as executor:
        engine = executor._engine._runner._engine
        forward = engine.forward
        spoilt = 0

        def spoiling(scheduled: Any, tables: Any) -> Any:
            nonlocal spoilt
            logits, row = forward(scheduled, tables).clone(), 0
            for entry in scheduled:
                if len(entry.draft) > 1:
                    logits[row + 2 : row + entry.num_scored] = float("nan")
                    spoilt += 1
                row += entry.num_scored
            return logits

        engine.forward = torch.inference_mode()(spoiling)
        output = ask(executor, asked, NEW).result().outputs[0]
        assert output.token_ids == llama.greedy(asked, NEW).tokens
        assert spoilt > 0
        assert_idle(executor)
