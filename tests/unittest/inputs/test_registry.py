# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""What every family shares: matching placeholders to items, expansion, identities, registration."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.media import clip, picture
from transformers import AutoConfig, AutoTokenizer, LlamaConfig, LlavaConfig

from tensorrt_llm.errors import (
    ConfigurationError,
    MediaError,
    PlaceholderMismatchError,
    RequestError,
    UnsupportedModalityError,
)
from tensorrt_llm.inputs.data import (
    DeferredContent,
    MediaItem,
    PlaceholderRun,
    ProcessedPrompt,
    StructuredPrompt,
)
from tensorrt_llm.inputs.media_memo import MediaMemo
from tensorrt_llm.inputs.multimodal_data import AudioData, EmbeddingData, MediaHasher
from tensorrt_llm.inputs.prepared_item import PreparedItem
from tensorrt_llm.inputs.processors import Phi4MultimodalInputProcessor, TextInputProcessor
from tensorrt_llm.inputs.registry import (
    InputProcessor,
    InputProcessorRegistry,
    create_input_processor,
    fingerprint,
)

HASHER = MediaHasher()


def image_item(seed: int = 0, width: int = 100, height: int = 100, **fields: Any) -> MediaItem:
    data = picture(seed, width, height)
    return MediaItem("image", data, HASHER.payload_digest("image", data), **fields)


def audio_item(seed: int = 0, seconds: float = 0.5, **fields: Any) -> MediaItem:
    data = AudioData(clip(seed, seconds), 16_000)
    return MediaItem("audio", data, HASHER.payload_digest("audio", data), **fields)


@pytest.fixture(scope="module")
def processor(phi4mm_checkpoint: Path) -> InputProcessor:
    tokenizer = AutoTokenizer.from_pretrained(phi4mm_checkpoint)
    return create_input_processor(str(phi4mm_checkpoint), tokenizer, HASHER)


def process(
    processor: InputProcessor, text: str, items: list[MediaItem], **options: Any
) -> ProcessedPrompt:
    return processor.process(processor.locate_placeholders(text, items), items, options)


def assert_runs_hold_exactly_the_placeholders(
    processor: InputProcessor, prompt: ProcessedPrompt, plain: list[int]
) -> None:
    """Brute force: walk the prompt once; every placeholder belongs to the next row due."""
    due = [
        (processor.placeholder_token_id(item.modality), run.position + offset)
        for item in prompt.items
        for run in item.runs
        for offset in range(run.length)
    ]
    placeholders = {processor.placeholder_token_id(kind) for kind in processor.modalities}
    found = [
        (token, position)
        for position, token in enumerate(prompt.token_ids.tolist())
        if token in placeholders
    ]
    assert found == due
    rest = [token for token in prompt.token_ids.tolist() if token not in placeholders]
    assert rest == plain


def test_runs_of_a_mixed_prompt(processor: InputProcessor) -> None:
    items = [audio_item(1), image_item(2, 300, 200), image_item(3), audio_item(4, 1.0)]
    text = "<|user|>a<|image|>b<|audio|><|audio|>c<|image|><|end|>"
    prompt = process(processor, text, items)
    specials = [processor.tokenizer.vocab[name] for name in ("<|user|>", "<|end|>")]
    letters = [processor.tokenizer.vocab[name] for name in "abc"]
    kinds = [item.modality for item in prompt.items]
    assert kinds == ["image", "audio", "audio", "image"]
    assert [item.num_rows for item in prompt.items] == [125, 6, 13, 41]
    plain = [specials[0], *letters, specials[1]]
    assert_runs_hold_exactly_the_placeholders(processor, prompt, plain)
    assert prompt.token_ids.dtype == np.int32
    assert prompt.text == text


@settings(max_examples=40)
@given(st.lists(st.sampled_from(["image", "audio", "text"]), max_size=6))
def test_token_ids_and_text_give_the_same_prompt(
    processor: InputProcessor, kinds: list[str]
) -> None:
    tokenizer = processor.tokenizer
    items = [
        image_item(seed) if kind == "image" else audio_item(seed)
        for seed, kind in enumerate(kinds)
        if kind != "text"
    ]
    text = "".join("so " if kind == "text" else f"<|{kind}|>" for kind in kinds) + "<|end|>"
    by_text = process(processor, text, items)
    by_ids = processor.process(tokenizer(text)["input_ids"], items)
    assert by_text.token_ids.tolist() == by_ids.token_ids.tolist()
    assert [i.identity for i in by_text.items] == [i.identity for i in by_ids.items]
    assert [i.runs for i in by_text.items] == [i.runs for i in by_ids.items]
    placeholders = {processor.placeholder_token_id(kind) for kind in processor.modalities}
    plain = [token for token in tokenizer(text)["input_ids"] if token not in placeholders]
    assert_runs_hold_exactly_the_placeholders(processor, by_text, plain)


def test_numbered_placeholders_name_their_item(processor: InputProcessor) -> None:
    items = [image_item(0), audio_item(0), image_item(1, 300, 200)]
    straight = process(processor, "<|image_1|><|image_2|><|audio_1|>", items)
    crossed = process(processor, "<|image_2|><|image_1|><|audio_1|>", items)
    assert [item.num_rows for item in straight.items] == [41, 125, 6]
    assert [item.num_rows for item in crossed.items] == [125, 41, 6]
    assert straight.text == crossed.text == "<|image|><|image|><|audio|>"
    native = process(processor, "<|image|><|image|><|audio|>", items)
    assert [i.identity for i in native.items] == [i.identity for i in straight.items]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("no place", "0 image placeholders, but 1 image items"),
        ("<|image|><|image|>", "2 image placeholders, but 1 image items"),
        ("<|image_2|>", "names an image that is not there: 1 were given"),
        ("<|image_0|>", "names an image that is not there: 1 were given"),
        ("<|image|><|audio|>", "1 audio placeholders, but 0 audio items"),
    ],
)
def test_placeholders_and_items_must_agree(
    processor: InputProcessor, text: str, message: str
) -> None:
    with pytest.raises(PlaceholderMismatchError, match=message):
        process(processor, text, [image_item()])


def test_one_item_named_twice_is_refused(processor: InputProcessor) -> None:
    with pytest.raises(PlaceholderMismatchError, match="twice and another not at all"):
        process(processor, "<|image_1|><|image_1|>", [image_item(0), image_item(1)])


def test_token_ids_and_items_must_agree(processor: InputProcessor) -> None:
    image = processor.placeholder_token_id("image")
    with pytest.raises(PlaceholderMismatchError, match="2 image placeholders, but 1 image items"):
        processor.process([1, image, image], [image_item()])
    with pytest.raises(PlaceholderMismatchError, match="1 image placeholders, but 0 image items"):
        processor.process([image], [])


def test_a_located_prompt_must_use_every_item(processor: InputProcessor) -> None:
    with pytest.raises(PlaceholderMismatchError, match=r"items \[\], but 1 items"):
        processor.process(StructuredPrompt("hello"), [image_item()])


def test_an_items_fault_names_its_part(processor: InputProcessor) -> None:
    item = image_item(0, 3000, 2, part="messages[0].content[1]")
    with pytest.raises(MediaError, match=r"^messages\[0\]\.content\[1\]: an image of 3000 x 2"):
        process(processor, "<|image|>", [item])


def test_caller_ids_are_mixed_in_and_echoed(processor: InputProcessor) -> None:
    items = [image_item(), image_item(uuid="a"), image_item(uuid="a"), image_item(uuid="b")]
    prompt = process(processor, "<|image|>" * 4, items)
    none, first, second, other = (item.identity for item in prompt.items)
    assert first == second
    assert len({none, first, other}) == 3
    assert [item.uuid for item in prompt.items] == [None, "a", "a", "b"]


def test_unknown_content_has_no_identity_and_known_content_keeps_its_own(
    processor: InputProcessor,
) -> None:
    unknown = MediaItem("image", picture(0), None)
    prompt = process(processor, "<|image|><|image|>", [unknown, image_item(0)])
    assert prompt.items[0].identity is None
    assert prompt.items[1].identity is not None


def test_text_models_refuse_media_and_options(llama_checkpoint: Path) -> None:
    tokenizer = AutoTokenizer.from_pretrained(llama_checkpoint)
    processor = create_input_processor(str(llama_checkpoint), tokenizer, HASHER)
    assert isinstance(processor, TextInputProcessor)
    assert processor.modalities == ()
    prompt = process(processor, "hello <|image|>", [])
    assert prompt.token_ids.tolist() == tokenizer("hello <|image|>")["input_ids"]
    assert (prompt.items, prompt.adapter_mode) == ((), "")
    with pytest.raises(UnsupportedModalityError, match="x: this model does not take audio; it t"):
        process(processor, "hello", [audio_item(part="x")])
    with pytest.raises(UnsupportedModalityError, match=r"takes: text$"):
        processor.placeholder_text("image")
    with pytest.raises(RequestError, match=r"unknown processor option 'dynamic_hd'.*takes: none"):
        process(processor, "hello", [], dynamic_hd=3)


def test_families_are_found_by_model_type(phi4mm_checkpoint: Path) -> None:
    tokenizer = AutoTokenizer.from_pretrained(phi4mm_checkpoint)
    folder = str(phi4mm_checkpoint)
    config = AutoConfig.from_pretrained(folder)
    by_config = create_input_processor(folder, tokenizer, HASHER, config)
    assert isinstance(by_config, Phi4MultimodalInputProcessor)
    assert isinstance(
        create_input_processor(folder, tokenizer, HASHER, LlamaConfig()), TextInputProcessor
    )
    with pytest.raises(ConfigurationError, match="'llava'; multimodal families: gemma3, idefics3"):
        create_input_processor(folder, tokenizer, HASHER, LlavaConfig())


def test_an_unreadable_configuration_is_named(tmp_path: Path, phi4mm_checkpoint: Path) -> None:
    tokenizer = AutoTokenizer.from_pretrained(phi4mm_checkpoint)
    with pytest.raises(ConfigurationError, match="no usable checkpoint"):
        create_input_processor(str(tmp_path), tokenizer, HASHER)


def test_a_model_type_has_one_processor() -> None:
    registry = InputProcessorRegistry()
    registry.register("a", "b")(TextInputProcessor)
    registry.register("a")(TextInputProcessor)
    assert registry.model_types == ("a", "b")
    with pytest.raises(ValueError, match="'b' is already served by TextInputProcessor"):
        registry.register("b")(Phi4MultimodalInputProcessor)


class Framed(TextInputProcessor):
    """A family whose item is two runs of rows with text between and around them."""

    modalities = ("image",)

    def placeholder_token_id(self, modality: str) -> int:
        return 1

    def prepare(
        self, item: MediaItem, options: Mapping[str, Any], present: frozenset[str]
    ) -> PreparedItem:
        return PreparedItem(
            np.array([8, 1, 1, 9, 1, 8], dtype=np.int32),
            np.array([0, 1, 1, 0, 1, 0], dtype=bool),
            encoder_inputs={},
        )


def test_an_item_may_have_text_between_its_rows(llama_checkpoint: Path) -> None:
    tokenizer = AutoTokenizer.from_pretrained(llama_checkpoint)
    framed = Framed(str(llama_checkpoint), LlamaConfig(), tokenizer, HASHER)
    prompt = framed.process([7, 1, 7, 1], [image_item(0), image_item(1)])
    assert prompt.token_ids.tolist() == [7, 8, 1, 1, 9, 1, 8, 7, 8, 1, 1, 9, 1, 8]
    assert [item.runs for item in prompt.items] == [
        (PlaceholderRun(2, 2), PlaceholderRun(5, 1)),
        (PlaceholderRun(9, 2), PlaceholderRun(12, 1)),
    ]


def test_fingerprints_tell_settings_and_versions_apart() -> None:
    assert fingerprint("v1", {"a": 1, "b": 2}) == fingerprint("v1", {"b": 2, "a": 1})
    assert (
        len({fingerprint("v1", {"a": 1}), fingerprint("v2", {"a": 1}), fingerprint("v1", {})}) == 3
    )


class Counted:
    """A processor's ``prepare``, counting calls."""

    def __init__(self, processor: InputProcessor, monkeypatch: pytest.MonkeyPatch) -> None:
        self.calls = 0
        prepare = processor.prepare

        def counted(*args: Any) -> PreparedItem:
            self.calls += 1
            return prepare(*args)

        monkeypatch.setattr(processor, "prepare", counted)


def remembered(
    processor: InputProcessor,
    memo: MediaMemo | None,
    text: str,
    items: list[MediaItem],
    scope: str | None = None,
    **options: Any,
) -> ProcessedPrompt:
    located = processor.locate_placeholders(text, items)
    return processor.process(located, items, options, memo=memo, scope=scope)


def assert_same_prompt(left: ProcessedPrompt, right: ProcessedPrompt) -> None:
    np.testing.assert_array_equal(left.token_ids, right.token_ids)
    assert left.adapter_mode == right.adapter_mode
    for one, other in zip(left.items, right.items, strict=True):
        assert (one.identity, one.runs, one.uuid, one.part) == (
            other.identity,
            other.runs,
            other.uuid,
            other.part,
        )
        assert one.encoder_kwargs == other.encoder_kwargs
        assert one.encoder_inputs.keys() == other.encoder_inputs.keys()
        for name, tensor in one.encoder_inputs.items():
            np.testing.assert_array_equal(tensor.numpy(), other.encoder_inputs[name].numpy())


def test_a_repeat_is_not_prepared_until_its_inputs_are_looked_at(processor, monkeypatch) -> None:
    memo, counted = MediaMemo(), Counted(processor, monkeypatch)
    text = "<|image_1|> and <|audio_1|>: what?"
    first = remembered(processor, memo, text, [image_item(1, part="p"), audio_item(2, uuid="u")])
    assert counted.calls == 2
    again = remembered(processor, memo, text, [image_item(1, part="p"), audio_item(2, uuid="u")])
    assert counted.calls == 2
    assert_same_prompt(
        again, remembered(processor, None, text, [image_item(1, part="p"), audio_item(2, uuid="u")])
    )
    assert_same_prompt(again, first)
    # Two without a memo, and the two whose inputs were looked at, once each.
    assert counted.calls == 6


def test_a_repeat_does_not_decode(processor) -> None:
    memo = MediaMemo()
    item = image_item(3)
    remembered(processor, memo, "<|image_1|>", [item])

    def decode() -> None:
        raise MediaError("decoded after all")

    deferred = MediaItem("image", DeferredContent(decode), item.payload_digest)
    prompt = remembered(processor, memo, "<|image_1|>", [deferred])
    with pytest.raises(MediaError, match="decoded after all"):
        dict(prompt.items[0].encoder_inputs)


def test_what_decides_an_item_is_what_it_is_remembered_by(processor, monkeypatch) -> None:
    memo, counted = MediaMemo(), Counted(processor, monkeypatch)

    def calls(text: str, items: list[MediaItem], **how: Any) -> int:
        before = counted.calls
        prompt = remembered(processor, memo, text, items, **how)
        made = counted.calls - before
        how.pop("scope", None)
        assert_same_prompt(prompt, remembered(processor, None, text, items, **how))
        return made

    image, audio = image_item(4, 900, 600), audio_item(4)
    assert calls("<|image_1|>", [image]) == 1
    assert calls("<|image_1|>", [image], dynamic_hd=1) == 1
    assert calls("<|image_1|>", [image_item(5)]) == 1
    assert calls("<|image_1|>", [image], scope="tenant") == 1
    assert calls("<|audio_1|>", [audio]) == 1
    # Sound beside a picture is another item than sound alone; so both are made anew.
    assert calls("<|image_1|><|audio_1|>", [image, audio]) == 2
    for text, items, how in (
        ("<|image_1|>", [image], {}),
        ("<|image_1|>", [image], {"dynamic_hd": 1}),
        ("<|image_1|> again", [image_item(4, 900, 600, uuid="x")], {}),
        ("<|image_1|>", [image], {"scope": "tenant"}),
        ("<|audio_1|>", [audio], {}),
        ("<|audio_1|><|image_1|>", [image, audio], {}),
    ):
        assert calls(text, items, **how) == 0


def test_an_unknown_digest_is_never_remembered(processor, monkeypatch) -> None:
    memo, counted = MediaMemo(), Counted(processor, monkeypatch)
    for _ in range(2):
        unknown = MediaItem("image", picture(0), None)
        prompt = remembered(processor, memo, "<|image_1|>", [unknown])
        assert prompt.items[0].identity is None
    assert counted.calls == 2
    assert memo.stats.entries == 0


def test_embeddings_are_refused_with_the_reason(processor, monkeypatch) -> None:
    monkeypatch.setattr(type(processor), "embedding_modalities", ())
    rows = EmbeddingData(np.ones((3, 8), np.float32))
    item = MediaItem("image", rows, HASHER.payload_digest("image", rows), part="here")
    with pytest.raises(RequestError, match=r"here: .*no precomputed image embeddings; send the"):
        remembered(processor, None, "<|image_1|>", [item])
