# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""The same promises on a CUDA device: answers of the stock CPU model, cold, chunked and reused."""

from __future__ import annotations

from unittest.mock import Mock

import numpy as np
import pytest
import torch
from support.checkpoints import build_checkpoint
from support.engine import assert_idle, running, start, text_prompt
from support.media import clip, picture
from support.prompts import PromptMaker
from support.reference import ReferenceModel

pytestmark = pytest.mark.gpu

NEW = 6


@pytest.fixture(autouse=True)
def full_float32(monkeypatch) -> None:
    """Without this the encoders' convolutions round their inputs to TF32, torch's default."""
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", False)


@pytest.fixture(scope="module")
def prompts(phi4mm_checkpoint):
    make = PromptMaker(phi4mm_checkpoint)
    end = " What is it?<|end|><|assistant|>"
    return [
        make("<|user|>Listen: <|audio|>" + end, clip(1, 4.0)),
        make("<|user|>Listen: <|audio|>" + end, clip(2, 4.0)),
        make("<|user|>Look: <|image|>" + end, picture(1)),
        make("<|user|>Look: <|image|> and <|audio|>" + end, picture(1), clip(1, 4.0)),
        make("<|user|>Only words here." + end),
    ]


@pytest.mark.parametrize("chunk", [7, 33, 8192])
def test_float32_answers_equal_the_stock_model(phi4mm_checkpoint, prompts, chunk) -> None:
    reference = ReferenceModel(phi4mm_checkpoint)
    options = {"device": "cuda", "dtype": "float32", "max_num_tokens": chunk}
    with running(phi4mm_checkpoint, **options) as executor:
        assert executor.model_info.device.startswith("cuda")
        for repeat in range(2):
            results = [start(executor, prompt, NEW) for prompt in prompts]
            for prompt, result in zip(prompts, results, strict=True):
                answer, expected = result.result().outputs[0], reference.greedy(prompt, NEW)
                assert answer.token_ids == expected.tokens
                torch.testing.assert_close(
                    answer.generation_logits, expected.logits, atol=2e-3, rtol=0
                )
                if repeat:
                    assert result.cached_tokens == len(prompt) - 1
        assert_idle(executor)


def test_bfloat16_repeats_share_and_agree(phi4mm_checkpoint, prompts) -> None:
    with running(phi4mm_checkpoint, device="cuda", dtype="bfloat16") as executor:
        for prompt in prompts:
            cold = start(executor, prompt, NEW).result().outputs[0]
            warm = start(executor, prompt, NEW).result()
            assert warm.cached_tokens == len(prompt) - 1
            # The first token's logits: later ones differ once a near-tie fell the other way.
            torch.testing.assert_close(
                warm.outputs[0].generation_logits[0],
                cold.generation_logits[0],
                atol=0.02 * float(cold.generation_logits[0].abs().max()),
                rtol=0,
            )
        assert_idle(executor)


def test_adapters_in_graphs_change_the_rows_of_their_requests(checkpoint_root) -> None:
    """Requests of each adapter, of both and of none in one batch, with graphs and without."""
    checkpoint = build_checkpoint("phi4mm_lora", checkpoint_root)
    make = PromptMaker(checkpoint)
    asked = [
        make("<|user|>Only words here.<|end|><|assistant|>"),
        make("<|user|><|audio|>What?<|end|><|assistant|>", clip(1, 4.0)),
        make("<|user|><|image|>What?<|end|><|assistant|>", picture(1)),
        make("<|user|><|image|><|audio|>What?<|end|><|assistant|>", picture(1), clip(1, 4.0)),
    ]
    answers = []
    for options in ({"cuda_graph_config": None}, {}):
        with running(checkpoint, device="cuda", dtype="float32", **options) as executor:
            graphs = executor._engine._engine._graphs
            if graphs is not None:
                assert len({adapters for _, adapters in graphs._graphs}) == 4
                graphs.run = Mock(wraps=graphs.run)
            results = [start(executor, prompt, 12) for prompt in asked]
            answers.append([result.result(timeout=120).outputs[0] for result in results])
            # Alone each takes the graphs of its own adapter.
            for prompt in asked:
                start(executor, prompt, 12).result(timeout=120)
            if graphs is not None:
                assert graphs.run.call_count > 4 * 11
                for layout, _, _, adapters in (call.args for call in graphs.run.call_args_list):
                    assert graphs.fitting(layout.num_tokens, adapters) is not None
            assert_idle(executor)
    for plain, replayed in zip(*answers, strict=True):
        assert plain.token_ids == replayed.token_ids
        torch.testing.assert_close(
            replayed.generation_logits, plain.generation_logits, atol=2e-3, rtol=0
        )


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"disable_overlap_scheduler": False},
        {"speculative_config": {"decoding_type": "NGram", "max_draft_len": 4}},
        {"cuda_graph_config": None},
    ],
    ids=["graphs", "prepared steps", "drafts", "no graphs"],
)
def test_text_answers_equal_the_stock_model_however_steps_run(llama_checkpoint, options) -> None:
    """Many at once and long enough that rows leave and batches shrink; then again, reused."""
    reference = ReferenceModel(llama_checkpoint)
    rng = np.random.default_rng(7)
    asked = [(text_prompt(rng.integers(5, 1200, 20 + 9 * n)), 12 + 5 * n) for n in range(6)]
    with running(llama_checkpoint, device="cuda", dtype="float32", **options) as executor:
        for _ in range(2):
            results = [start(executor, prompt, count) for prompt, count in asked]
            for (prompt, count), result in zip(asked, results, strict=True):
                expected = reference.greedy(prompt, count).tokens
                assert result.result(timeout=120).outputs[0].token_ids == expected
        graphs = executor._engine._engine._graphs
        assert (graphs is None) == ("cuda_graph_config" in options)
        if "disable_overlap_scheduler" in options:
            assert executor._engine._ahead.num_used
        assert_idle(executor)
