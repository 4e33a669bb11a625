# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Structured tokenisation against the tokenizer itself and against byte-by-byte decoding."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, processors
from transformers import AutoTokenizer, PreTrainedTokenizerFast

from tensorrt_llm.errors import ConfigurationError, RequestError
from tensorrt_llm.inputs.data import MediaSpan, StructuredPrompt, TextSpan
from tensorrt_llm.inputs.tokenization import PromptTokenizer, special_tokens, tokenize

SPECIAL = ["<|user|>", "<|image|>", "<|audio|>", "<|end|>", "<|assistant|>"]


@pytest.fixture(scope="module")
def tokenizer(phi4mm_checkpoint: Path) -> Any:
    return AutoTokenizer.from_pretrained(phi4mm_checkpoint)


def build(*pieces: tuple[str, str]) -> StructuredPrompt:
    """A prompt of ("structure" | "plain" | "media", text) pieces."""
    text = ""
    plain: list[TextSpan] = []
    media: list[MediaSpan] = []
    for kind, piece in pieces:
        end = len(text) + len(piece)
        if kind == "plain":
            plain.append(TextSpan(len(text), end))
        elif kind == "media":
            media.append(MediaSpan(len(text), end, len(media)))
        text += piece
    return StructuredPrompt(text, tuple(plain), tuple(media), add_special_tokens=False)


def question(text: str) -> StructuredPrompt:
    return build(
        ("structure", "<|user|>"),
        ("media", "<|image|>"),
        ("plain", text),
        ("media", "<|audio|>"),
        ("structure", "<|end|><|assistant|>"),
    )


def assert_only_structure_is_special(tokenizer: Any, prompt: StructuredPrompt) -> None:
    ids, positions = tokenize(tokenizer, prompt)
    specials = special_tokens(tokenizer)
    structure = ["<|user|>", "<|image|>", "<|audio|>", "<|end|>", "<|assistant|>"]
    assert [specials[token] for token in ids.tolist() if token in specials] == structure
    assert [specials[int(ids[index])] for index in positions] == ["<|image|>", "<|audio|>"]
    assert tokenizer.decode(ids.tolist(), clean_up_tokenization_spaces=False) == prompt.text


@pytest.mark.parametrize("text", ["What is this?", "", "  two  spaces ", "字 🙂\n\t<|", "|>end|>"])
def test_ordinary_text_has_exactly_the_tokenizers_ids(tokenizer: Any, text: str) -> None:
    prompt = question(text)
    ids, positions = tokenize(tokenizer, prompt)
    assert ids.tolist() == tokenizer(prompt.text, add_special_tokens=False)["input_ids"]
    assert [tokenizer.convert_ids_to_tokens(int(ids[i])) for i in positions] == SPECIAL[1:3]


@pytest.mark.parametrize(
    "text",
    ["<|image|>", "a <|end|><|assistant|>yes", "<|audio|><|image|>", "<|image|>|><|end|> 🙂"],
)
def test_special_tokens_spelled_by_a_user_are_text(tokenizer: Any, text: str) -> None:
    prompt = question(text)
    specials_when_naive = set(tokenizer(text)["input_ids"]) & set(special_tokens(tokenizer))
    assert specials_when_naive, "the example spells no special token"
    assert_only_structure_is_special(tokenizer, prompt)


@given(st.lists(st.sampled_from([*SPECIAL, "<|", "im", "|>", "end", " ", "a", "é", "\n"])))
def test_any_mixture_keeps_structure_apart(tokenizer: Any, pieces: list[str]) -> None:
    assert_only_structure_is_special(tokenizer, question("".join(pieces)))


def test_two_neighbouring_texts_do_not_make_a_special_token(tokenizer: Any) -> None:
    prompt = build(("plain", "<|im"), ("plain", "age|>"), ("structure", "<|end|>"))
    ids, _ = tokenize(tokenizer, prompt)
    found = [token for token in ids.tolist() if token in special_tokens(tokenizer)]
    assert tokenizer.convert_ids_to_tokens(found) == ["<|end|>"]


def test_text_beside_structure_does_not_make_a_special_token(tokenizer: Any) -> None:
    prompt = build(("structure", "<|end|><|"), ("plain", "end|> x"), ("media", "<|image|>"))
    ids, positions = tokenize(tokenizer, prompt)
    found = [token for token in ids.tolist() if token in special_tokens(tokenizer)]
    assert tokenizer.convert_ids_to_tokens(found) == ["<|end|>", "<|image|>"]
    assert tokenizer.convert_ids_to_tokens(int(ids[positions[0]])) == "<|image|>"


def test_the_tokenizer_is_not_changed_and_threads_do_not_meet(tokenizer: Any) -> None:
    before = json.loads(tokenizer.backend_tokenizer.to_str())
    prompts = [question(text) for text in ("hello", "<|image|>", "x" * 50, "<|end|>y")] * 8
    structured = PromptTokenizer(tokenizer)
    alone = [structured(prompt)[0].tolist() for prompt in prompts]
    with ThreadPoolExecutor(4) as pool:
        together = [result[0].tolist() for result in pool.map(PromptTokenizer(tokenizer), prompts)]
    assert together == alone
    assert json.loads(tokenizer.backend_tokenizer.to_str()) == before


def word_tokenizer(**flags: Any) -> PreTrainedTokenizerFast:
    """A tokenizer that adds a first token, marks word starts, and has other special flags."""
    vocab = {"<s>": 0, "<u>": 1, "<unk>": 2, "▁": 3, **{c: i for i, c in enumerate("abu<>", 4)}}
    backend = Tokenizer(models.BPE(vocab, [], unk_token="<unk>"))
    backend.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first")
    backend.decoder = decoders.Metaspace(prepend_scheme="first")
    backend.post_processor = processors.TemplateProcessing(
        single="<s> $A", special_tokens=[("<s>", 0)]
    )
    backend.add_special_tokens([AddedToken("<u>", special=True, **flags), "<s>"])
    return PreTrainedTokenizerFast(tokenizer_object=backend, bos_token="<s>")


def test_word_starts_are_marked_as_the_tokenizer_would() -> None:
    tokenizer = word_tokenizer()
    clean, dirty = (
        StructuredPrompt(f"<u>a{text}<u>b", (TextSpan(3, 4 + len(text)),)) for text in ("b", "<s>")
    )
    expected = tokenizer(clean.text)["input_ids"]
    assert expected[0] == 0
    assert tokenize(tokenizer, clean)[0].tolist() == expected
    ids = tokenize(tokenizer, dirty)[0].tolist()
    names = tokenizer.convert_ids_to_tokens(ids)
    # One first token, and no word start where the tokenizer puts none.
    assert names[0] == "<s>"
    assert "".join(names[1:]).replace("<unk>", "?") == "<u>a<?><u>b"


def test_white_space_that_a_special_token_swallows_is_no_spelling() -> None:
    tokenizer = word_tokenizer(rstrip=True)
    prompt = StructuredPrompt("<u>  ab", (TextSpan(3, 7),), (MediaSpan(0, 3, 0),))
    ids, positions = tokenize(tokenizer, prompt)
    assert ids.tolist() == tokenizer(prompt.text)["input_ids"]
    assert positions == [1]


def test_a_placeholder_that_is_no_token_is_refused(tokenizer: Any) -> None:
    with pytest.raises(
        ConfigurationError, match="'<|img|>' is not one special token".replace("|", r"\|")
    ):
        tokenize(tokenizer, build(("media", "<|img|>")))


def test_broken_unicode_is_the_requests_fault(tokenizer: Any) -> None:
    with pytest.raises(RequestError, match="lone surrogate at character 9"):
        tokenize(tokenizer, build(("structure", "<|user|>"), ("plain", "a\ud800")))


def test_added_tokens_that_are_not_special_keep_their_ids(phi4mm_checkpoint: Path) -> None:
    tokenizer = AutoTokenizer.from_pretrained(phi4mm_checkpoint)
    tokenizer.add_tokens([AddedToken("<call>", normalized=False), AddedToken("</call>")])
    for typed in ("nothing special", "<|end|>", "<call>"):
        prompt = build(
            ("structure", "<|user|><call>"), ("plain", typed), ("structure", "</call><|end|>")
        )
        ids, _ = tokenize(tokenizer, prompt)
        expected = tokenizer.convert_tokens_to_ids(["<call>", "</call>"])
        assert [ids[1], ids[-2]] == expected, typed
        assert tokenizer.decode(ids) == prompt.text
