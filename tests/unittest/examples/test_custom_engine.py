# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""The example engine answers like the model's own ``generate``, cache or not."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from examples.custom_engine import TOKENS_PER_BLOCK, Engine, Image, main, tiny_model

PROMPT = [3, *[96] * 20, *range(10, 24)]


def looks(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(20, 32)).astype(np.float32)


def reference(engine: Engine, image: Image | None, new_tokens: int) -> list[int]:
    """What transformers' own loop and cache give."""
    embeds = engine.embed(PROMPT, image).detach()
    output = engine.model.generate(
        inputs_embeds=embeds,
        attention_mask=torch.ones(embeds.shape[:2], dtype=torch.long),
        max_new_tokens=new_tokens,
        do_sample=False,
        eos_token_id=None,
        pad_token_id=0,
    )
    return output[0].tolist()


def test_answers_are_the_models_own_with_every_kind_of_hit() -> None:
    engine = Engine(tiny_model(), num_blocks=64)
    whole = (len(PROMPT) - 1) // TOKENS_PER_BLOCK * TOKENS_PER_BLOCK
    images = [Image(looks(1), 1), Image(looks(2), 1), None]
    answers = [reference(engine, image, 6) for image in images]
    assert answers[0] != answers[1]
    for expected_hit in (0, whole):
        for image, expected in zip(images, answers, strict=True):
            got = engine.generate(PROMPT, 6, image)
            assert got.token_ids == expected
            # The first block holds the image's first rows, so nothing is shared between the three.
            assert got.cached_tokens == expected_hit
    assert engine.generate(PROMPT, 6, images[0], salt="other").cached_tokens == 0
    engine.manager.check_integrity()
    assert engine.manager.stats().used_num_blocks == 0


def test_pressure_and_no_room() -> None:
    engine = Engine(tiny_model(), num_blocks=6)
    for seed in (1, 2, 1, 1):
        image = Image(looks(seed), 1)
        assert engine.generate(PROMPT, 6, image).token_ids == reference(engine, image, 6)
    assert engine.manager.stats().evicted_blocks > 0
    with pytest.raises(RuntimeError, match=r"11 blocks for 84 tokens, the pool has 6"):
        engine.generate(PROMPT, 50)


def test_main_shows_the_hits(capsys: pytest.CaptureFixture[str]) -> None:
    main()
    lines = capsys.readouterr().out.splitlines()
    assert [line.rsplit(", ", 1)[1] for line in lines] == ["0 cached", "32 cached"] * 2
