# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""The text processor on its own: exactly the tokenizer's ids, and its own tokens on request."""

from __future__ import annotations

from pathlib import Path

import pytest
from transformers import AutoConfig, AutoTokenizer

from tensorrt_llm.errors import UnsupportedModalityError
from tensorrt_llm.inputs.data import MediaItem, StructuredPrompt, TextSpan
from tensorrt_llm.inputs.multimodal_data import MediaHasher
from tensorrt_llm.inputs.processors.text import TextInputProcessor


@pytest.fixture(scope="module")
def processor(llama_checkpoint: Path) -> TextInputProcessor:
    config = AutoConfig.from_pretrained(llama_checkpoint)
    tokenizer = AutoTokenizer.from_pretrained(llama_checkpoint)
    return TextInputProcessor(str(llama_checkpoint), config, tokenizer, MediaHasher())


def test_text_and_ids(processor: TextInputProcessor) -> None:
    expected = processor.tokenizer("<|user|>hello<|end|>")["input_ids"]
    by_text = processor.process(processor.locate_placeholders("<|user|>hello<|end|>", []), [])
    by_ids = processor.process(expected, [])
    assert by_text.token_ids.tolist() == by_ids.token_ids.tolist() == expected
    assert (by_text.text, by_ids.text) == ("<|user|>hello<|end|>", None)


def test_an_empty_prompt_is_empty(processor: TextInputProcessor) -> None:
    assert len(processor.process(StructuredPrompt(""), [])) == 0
    assert len(processor.process([], [])) == 0


def test_a_users_special_token_is_text(processor: TextInputProcessor) -> None:
    prompt = processor.process(StructuredPrompt("<|end|>", (TextSpan(0, 7),)), [])
    end = processor.tokenizer.convert_tokens_to_ids("<|end|>")
    assert end not in prompt.token_ids
    assert processor.process(StructuredPrompt("<|end|>"), []).token_ids.tolist() == [end]


def test_there_is_nothing_to_prepare(processor: TextInputProcessor) -> None:
    with pytest.raises(UnsupportedModalityError, match="does not take image"):
        processor.prepare(MediaItem("image", None, None), {}, frozenset())
    with pytest.raises(UnsupportedModalityError, match="does not take image"):
        processor.placeholder_token_id("image")
