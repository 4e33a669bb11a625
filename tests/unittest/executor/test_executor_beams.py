# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Beam search through the engine: the answers of the stock search, whatever happens around it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
from support.engine import assert_idle, held, running, start, text_prompt, total, wait_until
from support.media import picture
from support.prompts import PromptMaker
from support.reference import ReferenceModel

from tensorrt_llm.errors import DeadlineExceededError, LimitExceededError
from tensorrt_llm.executor.request import GenerationRequest
from tensorrt_llm.executor.result import GenerationResult
from tensorrt_llm.inputs.data import ProcessedPrompt
from tensorrt_llm.sampling_params import SamplingParams

NEW = 40


def prompt(seed: int, length: int) -> ProcessedPrompt:
    return text_prompt(np.random.default_rng(seed).integers(5, 1200, length))


@dataclass(frozen=True)
class Found:
    """Answers of the stock search, best first, without what fills them up."""

    tokens: list[list[int]]
    scores: list[float]
    moved: bool
    """Whether a hypothesis was left for another one's continuation on the way."""


class StockBeams:
    """Stock ``generate`` with beams."""

    def __init__(self, reference: ReferenceModel) -> None:
        self.reference = reference

    @torch.no_grad()
    def __call__(
        self,
        asked: ProcessedPrompt,
        width: int,
        count: int = NEW,
        stops: tuple[int, ...] = (),
        **options: Any,
    ) -> Found:
        inputs = self.reference.inputs(asked)
        self.reference._forget()
        output = self.reference.model.generate(
            **inputs,
            attention_mask=torch.ones(1, len(asked), dtype=torch.long),
            max_new_tokens=count,
            num_beams=width,
            num_return_sequences=width,
            do_sample=False,
            eos_token_id=list(stops) or None,
            output_scores=True,
            return_dict_in_generate=True,
            **options,
        )
        lengths = (output.beam_indices >= 0).sum(-1).tolist()
        rows = output.sequences[:, len(asked) :].tolist()
        trails = output.beam_indices[0, 1:-1].tolist()
        return Found(
            [row[:length] for row, length in zip(rows, lengths, strict=True)],
            output.sequences_scores.tolist(),
            len(set(trails)) > 1,
        )

    @torch.no_grad()
    def scores(self, asked: ProcessedPrompt, tokens: list[int]) -> torch.Tensor:
        """Log-probabilities ``[len(tokens), vocab_size]`` at each token of an answer."""
        whole = text_prompt([*asked.token_ids, *tokens])
        self.reference._forget()
        logits = self.reference.model(**self.reference.inputs(whole)).logits[0]
        return logits[len(asked) - 1 : -1].log_softmax(dim=-1)


def beams(
    executor: Any, asked: ProcessedPrompt, width: int, n: int | None = None, **more: Any
) -> GenerationResult:
    options = {"return_generation_logits": False, "best_of": width, "n": n or width, **more}
    return start(executor, asked, options.pop("count", NEW), use_beam_search=True, **options)


def assert_found(result: GenerationResult, expected: Found, penalty: float = 1.0) -> None:
    outputs = result.result(timeout=120).outputs
    count = len(outputs)
    assert [one.token_ids for one in outputs] == expected.tokens[:count]
    assert [one.index for one in outputs] == list(range(count))
    scores = [one.cumulative_logprob / one.length**penalty for one in outputs]
    assert scores == pytest.approx(expected.scores[:count], abs=1e-4)


@pytest.fixture(scope="module")
def stock(llama_checkpoint) -> StockBeams:
    return StockBeams(ReferenceModel(llama_checkpoint))


@pytest.mark.parametrize("chunk", [7, 8192])
@pytest.mark.parametrize("reuse", [True, False])
def test_the_answers_are_those_of_the_stock_search(llama_checkpoint, stock, reuse, chunk) -> None:
    asked = [prompt(1, 77), prompt(2, 64), prompt(3, 5)]
    expected = [stock(one, width) for one, width in zip(asked, (4, 3, 2), strict=True)]
    assert any(one.moved for one in expected)
    with running(llama_checkpoint, block_reuse=reuse, max_num_tokens=chunk) as executor:
        for again in range(2):
            for one, width, found in zip(asked, (4, 3, 2), expected, strict=True):
                result = beams(executor, one, width, n=2)
                assert_found(result, found)
                assert (result.cached_tokens > 0) is (reuse and again > 0)
        assert_idle(executor)


@pytest.mark.parametrize("early", [True, False, "never"])
@pytest.mark.parametrize("penalty", [1.0, 0.0, 1.5])
def test_answers_that_end(llama_checkpoint, stock, early, penalty) -> None:
    asked, options = prompt(1, 50), {"early_stopping": early, "length_penalty": penalty}
    # Tokens that beams do have, so that some end with them before the rest.
    stops = tuple({tokens[at] for tokens in stock(asked, 4).tokens for at in (6, 11)})
    expected = stock(asked, 4, stops=stops, **options)
    with running(llama_checkpoint) as executor:
        result = beams(executor, asked, 4, stop_token_ids=list(stops), logprobs=2, **options)
        assert_found(result, expected, penalty)
        for one in result.outputs:
            assert one.length < NEW or one.finish_reason == "length"
            assert one.finish_reason == "length" or one.stop_reason == one.token_ids[-1]
            assert one.cumulative_logprob == pytest.approx(sum(t.logprob for t in one.logprobs))
        # That penalty favours length so much that what ends is overtaken.
        assert penalty == 1.5 or any(one.finish_reason == "stop" for one in result.outputs)
        assert_idle(executor)


def test_each_token_has_its_place_among_all(llama_checkpoint, stock) -> None:
    asked = prompt(1, 77)
    with running(llama_checkpoint) as executor:
        outputs = beams(executor, asked, 4, logprobs=2).result(timeout=120).outputs
    for one in outputs:
        scores = stock.scores(asked, one.token_ids)
        assert len(one.logprobs) == len(scores) == NEW
        for told, row in zip(one.logprobs, scores, strict=True):
            own = float(row[told.token_id])
            assert told.logprob == pytest.approx(own, abs=1e-4)
            # Others that are as likely but for rounding may stand on either side.
            least, most = (1 + int((row > own + near).sum()) for near in (1e-4, -1e-4))
            assert least <= told.rank <= most
            assert [value for _, value in told.top] == pytest.approx(
                row.topk(2).values.tolist(), abs=1e-4
            )
    assert any(told.rank > 1 for one in outputs for told in one.logprobs), "a search left the top"


@pytest.mark.parametrize("overlap", [True, False])
def test_searches_and_plain_requests_in_one_batch(llama_checkpoint, stock, overlap) -> None:
    first, second, plain = prompt(4, 40), prompt(4, 70), prompt(5, 33)
    expected = [stock(first, 4), stock(second, 2)]
    alone = stock.reference.greedy(plain, NEW).tokens
    with running(llama_checkpoint, disable_overlap_scheduler=not overlap) as executor:
        with held(executor):
            results = [beams(executor, first, 4), beams(executor, second, 2)]
            beside = start(executor, plain, NEW)
        for result, found in zip(results, expected, strict=True):
            assert_found(result, found)
        assert beside.result(timeout=120).outputs[0].token_ids == alone
        most = max(
            one["inflightBatchingStats"]["numGenRequests"] for one in executor.iteration_stats()
        )
        assert most == 7, "all beams and the plain request ran in one step"
        assert_idle(executor)


@pytest.mark.parametrize("reuse", [True, False])
def test_media_in_the_prompt(phi4mm_checkpoint, reuse) -> None:
    make = PromptMaker(phi4mm_checkpoint)
    asked = make("Look <|image|> and say", picture(3))
    expected = StockBeams(ReferenceModel(phi4mm_checkpoint))(asked, 3, 12)
    with running(phi4mm_checkpoint, block_reuse=reuse, max_num_tokens=33) as executor:
        for _ in range(2):
            assert_found(beams(executor, asked, 3, count=12), expected)
        assert_idle(executor)


@pytest.mark.parametrize(
    "options",
    [
        # The searches need 2 + 4 * 2 and 1 + 4 * 2 blocks; there are 15.
        {"kv_max_tokens": 480},
        {"kv_max_tokens": 480, "block_reuse": False},
        {"max_batch_size": 5},
    ],
    ids=["pool", "pool-no-reuse", "batch"],
)
def test_a_search_waits_until_there_is_room_for_all_of_it(llama_checkpoint, stock, options) -> None:
    asked = [prompt(6, 70), prompt(7, 45)]
    expected = [stock(one, 4) for one in asked]
    with running(llama_checkpoint, **options) as executor:
        with held(executor):
            results = [beams(executor, one, 4) for one in asked]
        for result, found in zip(results, expected, strict=True):
            assert_found(result, found)
        stats = [one["inflightBatchingStats"] for one in executor.iteration_stats()]
        assert max(one["numGenRequests"] for one in stats) == 4, "one search at a time"
        assert_idle(executor)


def test_a_search_that_fills_the_pool_takes_over_a_part_of_a_block(llama_checkpoint, stock) -> None:
    """The copy of that part must be over before the beams take their blocks: its source is one."""
    asked = prompt(6, 70)
    expected = stock(asked, 4)
    like = text_prompt([*asked.token_ids[:60], *prompt(7, 20).token_ids])
    with running(llama_checkpoint, kv_max_tokens=32 * (2 + 4 * 2)) as executor:
        start(executor, like, 4).result(timeout=60)
        result = beams(executor, asked, 4)
        assert_found(result, expected)
        assert result.cached_tokens == 60
        assert_idle(executor)


def test_a_search_that_is_paused_begins_anew(llama_checkpoint, stock) -> None:
    """A search has its room from the beginning, but others that came before it may need more."""
    asked, beside = prompt(9, 40), [prompt(20 + n, 64) for n in range(6)]
    expected = stock(asked, 3, count=100)
    alone = [stock.reference.greedy(one, 40).tokens for one in beside]
    options = {
        # They begin with 3 blocks each and want a fourth; the search takes 1 + 3 * 4, so that
        # there is none. What its beams share of theirs is less than what the six want.
        "kv_max_tokens": 32 * (6 * 3 + 13),
        "max_batch_size": 16,
        "scheduler_config": {"capacity_scheduler_policy": "MAX_UTILIZATION"},
    }
    with running(llama_checkpoint, **options) as executor:
        with held(executor):
            others = [start(executor, one, 40) for one in beside]
            result = beams(executor, asked, 3, count=100)
        assert_found(result, expected)
        assert [one.result(timeout=120).outputs[0].token_ids for one in others] == alone
        assert total(executor.iteration_stats(), "numPausedRequests") > 0, "it was paused"
        assert_idle(executor)


def test_cancelled_and_late_searches_leave_nothing(llama_checkpoint, stock) -> None:
    asked = prompt(1, 77)
    expected = stock(asked, 4)
    with running(llama_checkpoint) as executor:
        result = beams(executor, asked, 4, n=2, count=2000)
        wait_until(lambda: total(executor.iteration_stats(), "numGenRequests") > 8, "beams ran")
        result.abort()
        ended = result.result(timeout=60)
        assert [one.finish_reason for one in ended.outputs] == ["cancelled"] * 2
        with held(executor):
            waiting = beams(executor, prompt(2, 30), 3, count=2000)
            waiting.abort()
        assert {one.finish_reason for one in waiting.result(60).outputs} == {"cancelled"}
        with pytest.raises(DeadlineExceededError):
            beams(executor, asked, 4, count=2000, timeout=0.2).result(timeout=60)
        assert_idle(executor)
        assert_found(beams(executor, asked, 4), expected)
        assert_idle(executor)


def test_a_fault_of_one_beam_ends_the_search_and_nothing_else(
    llama_checkpoint, stock, monkeypatch
) -> None:
    asked, plain = prompt(1, 77), prompt(5, 33)
    alone = stock.reference.greedy(plain, NEW).tokens
    with running(llama_checkpoint) as executor:
        engine = executor._engine._engine
        forward = engine.forward

        def spoilt(scheduled: Any, *rest: Any) -> torch.Tensor:
            logits = forward(scheduled, *rest).clone()
            for row, entry in enumerate(scheduled):
                request = entry.request
                if len(request.output_ids) == 5 and request.beams[2:3] == (request,):
                    logits[row] = float("nan")
            return logits

        monkeypatch.setattr(engine, "forward", spoilt)
        with held(executor):
            result = beams(executor, asked, 4)
            beside = start(executor, plain, NEW)
        with pytest.raises(Exception, match="NaN"):
            result.result(timeout=60)
        assert beside.result(timeout=60).outputs[0].token_ids == alone
        assert_idle(executor)
        monkeypatch.undo()
        assert_found(beams(executor, asked, 4), stock(asked, 4))


@pytest.mark.parametrize(
    ("width", "count", "options", "limit"),
    [
        (5, 4, {"max_batch_size": 4}, "max_batch_size"),
        (5, 4, {"max_beam_width": 4}, "max_beam_width"),
        (2, 4, {"max_beam_width": 1}, "max_beam_width"),
        (4, 200, {"kv_max_tokens": 640}, "4 beams"),
    ],
)
def test_what_can_never_run_is_refused(llama_checkpoint, width, count, options, limit) -> None:
    with running(llama_checkpoint, **options) as executor:
        with pytest.raises(LimitExceededError, match=limit):
            beams(executor, prompt(1, 40), width, count=count)
        assert_idle(executor)


def test_as_many_beams_as_are_allowed(llama_checkpoint, stock) -> None:
    asked = prompt(1, 40)
    with running(llama_checkpoint, max_beam_width=4) as executor:
        assert_found(beams(executor, asked, 4), stock(asked, 4))


def test_without_a_length_the_pool_decides(llama_checkpoint) -> None:
    with running(llama_checkpoint, kv_max_tokens=640) as executor:
        params = SamplingParams(
            max_tokens=None, use_beam_search=True, best_of=4, n=1, ignore_eos=True
        )
        result = executor.submit(GenerationRequest(prompt(1, 40), params)).result(timeout=120)
        # 20 blocks: one of the prompt, then 4 for each beam, of which 8 tokens are the prompt's.
        assert result.outputs[0].length == 4 * 32 - 8 + 1
        assert_idle(executor)


def test_in_a_process_of_its_own(llama_checkpoint, stock) -> None:
    with running(llama_checkpoint, own_process=True) as executor:
        assert_found(beams(executor, prompt(1, 77), 4, n=3), stock(prompt(1, 77), 4))
