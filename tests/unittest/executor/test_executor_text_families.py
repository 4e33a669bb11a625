# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Text decoders that need no file of ours: each answers as the unmodified transformers model.

Llama is the model of test_executor.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.checkpoints import build_checkpoint
from support.engine import assert_idle, held, running, start, text_prompt
from support.reference import ReferenceModel, assert_same_logits

from tensorrt_llm.errors import ConfigurationError
from tensorrt_llm.inputs.data import ProcessedPrompt

NEW, BLOCK = 5, 32
FAMILIES = ["qwen2", "qwen3", "mistral", "phi3", "gemma3_text"]


@pytest.fixture(scope="module", params=FAMILIES)
def checkpoint(request: pytest.FixtureRequest, checkpoint_root: Path) -> Path:
    return build_checkpoint(request.param, checkpoint_root)


@pytest.fixture(scope="module")
def reference(checkpoint: Path) -> ReferenceModel:
    return ReferenceModel(checkpoint)


@pytest.fixture(scope="module")
def prompts() -> list[ProcessedPrompt]:
    """Eight of several lengths that begin alike, more than a window long, and then differ."""
    rng = np.random.default_rng(0)
    head = rng.integers(10, 1000, 70)
    tails = [rng.integers(10, 1000, length) for length in (1, 9, 30, 31, 32, 33, 64, 90)]
    return [text_prompt(np.concatenate([head, tail])) for tail in tails]


def check(result: Any, reference: ReferenceModel, prompt: ProcessedPrompt) -> int:
    answer, expected = result.result().outputs[0], reference.greedy(prompt, NEW)
    assert answer.token_ids == expected.tokens
    assert_same_logits(answer.generation_logits, expected.logits)
    return int(result.cached_tokens)


@pytest.mark.parametrize("chunk", [7, 33, 256])
def test_chunks_reuse_and_eight_together(
    checkpoint: Path, reference: ReferenceModel, prompts: list[ProcessedPrompt], chunk: int
) -> None:
    with running(checkpoint, max_num_tokens=chunk) as executor:
        assert check(start(executor, prompts[0], NEW), reference, prompts[0]) == 0
        for prompt in prompts[1:4]:
            assert check(start(executor, prompt, NEW), reference, prompt) >= 70
        with held(executor):
            results = [start(executor, prompt, NEW) for prompt in prompts]
        for prompt, result in zip(prompts, results, strict=True):
            assert check(result, reference, prompt) >= 70
        for prompt in prompts:
            assert check(start(executor, prompt, NEW), reference, prompt) == len(prompt) - 1
        assert_idle(executor)


@pytest.mark.parametrize(
    ("name", "value"),
    [("final_logit_softcapping", 30.0), ("attn_logit_softcapping", 50.0), ("logits_scaling", 2.0)],
)
def test_a_decoder_that_changes_scores_in_a_way_we_do_not_is_refused(
    checkpoint_root: Path, tmp_path: Path, name: str, value: float
) -> None:
    folder = tmp_path / "other"
    shutil.copytree(build_checkpoint("gemma3_text", checkpoint_root), folder)
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {name: value}))
    with pytest.raises(ConfigurationError, match=f"{name} is {value}"), running(folder):
        pass
