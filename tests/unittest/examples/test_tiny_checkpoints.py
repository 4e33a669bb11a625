# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""The tiny checkpoints: load with stock classes, and answer by what is put in."""

from __future__ import annotations

import subprocess
import sys
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from support.checkpoints import REPOSITORY, build_checkpoint, load_script
from support.families import FAMILIES, Family
from support.media import clip, film, picture
from support.prompts import PromptMaker
from support.reference import ReferenceModel
from transformers import (
    AutoConfig,
    AutoTokenizer,
    GenerationConfig,
    Phi4MultimodalFeatureExtractor,
)

ANSWER = 12


@pytest.fixture(scope="module")
def script() -> Any:
    return load_script("examples/tiny_checkpoints.py")


@pytest.fixture(scope="module")
def make(family_checkpoint: Path) -> PromptMaker:
    return PromptMaker(family_checkpoint)


@pytest.fixture(scope="module")
def stock(family_checkpoint: Path) -> ReferenceModel:
    return ReferenceModel(family_checkpoint)


def test_names_an_unknown_family_and_the_known_ones(script: Any, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"'gpt'.*phi4mm, qwen2_audio, .*, llama"):
        script.build("gpt", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_the_command_writes_a_folder_that_loads(tmp_path: Path) -> None:
    command = [sys.executable, "examples/tiny_checkpoints.py", "llama", str(tmp_path / "m")]
    done = subprocess.run(
        [*command, "--seed", "3"], cwd=REPOSITORY, capture_output=True, text=True, check=True
    )
    assert str(tmp_path / "m") in done.stdout
    assert AutoConfig.from_pretrained(tmp_path / "m").model_type == "llama"


def test_same_seed_same_files_other_seed_other_weights(script: Any, tmp_path: Path) -> None:
    before = torch.random.get_rng_state()
    seeds = {"a": 1, "b": 1, "c": 2}
    folders = [script.build("llama", tmp_path / name, seed) for name, seed in seeds.items()]
    assert torch.equal(before, torch.random.get_rng_state()), "the caller's random stream moved"
    first, again, other = (
        {file.name: file.read_bytes() for file in sorted(folder.iterdir())} for folder in folders
    )
    assert first == again
    assert {name for name in first if first[name] != other[name]} == {"model.safetensors"}


@pytest.mark.parametrize("name", ["llama", *map(str, FAMILIES)])
def test_size_vocabulary_and_length(name: str, checkpoint_root: Path) -> None:
    folder = build_checkpoint(name, checkpoint_root)
    config, tokenizer = AutoConfig.from_pretrained(folder), AutoTokenizer.from_pretrained(folder)
    text = config.get_text_config()
    assert sum(file.stat().st_size for file in folder.iterdir()) < 4e6
    assert text.vocab_size == len(tokenizer) >= 1000
    assert text.max_position_embeddings >= 8192
    # An answer ends with what closes a turn in the template.
    turns = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]
    ids = tokenizer.apply_chat_template(turns, return_dict=False)
    ends = GenerationConfig.from_pretrained(folder).eos_token_id
    assert not set(ends).isdisjoint(ids[-2:])
    sentence = "What can you hear in this recording? Ж 字 🙂"
    assert tokenizer.decode(tokenizer(sentence).input_ids) == sentence


def test_the_template_keeps_parts_in_order_under_both_names(phi4mm_checkpoint: Path) -> None:
    tokenizer = AutoTokenizer.from_pretrained(phi4mm_checkpoint)
    parts = ["text", "image", "image_url", "audio", "text", "input_audio"]
    content = [{"type": kind, **({"text": kind} if kind == "text" else {})} for kind in parts]
    messages: list[dict[str, Any]] = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": content},
    ]
    assert tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True) == (
        "<|system|>Be brief.<|end|><|user|>text<|image|><|image|><|audio|>text<|audio|><|end|>"
        "<|assistant|>"
    )


def test_sixteen_seconds_are_two_hundred_tokens(phi4mm_checkpoint: Path) -> None:
    extractor = Phi4MultimodalFeatureExtractor.from_pretrained(phi4mm_checkpoint)
    features = extractor(clip(0, 16.0), sampling_rate=16_000, return_tensors="pt")
    assert features["audio_embed_sizes"].tolist() == [200]


@pytest.mark.parametrize("name", ["qwen2_audio", "qwen2_vl"])
def test_the_qwen_template_adds_a_system_message_and_marks(
    name: str, checkpoint_root: Path
) -> None:
    tokenizer = AutoTokenizer.from_pretrained(build_checkpoint(name, checkpoint_root))
    content = [{"type": "text", "text": "a"}, {"type": "audio"}, {"type": "input_audio"}]
    content += [{"type": "image"}, {"type": "text", "text": "b"}]
    user = {"role": "user", "content": content}
    written = (
        "<|im_start|>user\na"
        "<|audio_bos|><|AUDIO|><|audio_eos|><|audio_bos|><|AUDIO|><|audio_eos|>"
        "<|vision_start|><|image_pad|><|vision_end|>b<|im_end|>\n<|im_start|>assistant\n"
    )
    system = "<|im_start|>system\n{}<|im_end|>\n"
    render = partial(tokenizer.apply_chat_template, tokenize=False, add_generation_prompt=True)
    assert render([user]) == system.format("You are a helpful assistant.") + written
    briefly = {"role": "system", "content": "Be brief."}
    assert render([briefly, user]) == system.format("Be brief.") + written


def payloads(family: Family) -> list[Any]:
    """Three of each kind that the family takes."""
    kinds: dict[str, list[Any]] = {
        "image": [picture(seed) for seed in range(3)],
        "audio": [clip(seed) for seed in range(3)],
        "video": [film(seed, sound=clip(seed)) for seed in range(3)],
    }
    return [media for modality in family.modalities for media in kinds[modality]]


def test_answers_depend_on_the_media(
    family: Family, make: PromptMaker, stock: ReferenceModel
) -> None:
    media = payloads(family)
    for begin in range(0, len(media), 3):
        prompts = [
            family.prompt(make, one, "What is this, and why?") for one in media[begin : begin + 3]
        ]
        answers = [stock.greedy(prompt, ANSWER) for prompt in prompts]
        for first, second in combinations(answers, 2):
            assert (first.logits[0] - second.logits[0]).abs().max() > 0.05
            assert first.tokens != second.tokens
        again = stock.greedy(family.prompt(make, media[begin], "What is this, and why?"), ANSWER)
        assert again.tokens == answers[0].tokens
        assert (again.logits - answers[0].logits).abs().max() < 1e-4


def test_most_tokens_have_a_clear_winner(
    family: Family, make: PromptMaker, stock: ReferenceModel
) -> None:
    prompts = [family.prompt(make, media, "What is this?") for media in payloads(family)]
    prompts += [make(text) for text in ("Hello", "Tell me a story.")]
    answers = [stock.greedy(prompt, ANSWER) for prompt in prompts]
    best = torch.cat([answer.logits for answer in answers]).log_softmax(-1).topk(2).values
    assert ((best[:, 0] - best[:, 1]) > 0.05).float().mean() > 0.9
    assert np.mean([len(set(answer.tokens)) for answer in answers]) > ANSWER / 2


def test_a_prompt_of_more_than_a_thousand_tokens_works(
    make: PromptMaker, stock: ReferenceModel
) -> None:
    prompt = make("one two three " * 400)
    assert len(prompt) > 1024
    assert stock.greedy(prompt, 2).logits.isfinite().all()


def test_no_answer_holds_a_media_placeholder(make: PromptMaker, stock: ReferenceModel) -> None:
    head = stock.model.lm_head.weight
    for modality in make.processor.modalities:
        assert not head[make.processor.placeholder_token_id(modality)].any()
