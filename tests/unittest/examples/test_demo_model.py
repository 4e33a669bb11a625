# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""The demo model: trained as it is served, and answers that follow the payload."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from transformers import Phi4MultimodalFeatureExtractor

from examples.demo_model.architecture import load_tokenizer, make_config
from examples.demo_model.batches import clip_rows
from examples.demo_model.pictures import draw_digits
from examples.demo_model.sounds import RATE, play_notes
from examples.demo_model.trained_model import TrainedModel
from tensorrt_llm import LLM, SamplingParams
from tensorrt_llm.inputs.processors import phi4mm_image

CHECKPOINT = Path(__file__).parents[3] / "examples/demo_model/checkpoint"
PAIRS = 200
TOGETHER = 5


def test_the_checkpoint_keeps_its_size() -> None:
    assert (CHECKPOINT / "model.safetensors").stat().st_size <= 12_000_000


@torch.no_grad()
def test_training_makes_the_rows_of_the_stock_classes() -> None:
    model = TrainedModel(make_config(load_tokenizer(CHECKPOINT)), seed=0)
    stock, config = model.lm.model.embed_tokens_extend, model.lm.config
    rng = np.random.default_rng(0)

    pixels = rng.integers(0, 256, (112, 112, 3)).astype(np.uint8)
    settings = phi4mm_image.ImageSettings(crop_size=112, max_crops=1)
    plan = phi4mm_image.plan_crops(112, 112, settings, 1)
    inputs = phi4mm_image.encoder_inputs(Image.fromarray(pixels), plan, settings)
    tokens = torch.full((1, 41), config.vision_config.image_token_id)
    expected = stock.image_embed(tokens, torch.zeros(1, 41, config.hidden_size), **inputs)
    rows = model.picture_rows(model.picture_features(torch.from_numpy(pixels)[None].float()))
    torch.testing.assert_close(rows, expected, atol=1e-4, rtol=1e-4)

    samples = rng.normal(0, 0.1, 20_000).astype(np.float32)
    features = Phi4MultimodalFeatureExtractor()(samples, sampling_rate=RATE, return_tensors="pt")
    tokens = torch.full((1, clip_rows(20_000)), config.audio_config.audio_token_id)
    blank = torch.zeros(1, tokens.shape[1], config.hidden_size)
    sounds = model.sound_features(torch.from_numpy(samples)[None])
    for mode in ("speech", "vision"):
        expected = stock.audio_embed(tokens, blank, **features, audio_projection_mode=mode)
        rows = model.sound_rows(sounds, torch.tensor([mode == "vision"]))
        torch.testing.assert_close(rows, expected, atol=1e-3, rtol=1e-3)


def digits(rng: np.random.Generator) -> tuple[Any, str]:
    picture = draw_digits(rng, 3)
    return Image.fromarray(picture.pixels), f"I read {' '.join(map(str, picture.digits))}."


def notes(rng: np.random.Generator) -> tuple[Any, str]:
    # All of one length, so that neither token count nor words tell them apart.
    clip = play_notes(rng, 3, 2 * RATE)
    return (clip.samples.astype(np.float32) / 32768, RATE), f"I hear {' '.join(clip.notes)}."


KINDS = (
    ("image", "Which digits are written?", digits),
    ("audio", "Which notes do you hear?", notes),
)


def payloads(count: int) -> Iterator[tuple[dict[str, Any], str]]:
    """Prompts that differ in nothing but the payload, and their right answers."""
    rng = np.random.default_rng(7)
    for modality, question, make in KINDS:
        text = f"<|user|>{question}<|{modality}|><|end|><|assistant|>"
        for _ in range(count // len(KINDS)):
            media, right = make(rng)
            yield {"prompt": text, "multi_modal_data": {modality: [media]}}, right


@pytest.mark.parametrize("chunk", [7, 33, None])
def test_answers_follow_the_payload(chunk: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TLLM_WORKER_USE_SINGLE_PROCESS", "1")
    # Holds what is in flight together and not one payload more.
    cache = {"enable_block_reuse": True, "tokens_per_block": 8, "max_tokens": 512}
    options = {"max_seq_len": 256, "enable_chunked_prefill": chunk is not None}
    asked = list(payloads(2 * PAIRS))
    wrong = 0
    with LLM(
        str(CHECKPOINT), kv_cache_config=cache, max_num_tokens=chunk or 1024, **options
    ) as llm:
        for first in range(0, len(asked), TOGETHER):
            prompts, right = zip(*asked[first : first + TOGETHER], strict=True)
            for again in (False, True):
                answers = llm.generate(list(prompts), SamplingParams(max_tokens=12), use_tqdm=False)
                wrong += sum(
                    answer.outputs[0].text != expected
                    for answer, expected in zip(answers, right, strict=True)
                )
                # A repeat is found whole, another payload never beyond the words before it.
                for answer in answers:
                    whole = len(answer.prompt_token_ids) - 1
                    assert answer.cached_tokens == whole if again else answer.cached_tokens < 16
        assert llm.snapshot()["kvCacheStats"]["evictedBlocks"] > 1000
    # The model may misread a few payloads (each asked twice); wrong hits would spoil far more.
    assert wrong <= len(asked) // 50
