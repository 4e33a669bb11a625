# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import gc
import threading
import time
import weakref

import pytest

from tensorrt_llm.errors import MediaError
from tensorrt_llm.inputs.data import (
    DeferredContent,
    DeferredInputs,
    MediaItem,
    MediaSpan,
    StructuredPrompt,
    TextSpan,
)


def test_deferred_content_is_made_once_by_whichever_thread_asks_first():
    made = []

    def load() -> object:
        time.sleep(0.01)
        made.append(1)
        return object()

    content, seen = DeferredContent(load), []
    threads = [threading.Thread(target=lambda: seen.append(content.get())) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == 1
    assert len(seen) == 8
    assert len(set(seen)) == 1


def test_a_failure_is_raised_and_tried_again():
    outcomes = iter([MediaError("gone"), "there"])

    def load() -> str:
        outcome = next(outcomes)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    item = MediaItem("image", DeferredContent(load), None)
    with pytest.raises(MediaError, match="gone"):
        _ = item.data
    assert item.data == item.data == "there"


def test_what_made_the_content_is_let_go():
    class Source:
        pass

    source = Source()
    content = DeferredContent(lambda kept=source: "made" if kept else "")
    gone = weakref.ref(source)
    del source
    assert content.get() == "made"
    gc.collect()
    assert gone() is None


def test_content_that_is_there_is_the_data():
    assert MediaItem("image", "payload", None).data == "payload"


def test_deferred_inputs_are_a_mapping_made_at_the_first_look():
    looks = []

    def load() -> dict[str, int]:
        looks.append(1)
        return {"a": 1, "b": 2}

    inputs = DeferredInputs(load)
    assert not looks
    assert dict(inputs) == {"a": 1, "b": 2}
    assert (len(inputs), inputs["b"], "c" in inputs, next(iter(inputs.items()))) == (
        2,
        2,
        False,
        ("a", 1),
    )
    assert len(looks) == 1


def test_a_frame_moves_every_span_with_its_text():
    text = "user: a[X][Y]b [Z]"
    prompt = StructuredPrompt(
        text,
        (TextSpan(6, 7), TextSpan(13, 15)),
        (MediaSpan(7, 10, 1), MediaSpan(10, 13, 0), MediaSpan(15, 18, 2)),
        add_special_tokens=False,
    )
    framed = prompt.framed("<<", "|")
    assert framed.text == "user: a<<[X]|<<[Y]|b <<[Z]|"
    assert [framed.text[span.start : span.end] for span in framed.plain] == ["a", "b "]
    assert [framed.text[span.start : span.end] for span in framed.media] == ["[X]", "[Y]", "[Z]"]
    assert [span.item for span in framed.media] == [1, 0, 2]
    assert framed.add_special_tokens is False
    assert prompt.framed("", "") is prompt
