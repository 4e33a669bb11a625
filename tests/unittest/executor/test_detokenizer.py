# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Text as it grows: never taken back, equal to decode(), ended by stop texts."""

from __future__ import annotations

import itertools
import random

import pytest
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

from tensorrt_llm.executor.detokenizer import IncrementalDetokenizer


@pytest.fixture(scope="module")
def tokenizer() -> PreTrainedTokenizerFast:
    backend = Tokenizer(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    backend.train_from_iterator(
        ["the cat sat on the mat, the end"] * 4,
        trainers.BpeTrainer(
            vocab_size=300,
            special_tokens=["<|end|>"],
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        ),
    )
    return PreTrainedTokenizerFast(tokenizer_object=backend, eos_token="<|end|>")


def run(detokenizer: IncrementalDetokenizer, ids: list[int]) -> list[str]:
    texts = []
    for token_id in ids:
        stopped = detokenizer.add(token_id)
        texts.append(detokenizer.text)
        if stopped:
            break
    detokenizer.finish()
    return [*texts, detokenizer.text]


@pytest.mark.parametrize("text", ["the cat sat", "größer, 日本語 and 🙂🙃!", "tab\there"])
def test_grows_to_what_decode_gives_and_takes_nothing_back(tokenizer, text: str) -> None:
    ids = tokenizer.encode(text)
    texts = run(IncrementalDetokenizer(tokenizer), ids)
    assert texts[-1] == text == tokenizer.decode(ids)
    for before, after in itertools.pairwise(texts):
        assert after.startswith(before)


def test_random_tokens_equal_decode(tokenizer) -> None:
    seed = random.randrange(2**32)
    rng = random.Random(seed)
    for _ in range(200):
        ids = [rng.randrange(len(tokenizer)) for _ in range(rng.randint(1, 30))]
        texts = run(IncrementalDetokenizer(tokenizer), ids)
        assert texts[-1] == tokenizer.decode(ids, skip_special_tokens=True), seed


@pytest.mark.parametrize("include", [False, True])
@pytest.mark.parametrize(
    ("text", "stop", "answer", "reason"),
    [
        ("the cat sat on the mat", ("sat",), "the cat ", "sat"),
        ("the cat sat on the mat", ("t on t", "mat"), "the cat sa", "t on t"),
        ("the cat sat on the mat", ("dog",), "the cat sat on the mat", None),
        ("a日本b", ("本",), "a日", "本"),
    ],
)
def test_stop_texts(tokenizer, text, stop, answer, reason, include) -> None:
    detokenizer = IncrementalDetokenizer(tokenizer, stop=stop, include_stop=include)
    texts = run(detokenizer, tokenizer.encode(text))
    assert detokenizer.stopped_at == reason
    assert texts[-1] == answer + (reason if include and reason else "")
    for before, after in itertools.pairwise(texts):
        assert after.startswith(before), "text that may belong to a stop was shown"


def test_special_tokens_are_left_out_or_kept(tokenizer) -> None:
    ids = [*tokenizer.encode("the end"), tokenizer.eos_token_id]
    assert run(IncrementalDetokenizer(tokenizer), ids)[-1] == "the end"
    kept = IncrementalDetokenizer(tokenizer, skip_special_tokens=False)
    assert run(kept, ids)[-1] == "the end<|end|>"
