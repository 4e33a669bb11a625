# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""A prompt that is made at once is the one that a thread makes, and no long one is made so."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Iterator
from typing import Any

import pytest
from support.media import image_bytes, picture
from transformers import AutoTokenizer

from tensorrt_llm.errors import RequestError
from tensorrt_llm.inputs.media_access import MediaAccess
from tensorrt_llm.inputs.media_io import MediaLoader
from tensorrt_llm.inputs.multimodal_data import MediaHasher
from tensorrt_llm.inputs.registry import create_input_processor
from tensorrt_llm.llmapi.preprocessor import Preprocessor
from tensorrt_llm.serve.openai_protocol import ChatCompletionRequest
from tensorrt_llm.serve.prompt_preparer import PromptPreparer
from tensorrt_llm.serve.tool_use import ToolUse

PICTURE = f"data:image/png;base64,{base64.b64encode(image_bytes(picture(1))).decode()}"
TOOL = {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}


@pytest.fixture(name="prepare", scope="module")
def preparer(phi4mm_checkpoint) -> Iterator[PromptPreparer]:
    tokenizer, hasher = AutoTokenizer.from_pretrained(phi4mm_checkpoint), MediaHasher()
    processor = create_input_processor(str(phi4mm_checkpoint), tokenizer, hasher)
    preprocessor = Preprocessor(processor, tokenizer, len(tokenizer))
    loader = MediaLoader(MediaAccess(), hasher)
    tools = ToolUse(preprocessor.template, tokenizer, None)
    preparer = PromptPreparer(preprocessor, loader, 8, {}, tools)
    yield preparer
    preparer.close()


def both(prepare: PromptPreparer, *messages: Any, **more: Any) -> tuple[Any, Any]:
    """Made at once, and made by a thread."""
    body = ChatCompletionRequest(model="m", messages=list(messages), **more)
    read = prepare.read(body)
    return prepare.at_once(read, body), asyncio.run(prepare.dialogue(read, body))


def user(content: Any) -> dict[str, Any]:
    return {"role": "user", "content": content}


@pytest.mark.parametrize(
    "messages",
    [
        [user("What is it?")],
        [user([{"type": "text", "text": "What"}, {"type": "text", "text": " is it?"}])],
        [{"role": "system", "content": "Be brief."}, user("Hm?"), user("<|image|>")],
        [user("x" * 496)],
    ],
)
def test_a_few_words_make_the_same_prompt_either_way(prepare, messages) -> None:
    at_once, by_thread = both(prepare, *messages)
    assert at_once.token_ids.tolist() == by_thread.token_ids.tolist()
    assert at_once.text == by_thread.text and at_once.items == by_thread.items == ()


@pytest.mark.parametrize(
    "messages",
    [
        [user("x" * 497)],
        [user("x" * 20)] * 15,
        [user([{"type": "image_url", "image_url": {"url": PICTURE}}])],
    ],
    ids=["long", "many", "media"],
)
def test_the_loop_makes_no_other(prepare, messages) -> None:
    at_once, by_thread = both(prepare, *messages)
    assert at_once is None and len(by_thread)


def test_the_loop_makes_none_with_tools(prepare) -> None:
    body = ChatCompletionRequest(model="m", messages=[user("Look.")], tools=[TOOL])
    assert prepare.at_once(prepare.read(body), body) is None


@pytest.mark.parametrize(
    "wrong", [{"media_io_kwargs": {"smell": {}}}, {"mm_processor_kwargs": {"hue": 1}}]
)
def test_mistakes_are_those_of_the_thread(prepare, wrong) -> None:
    body = ChatCompletionRequest(model="m", messages=[user("What?")], **wrong)
    read = prepare.read(body)
    with pytest.raises(RequestError) as at_once:
        prepare.at_once(read, body)
    with pytest.raises(RequestError) as by_thread:
        asyncio.run(prepare.dialogue(read, body))
    assert str(at_once.value) == str(by_thread.value)
