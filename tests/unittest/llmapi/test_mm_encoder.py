# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Rows out of one engine and into another: equal answers, and sharing by the rows alone."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from support.checkpoints import build_checkpoint
from support.families import FAMILIES, Family
from support.media import RATE, clip, film, picture

from tensorrt_llm import LLM, MultimodalEncoder
from tensorrt_llm.errors import ConfigurationError, MediaError, RequestError
from tensorrt_llm.inputs.multimodal_data import EmbeddingData
from tensorrt_llm.llmapi import RequestOutput
from tensorrt_llm.sampling_params import SamplingParams

# Each family with each kind that it takes as rows.
TAKES_ROWS = [
    (family, modality)
    for family in FAMILIES
    for modality in family.modalities
    if modality != "video" or family.name == "llava_onevision"
]
LEAD = "Read these notes with great care before you answer. " * 4
SHORT = SamplingParams(max_tokens=5, ignore_eos=True, return_generation_logits=True)
POOL = {"kv_cache_config": {"max_tokens": 8192}}


class Pair:
    """An encoder and a whole model of one checkpoint, and a kind of media that it takes."""

    def __init__(self, family: Family, modality: str, checkpoint: Path, host: Any) -> None:
        self.family, self.modality = family, modality
        self.encoder = MultimodalEncoder(str(checkpoint), engine_host=host)
        self.model = LLM(str(checkpoint), max_seq_len=4096, engine_host=host, **POOL)

    def close(self) -> None:
        self.encoder.shutdown()
        self.model.shutdown()

    def text(self, modality: str, count: int = 1) -> str:
        return LEAD + self.family.marks[modality] * count + " What is it?"

    def ask(self, text: str, key: str, given: dict[str, Any], **more: Any) -> RequestOutput:
        return self.model.generate({"prompt": text, key: given}, SHORT, use_tqdm=False, **more)

    def first_row(self, text: str, given: dict[str, Any]) -> int:
        ready = self.model.preprocess({"prompt": text, "multi_modal_embeddings": given})
        return ready.prompt.items[0].runs[0].position


def named(kind: tuple[Family, str]) -> str:
    return f"{kind[0].name}-{kind[1]}"


@pytest.fixture(scope="module", params=TAKES_ROWS[:1], ids=named)
def pair(request, checkpoint_root: Path, engine_host) -> Iterator[Pair]:
    family, modality = request.param
    pair = Pair(family, modality, build_checkpoint(family.name, checkpoint_root), engine_host)
    yield pair
    pair.close()


def some(modality: str, seed: int) -> Any:
    if modality == "video":
        return film(seed, 3)
    return picture(seed, 300, 90) if modality == "image" else (clip(seed), RATE)


def values(given: Any) -> torch.Tensor:
    """The rows themselves, which come with a grid from some families."""
    return given.rows if isinstance(given, EmbeddingData) else given


def like(given: Any, rows: Any) -> Any:
    """Other rows that stand as these do."""
    return EmbeddingData(rows, given.grid) if isinstance(given, EmbeddingData) else rows


def same_answer(one: RequestOutput, other: RequestOutput) -> bool:
    first, second = one.outputs[0], other.outputs[0]
    assert first.generation_logits is not None and second.generation_logits is not None
    close = torch.allclose(first.generation_logits, second.generation_logits, atol=2e-4)
    return first.token_ids == second.token_ids and close


def full_repeat(result: RequestOutput) -> int:
    return len(result.prompt_token_ids) - 1


@pytest.mark.parametrize("pair", TAKES_ROWS, indirect=True, ids=named)
def test_rows_stand_for_their_media_and_share_with_equal_rows_only(pair: Pair) -> None:
    modality = pair.modality
    text = pair.text(modality)
    media = {modality: some(modality, 1)}
    out = pair.encoder.generate({"prompt": text, "multi_modal_data": media}, use_tqdm=False)
    rows = out.multi_modal_embeddings
    by_media = pair.ask(text, "multi_modal_data", media)
    assert out.prompt_token_ids == by_media.prompt_token_ids
    by_rows = pair.ask(text, "multi_modal_embeddings", rows)
    assert same_answer(by_rows, by_media)
    start = pair.first_row(text, rows)
    # Who sends rows may have made them any way: they are not the picture's.
    assert by_rows.cached_tokens <= start
    again = pair.ask(text, "multi_modal_embeddings", rows)
    assert again.cached_tokens == full_repeat(again) and same_answer(again, by_rows)
    given = rows[modality][0]
    in_numpy = {modality: like(given, values(given).numpy().copy())}
    assert pair.ask(text, "multi_modal_embeddings", in_numpy).cached_tokens == full_repeat(again)
    nearly = values(given).clone()
    nearly[-1, -1] = torch.nextafter(nearly[-1, -1], torch.tensor(9.0))
    other = {modality: like(given, nearly)}
    assert pair.ask(text, "multi_modal_embeddings", other).cached_tokens <= start
    salted = pair.ask(text, "multi_modal_embeddings", rows, cache_salt="own")
    assert salted.cached_tokens == 0 and same_answer(salted, by_rows)
    # With nothing kept, and nothing at hand, the engine asks for the rows again.
    pair.model.flush()
    assert same_answer(pair.ask(text, "multi_modal_embeddings", rows), by_rows)


GRIDS = [kind for kind in TAKES_ROWS if kind[0].name in ("qwen2_vl", "qwen3_vl", "idefics3")]


@pytest.mark.parametrize("pair", GRIDS, indirect=True, ids=named)
def test_equal_rows_on_another_grid_share_nothing(pair: Pair) -> None:
    """As when a picture is turned: the same rows, in other places."""
    text = pair.text("image")
    prompt = {"prompt": text, "multi_modal_data": {"image": some("image", 8)}}
    (given,) = pair.encoder.generate(prompt, use_tqdm=False).multi_modal_embeddings["image"]
    lines, columns = given.grid
    assert lines != columns
    turned = {"image": EmbeddingData(given.rows, (columns, lines))}
    upright = pair.ask(text, "multi_modal_embeddings", {"image": given})
    other = pair.ask(text, "multi_modal_embeddings", turned)
    assert other.cached_tokens <= pair.first_row(text, turned)
    assert not same_answer(other, upright)
    again = pair.ask(text, "multi_modal_embeddings", {"image": given})
    assert again.cached_tokens == full_repeat(again) and same_answer(again, upright)
    turned_again = pair.ask(text, "multi_modal_embeddings", turned)
    assert turned_again.cached_tokens == full_repeat(turned_again)
    assert same_answer(turned_again, other)


@pytest.mark.parametrize("pair", GRIDS, indirect=True, ids=named)
@pytest.mark.parametrize(
    ("grid", "told"),
    [
        (None, "need a grid"),
        ((7, 11), r"7 x 11"),
        ((0, 5), r"0 x 5"),
        ((-1, -1), r"-1 x -1"),
        ((10**9, 10**9), "1000000000 x 1000000000"),
    ],
)
def test_a_grid_that_does_not_fit_is_refused(
    grid: tuple[int, int] | None, told: str, pair: Pair
) -> None:
    text = pair.text("image")
    prompt = {"prompt": text, "multi_modal_data": {"image": some("image", 9)}}
    (given,) = pair.encoder.generate(prompt, use_tqdm=False).multi_modal_embeddings["image"]
    wrong = {"image": EmbeddingData(given.rows, grid)}
    with pytest.raises(MediaError, match=rf"image\[0\]: .*{told}"):
        pair.ask(text, "multi_modal_embeddings", wrong)
    assert pair.ask(text, "multi_modal_embeddings", {"image": given}).outputs[0].token_ids


def test_a_grid_where_there_is_none_is_refused(pair: Pair) -> None:
    rows = np.ones((4, 64), np.float32)
    with pytest.raises(MediaError, match="have no grid"):
        wrong = {pair.modality: EmbeddingData(rows, (2, 2))}
        pair.ask(pair.text(pair.modality), "multi_modal_embeddings", wrong)


@pytest.mark.parametrize("grid", [(1,), (1, 2, 3), (1.0, 2), (True, 1), "ab", 7])
def test_a_grid_is_two_whole_numbers(grid: Any) -> None:
    with pytest.raises(TypeError):
        EmbeddingData(np.ones((2, 2), np.float32), grid)


def test_a_repeat_is_not_encoded_again_and_salts_do_not_share(pair: Pair) -> None:
    modality = pair.modality
    prompt = {"prompt": pair.text(modality), "multi_modal_data": {modality: some(modality, 2)}}

    def runs() -> int:
        return pair.encoder.get_stats()["multimodalStats"]["encoderRuns"][modality]

    before = runs()
    first = pair.encoder.generate(prompt, use_tqdm=False)
    (own,) = first.multi_modal_embeddings[modality]
    kept = own.clone()
    own.zero_()  # the caller's, not the store's
    second, other = pair.encoder.generate([prompt, prompt], use_tqdm=False)
    assert runs() == before + 1
    for output in (second, other):
        assert torch.equal(output.multi_modal_embeddings[modality][0], kept)
        assert output.multimodal_hashes == first.multimodal_hashes
    salted = pair.encoder.generate(prompt, use_tqdm=False, cache_salt="own")
    assert runs() == before + 2
    assert torch.equal(salted.multi_modal_embeddings[modality][0], kept)


def test_what_a_caller_changes_later_changes_nothing(pair: Pair) -> None:
    modality = pair.modality
    text = pair.text(modality)
    media = {"prompt": text, "multi_modal_data": {modality: some(modality, 3)}}
    rows = pair.encoder.generate(media, use_tqdm=False).multi_modal_embeddings
    whole = {modality: [rows[modality][0].clone()]}
    before = pair.ask(text, "multi_modal_embeddings", rows)
    ready = pair.model.preprocess({"prompt": text, "multi_modal_embeddings": rows})
    rows[modality][0].mul_(-1)
    changed = pair.ask(text, "multi_modal_embeddings", rows)
    assert changed.cached_tokens <= pair.first_row(text, rows)
    pair.model.flush()
    late = pair.model.generate(ready, SHORT, use_tqdm=False)
    assert same_answer(late, before)
    assert same_answer(pair.ask(text, "multi_modal_embeddings", whole), before)


def test_rows_of_a_wrong_shape_are_refused(pair: Pair) -> None:
    modality = pair.modality
    with pytest.raises(MediaError, match=rf"{modality}\[0\]: .*have 3 values a row"):
        wrong = {modality: np.ones((4, 3), np.float32)}
        pair.ask(pair.text(modality), "multi_modal_embeddings", wrong)
    with pytest.raises(RequestError, match="not numbers"):
        wrong = {modality: np.full((4, 3), np.nan, np.float32)}
        pair.ask(pair.text(modality), "multi_modal_embeddings", wrong)
    with pytest.raises(RequestError, match="floats, not int64"):
        pair.ask(pair.text(modality), "multi_modal_embeddings", {modality: np.ones((4, 3), int)})
    both = {"multi_modal_data": {modality: some(modality, 1)}}
    rows = {"multi_modal_embeddings": {modality: np.ones((4, 3), np.float32)}}
    with pytest.raises(RequestError, match="not both"):
        pair.model.generate({"prompt": pair.text(modality), **both, **rows}, use_tqdm=False)


def test_items_come_in_the_order_in_which_they_were_given(pair: Pair) -> None:
    pictures: list[Image.Image] = [picture(4), picture(5, 90, 60)]
    text = f"{LEAD}<|image_2|> and <|image_1|> and <|audio_1|>"
    prompt = {
        "prompt": text,
        "multi_modal_data": {"image": pictures, "audio": (clip(4), RATE)},
    }
    out = pair.encoder.generate(prompt, use_tqdm=False)
    alone = [
        pair.encoder.generate(
            {"prompt": "<|image|>", "multi_modal_data": {"image": one}}, use_tqdm=False
        )
        for one in pictures
    ]
    for made, own in zip(out.multi_modal_embeddings["image"], alone, strict=True):
        assert torch.equal(made, own.multi_modal_embeddings["image"][0])
    by_media = pair.model.generate(prompt, SHORT, use_tqdm=False)
    by_rows = pair.ask(text, "multi_modal_embeddings", out.multi_modal_embeddings)
    assert same_answer(by_rows, by_media)
    # By token ids, one placeholder each, as well.
    ids = pair.model.tokenizer("<|image|> and <|image|>")["input_ids"]
    pictures_rows = {"image": out.multi_modal_embeddings["image"]}
    told = pair.model.generate(
        {"prompt_token_ids": ids, "multi_modal_embeddings": pictures_rows}, SHORT, use_tqdm=False
    )
    written = pair.ask("<|image|> and <|image|>", "multi_modal_embeddings", pictures_rows)
    assert written.cached_tokens == full_repeat(told) and same_answer(told, written)


def test_awaiting_and_mistakes(pair: Pair, llama_checkpoint: Path, engine_host) -> None:
    prompt = {"prompt": "<|image|>", "multi_modal_data": {"image": picture(6)}}

    async def several() -> list[Any]:
        return await asyncio.gather(*(_awaited(pair.encoder, prompt) for _ in range(3)))

    outputs = asyncio.run(several())
    assert len({one.request_id for one in outputs}) == 3
    assert all(one.finished and one.prompt == "<|image|>" for one in outputs)
    with pytest.raises(RequestError, match="no media to encode"):
        pair.encoder.generate("Hello", use_tqdm=False)
    with pytest.raises(MediaError, match=r"multi_modal_data.image\[0\]"):
        pair.encoder.generate_async({**prompt, "multi_modal_data": {"image": "no.png"}}).result()
    with pytest.raises(ConfigurationError, match="takes text only"):
        MultimodalEncoder(str(llama_checkpoint), engine_host=engine_host)


async def _awaited(encoder: MultimodalEncoder, prompt: Any) -> Any:
    return await encoder.generate_async(prompt)


def test_an_encoder_in_this_process_and_after_its_end(
    pair: Pair, phi4mm_checkpoint: Path, monkeypatch
) -> None:
    prompt = {"prompt": "<|image|>", "multi_modal_data": {"image": picture(7)}}
    expected = pair.encoder.generate(prompt, use_tqdm=False).multi_modal_embeddings["image"][0]
    monkeypatch.setenv("TLLM_WORKER_USE_SINGLE_PROCESS", "1")
    with MultimodalEncoder(str(phi4mm_checkpoint)) as encoder:
        own = encoder.generate(prompt, use_tqdm=False).multi_modal_embeddings["image"][0]
        assert torch.allclose(own, expected, atol=1e-5)
        own.zero_()
        repeat = encoder.generate(prompt, use_tqdm=False).multi_modal_embeddings["image"][0]
        assert torch.allclose(repeat, expected, atol=1e-5)
    with pytest.raises(RuntimeError, match="shut"):
        encoder.generate(prompt, use_tqdm=False)
