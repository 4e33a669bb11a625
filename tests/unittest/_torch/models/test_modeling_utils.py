# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Every family against the unmodified transformers model: rows, logits, tokens, neighbours."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from support.families import Family
from support.flattened import embeddings, encoded, run_flattened, text_embeddings
from support.media import clip, film, picture
from support.prompts import PromptMaker
from support.reference import ReferenceModel
from transformers import AutoConfig

from tensorrt_llm._torch.models import MultimodalDecoderModel, load_model
from tensorrt_llm.inputs.data import ProcessedPrompt

NEW = 6


@pytest.fixture(scope="module")
def model(family_checkpoint: Path) -> MultimodalDecoderModel:
    loaded = load_model(
        str(family_checkpoint),
        AutoConfig.from_pretrained(family_checkpoint),
        dtype=torch.float32,
        device=torch.device("cpu"),
        max_seq_len=8192,
    )
    assert isinstance(loaded, MultimodalDecoderModel)
    return loaded


@pytest.fixture(scope="module")
def reference(family_checkpoint: Path) -> ReferenceModel:
    return ReferenceModel(family_checkpoint)


@pytest.fixture(scope="module")
def make(family_checkpoint: Path) -> PromptMaker:
    return PromptMaker(family_checkpoint)


@pytest.fixture(scope="module")
def prompts(family: Family, make: PromptMaker) -> list[ProcessedPrompt]:
    """Nothing, one item, several of a kind, and all kinds together."""
    payloads: dict[str, list[Any]] = {
        "image": [picture(2, 300, 90), picture(3, 90, 300), picture(1)],
        "audio": [clip(2, 2.0), clip(1, 0.7)],
        "video": [film(2, 5, sound=clip(3, 2.5)), film(1, 5, 56, 112, sound=clip(4, 0.9))],
    }
    kinds: list[list[Any]] = [[]]
    kinds += [payloads[modality][:1] for modality in family.modalities]
    kinds += [payloads[modality] for modality in family.modalities]
    if len(family.modalities) > 1:
        kinds.append([payloads[modality][0] for modality in family.modalities])
    return [family.prompt(make, "Look: ", *media, " What is this?") for media in kinds]


def positions(prompt: ProcessedPrompt, length: int) -> torch.Tensor:
    return torch.from_numpy(prompt.position_ids(0, length))


def test_it_takes_what_the_table_of_families_says(
    family: Family, model: MultimodalDecoderModel, make: PromptMaker
) -> None:
    assert model.modalities == make.processor.modalities == family.modalities
    with pytest.raises(ValueError, match="no encoder for 'smell'; there is one for: "):
        model.encode("smell", {})


def test_logits_and_tokens_are_those_of_stock_generate(
    model: MultimodalDecoderModel, reference: ReferenceModel, prompts: list[ProcessedPrompt]
) -> None:
    for prompt in prompts:
        expected = reference.greedy(prompt, NEW)
        embeds = embeddings(model, prompt)
        tokens: list[int] = []
        for step in range(NEW):
            places = positions(prompt, len(embeds))
            logits = run_flattened(model, [embeds], [places], [prompt])[0][-1]
            assert (logits - expected.logits[step]).abs().max() < 1e-4
            tokens.append(int(logits.argmax()))
            embeds = torch.cat([embeds, text_embeddings(model, torch.tensor(tokens[-1:]))])
        assert tokens == expected.tokens


def test_neighbours_in_a_batch_change_nothing(
    model: MultimodalDecoderModel, prompts: list[ProcessedPrompt]
) -> None:
    sequences = [embeddings(model, prompt) for prompt in prompts]
    places = [positions(prompt, len(prompt)) for prompt in prompts]
    together = run_flattened(model, sequences, places, prompts)
    for sequence, place, prompt, logits in zip(sequences, places, prompts, together, strict=True):
        alone = run_flattened(model, [sequence], [place], [prompt])[0]
        assert (alone - logits).abs().max() < 1e-4


def test_every_size_gives_the_rows_that_the_prompt_holds(
    family: Family, model: MultimodalDecoderModel, make: PromptMaker
) -> None:
    sizes = [(1, 1), (40, 400), (400, 40), (112, 112), (113, 112), (640, 480), (250, 1000), (30, 7)]
    media: list[Any] = []
    if "image" in family.modalities:
        media += [picture(0, *size) for size in sizes]
    if "audio" in family.modalities:
        media += [clip(0, length) for length in (0.025, 0.1, 0.333, 3.0)]
    if "video" in family.modalities:
        media += [film(0, *size) for size in ((1, 1, 1), (3, 30, 7), (2, 250, 100))]
    prompt = family.prompt(make, *media)
    for item, rows in zip(prompt.items, encoded(model, prompt), strict=True):
        assert rows.shape == (item.num_rows, model.row_width)
        assert rows.isfinite().all()
