# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""The tiny checkpoints: load with stock classes, and answer by what is put in."""

from __future__ import annotations

import subprocess
import sys
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from support.checkpoints import REPOSITORY, load_script
from support.media import clip, picture
from support.reference import ReferenceModel
from transformers import AutoConfig, AutoTokenizer, Phi4MultimodalFeatureExtractor

from tensorrt_llm.inputs.data import MediaItem, ProcessedPrompt
from tensorrt_llm.inputs.multimodal_data import AudioData, MediaHasher
from tensorrt_llm.inputs.registry import create_input_processor

ANSWER = 12


@pytest.fixture(scope="module")
def script() -> Any:
    return load_script("examples/tiny_checkpoints.py")


@pytest.fixture(scope="module")
def phi4mm(phi4mm_checkpoint: Path) -> ReferenceModel:
    return ReferenceModel(phi4mm_checkpoint)


def ask(folder: Path, kind: str | None, data: Any, question: str) -> ProcessedPrompt:
    tokenizer = AutoTokenizer.from_pretrained(folder)
    processor = create_input_processor(str(folder), tokenizer, MediaHasher())
    items = [] if kind is None else [MediaItem(kind, data, None)]
    media = "" if kind is None else processor.placeholder_text(kind)
    text = f"<|user|>{media}{question}<|end|><|assistant|>"
    return processor.process(processor.locate_placeholders(text, items), items)


def test_names_an_unknown_family_and_the_known_ones(script: Any, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"'gpt'.*phi4mm, llama"):
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


@pytest.mark.parametrize("family", ["phi4mm", "llama"])
def test_size_vocabulary_and_length(family: str, request: pytest.FixtureRequest) -> None:
    folder = request.getfixturevalue(f"{family}_checkpoint")
    config, tokenizer = AutoConfig.from_pretrained(folder), AutoTokenizer.from_pretrained(folder)
    assert sum(file.stat().st_size for file in folder.iterdir()) < 4e6
    assert config.vocab_size == len(tokenizer) >= 1000
    assert config.max_position_embeddings >= 8192
    assert tokenizer.convert_tokens_to_ids("<|end|>") in config.eos_token_id
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


def test_answers_depend_on_the_media(phi4mm: ReferenceModel, phi4mm_checkpoint: Path) -> None:
    media: dict[str, tuple[list[Any], str]] = {
        "image": ([picture(seed) for seed in range(3)], "Which colour is the shape?"),
        "audio": ([AudioData(clip(seed), 16_000) for seed in range(3)], "What do you hear?"),
    }
    for kind, (payloads, question) in media.items():
        prompts = [ask(phi4mm_checkpoint, kind, data, question) for data in payloads]
        answers = [phi4mm.greedy(prompt, ANSWER) for prompt in prompts]
        for first, second in combinations(answers, 2):
            assert (first.logits[0] - second.logits[0]).abs().max() > 0.05
            assert first.tokens != second.tokens
        again = phi4mm.greedy(prompts[0], ANSWER)
        assert again.tokens == answers[0].tokens
        assert (again.logits - answers[0].logits).abs().max() < 1e-4


def test_most_tokens_have_a_clear_winner(phi4mm: ReferenceModel, phi4mm_checkpoint: Path) -> None:
    prompts = [ask(phi4mm_checkpoint, "image", picture(s), "What is this?") for s in range(3)]
    prompts += [
        ask(phi4mm_checkpoint, "audio", AudioData(clip(s), 16_000), "Who speaks?") for s in range(3)
    ]
    prompts += [ask(phi4mm_checkpoint, None, None, text) for text in ("Hello", "Tell me a story.")]
    answers = [phi4mm.greedy(prompt, ANSWER) for prompt in prompts]
    best = torch.cat([answer.logits for answer in answers]).log_softmax(-1).topk(2).values
    assert ((best[:, 0] - best[:, 1]) > 0.05).float().mean() > 0.9
    assert np.mean([len(set(answer.tokens)) for answer in answers]) > ANSWER / 2


def test_a_prompt_of_more_than_a_thousand_tokens_works(
    phi4mm: ReferenceModel, phi4mm_checkpoint: Path
) -> None:
    prompt = ask(phi4mm_checkpoint, None, None, "one two three " * 400)
    assert len(prompt) > 1024
    assert phi4mm.greedy(prompt, 2).logits.isfinite().all()


def test_no_answer_holds_a_media_placeholder(phi4mm: ReferenceModel) -> None:
    config = phi4mm.model.config
    head = phi4mm.model.lm_head.weight
    for token in (config.vision_config.image_token_id, config.audio_config.audio_token_id):
        assert not head[token].any()
