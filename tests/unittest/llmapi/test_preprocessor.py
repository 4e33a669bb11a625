# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""A conversation that was just seen is not rendered again, and no other is taken for it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from support.media import clip, picture
from transformers import AutoTokenizer

from tensorrt_llm.errors import RequestError
from tensorrt_llm.inputs.chat_template import MediaPart, TextPart, render_chat
from tensorrt_llm.inputs.media_access import MediaAccess
from tensorrt_llm.inputs.media_io import MediaLoader
from tensorrt_llm.inputs.media_memo import MediaMemo
from tensorrt_llm.inputs.multimodal_data import MediaHasher
from tensorrt_llm.inputs.registry import create_input_processor
from tensorrt_llm.llmapi import preprocessor as module
from tensorrt_llm.llmapi.preprocessor import ChatOptions, Preprocessor

HASHER = MediaHasher()
LOADER = MediaLoader(MediaAccess(trusted=True), HASHER)


@pytest.fixture(name="renderings")
def counted_renderings(monkeypatch) -> Iterator[list[Any]]:
    calls: list[Any] = []

    def counted(*args: Any, **kwargs: Any) -> Any:
        calls.append(args)
        return render_chat(*args, **kwargs)

    monkeypatch.setattr(module, "render_chat", counted)
    yield calls


@pytest.fixture(name="make", scope="module")
def preprocessor_maker(phi4mm_checkpoint):
    tokenizer = AutoTokenizer.from_pretrained(phi4mm_checkpoint)
    processor = create_input_processor(str(phi4mm_checkpoint), tokenizer, HASHER)

    def make(template: str | None = None) -> Preprocessor:
        return Preprocessor(processor, tokenizer, len(tokenizer), template, MediaMemo())

    return make


def user(*parts: Any) -> list[dict[str, Any]]:
    return [{"role": "user", "content": parts[0] if isinstance(parts[0], str) else list(parts)}]


SOUND, SIGHT = MediaPart("audio", 0), MediaPart("image", 0)
ITEMS = {
    "audio": LOADER.load("audio", (clip(1), 16_000)),
    "image": LOADER.load("image", picture(1)),
}


def run(preprocessor: Preprocessor, messages: Any, scope: str | None = None, **options: Any):
    content = messages[0]["content"]
    media = [part for part in content if isinstance(part, MediaPart)]
    items = [ITEMS[part.modality] for part in media]
    return preprocessor.process_chat(messages, items, ChatOptions(**options), scope=scope)


@pytest.mark.parametrize("parts", [("Hello",), (SOUND, TextPart("What?")), (TextPart("a"), SIGHT)])
def test_a_repeat_is_not_rendered_and_is_the_same(make, renderings, parts) -> None:
    preprocessor = make()
    first = run(preprocessor, user(*parts))
    again = run(preprocessor, user(*parts))
    fresh = run(make(), user(*parts))
    assert len(renderings) == 2
    for other in (again, fresh):
        assert np.array_equal(first.token_ids, other.token_ids)
        assert first.text == other.text
        assert [item.runs for item in first.items] == [item.runs for item in other.items]
        assert [item.identity for item in first.items] == [item.identity for item in other.items]


def test_another_item_in_the_same_words_is_not_rendered_again(make, renderings) -> None:
    preprocessor = make()
    messages = user(SOUND, TextPart("What?"))
    first = run(preprocessor, messages)
    other = LOADER.load("audio", (clip(2, seconds=3.0), 16_000))
    second = preprocessor.process_chat(messages, [other], ChatOptions())
    assert len(renderings) == 1
    assert first.items[0].identity != second.items[0].identity
    assert first.items[0].num_rows != second.items[0].num_rows


def test_no_other_conversation_is_taken_for_it(make, renderings) -> None:
    preprocessor = make()
    template = {"template_kwargs": {"think": True}}
    cases: list[tuple[Any, dict[str, Any]]] = [
        (user("Hello"), {}),
        (user("Hello "), {}),
        (user(TextPart("Hello")), {}),
        (user(TextPart("Hel"), TextPart("lo")), {}),
        (user(TextPart("audio"), TextPart("0")), {}),
        (user(SOUND, TextPart("0")), {}),
        (user(TextPart("0"), SOUND), {}),
        (user(SIGHT, TextPart("0")), {}),
        ([{"role": "assistant", "content": "Hello"}], {}),
        (user("Hello") + user("Hello"), {}),
        (user("Hello"), {"add_generation_prompt": False}),
        (user("Hello"), {"add_special_tokens": True}),
        (user("Hello"), template),
        (user("Hello"), {"template_kwargs": {"think": 1}}),
        (user("Hello"), {"template_kwargs": {"think": 1.0}}),
        (user("Hello"), {"scope": "tenant"}),
        (user("Hello"), {"scope": ""}),
    ]
    expected = [run(make(), messages, **options).token_ids.tolist() for messages, options in cases]
    renderings.clear()
    for turn in range(2):
        for (messages, options), tokens in zip(cases, expected, strict=True):
            assert run(preprocessor, messages, **options).token_ids.tolist() == tokens
        assert len(renderings) == len(cases), turn


WRITES_SCHEMA = "{% for m in messages %}{{ m.content }}{% endfor %}{{ schema | tojson }}"
WRITES_CALLS = "{% for m in messages %}{{ m.content }}{{ m.calls }}{% endfor %}"


@pytest.mark.parametrize("template", [WRITES_SCHEMA, WRITES_CALLS], ids=["kwargs", "messages"])
def test_what_a_template_would_write_differently_is_another_prompt(
    make, renderings, template
) -> None:
    values: list[Any] = [
        {"a": 1, "b": 2},
        {"b": 2, "a": 1},
        [["a", 1], ["b", 2]],
        ["a", 1, "b", 2],
        ["dict", "a", 1, "b", 2],
        {"a": {"x": 1, "y": 2}},
        {"a": {"y": 2, "x": 1}},
        {"a": 1, "b": 2.0},
        {"a": True, "b": 2},
        {"a": None, "b": 2},
    ]
    if template is WRITES_CALLS:
        values += [("a", 1, "b", 2), [("a", 1)], [{"a": 1}, {"b": 2}], {1: 2}, {"1": 2}]
    preprocessor = make(template)

    def prompt(value: Any) -> str | None:
        if template is WRITES_SCHEMA:
            return run(preprocessor, user("Hello"), template_kwargs={"schema": value}).text
        return run(preprocessor, [{"role": "user", "content": "Hello", "calls": value}]).text

    texts = [prompt(value) for value in values]
    assert len(set(texts)) == len(renderings) == len(values)
    assert [prompt(value) for value in values] == texts
    assert len(renderings) == len(values), "the same in the same order is known"


def test_what_cannot_be_told_apart_is_rendered_anew(make, renderings) -> None:
    class Named(int):
        """A template may write it in a way of its own."""

    preprocessor = make("{% for m in messages %}{{ m.content }}{% endfor %}{{ word }}")
    for value in (1, Named(1), Named(1)):
        assert run(preprocessor, user("Hello"), template_kwargs={"word": value}).text == "Hello1"
    assert len(renderings) == 3


def test_a_value_that_is_nested_too_deep_is_refused(make) -> None:
    deep: list[Any] = []
    for _ in range(5000):
        deep = [deep]
    preprocessor = make("{% for m in messages %}{{ m.content }}{% endfor %}{{ word | string }}")
    with pytest.raises(RequestError, match="the chat template refuses the messages"):
        run(preprocessor, user("Hello"), template_kwargs={"word": deep})
    assert run(preprocessor, user("Hello"), template_kwargs={"word": "a"}).text == "Helloa"


@pytest.mark.parametrize(
    "written", ["{{ strftime_now('%Y') }}", "{{ ['a', 'b'] | random }}"], ids=["time", "chance"]
)
def test_what_a_template_makes_anew_is_rendered_anew(make, renderings, written) -> None:
    text = "{% for m in messages %}{{ m.content }}{% endfor %}" + written
    preprocessor = make(text)
    for turn in range(1, 4):
        run(preprocessor, user("Hello"))
        assert len(renderings) == turn


def test_what_is_kept_is_bounded(make, renderings, monkeypatch) -> None:
    monkeypatch.setattr(module, "PROMPT_MEMO_BYTES", 20_000)
    preprocessor = make()
    texts = [f"{number} " * 200 for number in range(40)]
    for text in texts:
        run(preprocessor, user(text))
    assert preprocessor.prompt_memo_stats.bytes <= 20_000
    assert preprocessor.prompt_memo_stats.evictions > 20
    run(preprocessor, user(texts[-1]))
    assert len(renderings) == 40
    run(preprocessor, user(texts[0]))
    assert len(renderings) == 41
