# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""The Python door on a real engine with a tiny checkpoint."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from pydantic import ValidationError
from support.av_media import video_bytes
from support.checkpoints import build_checkpoint
from support.media import RATE, clip, image_bytes, picture, wav_bytes
from support.prompts import PromptMaker
from support.reference import ReferenceModel

import tensorrt_llm
from benchmarks.prefix_model import PrefixModel, scope_of, token_keys
from tensorrt_llm.errors import (
    ConfigurationError,
    LimitExceededError,
    MediaError,
    PlaceholderMismatchError,
    RequestError,
    UnsupportedModalityError,
)
from tensorrt_llm.inputs import processors
from tensorrt_llm.inputs.media_limits import MediaLimits
from tensorrt_llm.inputs.multimodal_data import AudioData
from tensorrt_llm.inputs.processors import TextInputProcessor
from tensorrt_llm.inputs.video_form import VideoOptions, decode_video
from tensorrt_llm.llmapi import KvCacheConfig, RequestOutput, llm
from tensorrt_llm.llmapi.llm import LLM
from tensorrt_llm.sampling_params import SamplingParams

BLOCK = 32
LEAD = "Read these notes with great care before you answer. " * 4
SHORT = SamplingParams(max_tokens=6)


@pytest.fixture(scope="module", name="model")
def running_model(phi4mm_checkpoint: Path, engine_host) -> Iterator[LLM]:
    config = KvCacheConfig(max_tokens=16_384)
    options = {"kv_cache_config": config, "engine_host": engine_host}
    with LLM(str(phi4mm_checkpoint), max_seq_len=8192, **options) as running:
        yield running


def ask(model: LLM, inputs: Any, sampling: SamplingParams = SHORT, **more: Any) -> RequestOutput:
    return model.generate(inputs, sampling, use_tqdm=False, **more)


def with_media(words: str = "What is it?", **media: Any) -> dict:
    holders = "".join(
        f"<|{modality}|>" * (len(items) if isinstance(items, list) else 1)
        for modality, items in media.items()
    )
    return {
        "prompt": f"<|user|>{LEAD}{holders}{words}<|end|><|assistant|>",
        "multi_modal_data": media,
    }


def full_repeat(result: RequestOutput) -> int:
    return len(result.prompt_token_ids) - 1


def test_greedy_answers_equal_the_unmodified_model(model: LLM, phi4mm_checkpoint: Path) -> None:
    from transformers import AutoModelForCausalLM

    ids = model.tokenizer("Hello there, how are you today?")["input_ids"]
    reference = AutoModelForCausalLM.from_pretrained(phi4mm_checkpoint, dtype=torch.float32)
    expected = reference.generate(torch.tensor([ids]), max_new_tokens=8, do_sample=False)
    result = ask(model, ids, SamplingParams(max_tokens=8))
    assert result.outputs[0].token_ids == expected[0, len(ids) :].tolist()


def test_one_prompt_gives_one_answer_and_a_list_gives_a_list(model: LLM) -> None:
    ids = model.tokenizer("Hello")["input_ids"]
    one = ask(model, "Hello")
    assert isinstance(one, RequestOutput)
    assert (one.prompt, one.prompt_token_ids) == ("Hello", ids)
    several = ask(model, ["Hello", ids, {"prompt": "Hello"}, {"prompt_token_ids": ids}])
    assert isinstance(several, list)
    assert [r.outputs[0].text for r in several] == [one.outputs[0].text] * 4
    assert ask(model, []) == []


def test_per_prompt_arguments(model: LLM) -> None:
    sampling = [SamplingParams(max_tokens=n) for n in (1, 3)]
    results = model.generate(["Hello", "Hello"], sampling, use_tqdm=False)
    assert [r.outputs[0].length for r in results] == [1, 3]
    default = model.generate("Hello", use_tqdm=False)
    assert default.outputs[0].length <= SamplingParams().max_tokens
    salts = ["one", "two", "one"]
    for salt in salts:
        ask(model, LEAD + LEAD, cache_salt=salt)
    both = ask(model, [LEAD + LEAD] * 2, cache_salt=["one", "three"])
    assert [r.cached_tokens for r in both] == [full_repeat(both[0]), 0]
    with pytest.raises(ValueError, match="sampling_params has 1 entries for 2 prompts"):
        model.generate(["a", "b"], [SHORT])
    with pytest.raises(RequestError, match="cache_salt: must not be blank"):
        ask(model, "a", cache_salt=" ")


@pytest.mark.parametrize("modality", ["image", "audio"])
def test_every_form_of_an_item_is_the_same_item(model: LLM, tmp_path: Path, modality: str) -> None:
    if modality == "image":
        item: Any = picture(7)
        data, name = image_bytes(item), "p.png"
        forms = [item, data]
    else:
        samples = clip(7)
        data, name = wav_bytes(samples, subtype="FLOAT"), "c.wav"
        forms = [(samples, RATE), AudioData(samples, RATE), data]
    file = tmp_path / name
    file.write_bytes(data)
    forms += [str(file), file, file.as_uri(), [str(file)]]
    results = [ask(model, with_media(**{modality: form})) for form in forms]
    assert len({r.outputs[0].text for r in results}) == 1
    assert [r.cached_tokens for r in results[1:]] == [full_repeat(results[0])] * (len(forms) - 1)


def test_cached_tokens_equal_a_brute_force_model(model: LLM) -> None:
    media = {"i1": picture(21), "i2": picture(22), "a1": (clip(21), RATE), "a2": (clip(22), RATE)}
    plans = [("i1",), ("a1",), ("i1", "i2"), ("a1",), ("a2",), ("i1", "a1"), ("i1", "i2"), ("i2",)]
    brute_force = PrefixModel(BLOCK)
    for plan in plans:
        images = [media[name] for name in plan if name[0] == "i"]
        audio = [media[name] for name in plan if name[0] == "a"]
        kinds = {k: v for k, v in (("image", images), ("audio", audio)) if v}
        prepared = model.preprocess(with_media(f"About {plan[0]}?", **kinds))
        keys = token_keys(prepared.prompt, plan)
        scope = scope_of(prepared.prompt, "brute force")
        result = model.generate_async(prepared, SHORT, cache_salt="brute force").result()
        assert result.cached_tokens == brute_force.longest(keys, scope)
        written = result.outputs[0].token_ids[:-1]
        brute_force.write(token_keys(prepared.prompt, plan, written), scope)


def test_placeholder_forms_and_ids(model: LLM) -> None:
    pictures = [picture(31), picture(32)]
    data = {"multi_modal_data": {"image": pictures}}
    plain = ask(model, {"prompt": f"{LEAD}<|image|> and <|image|>", **data})
    numbered = ask(model, {"prompt": f"{LEAD}<|image_1|> and <|image_2|>", **data})
    ids = model.tokenizer(f"{LEAD}<|image|> and <|image|>")["input_ids"]
    by_ids = ask(model, {"prompt_token_ids": ids, **data})
    swapped = ask(model, {"prompt": f"{LEAD}<|image_2|> and <|image_1|>", **data})
    assert plain.prompt_token_ids == numbered.prompt_token_ids == by_ids.prompt_token_ids
    assert numbered.cached_tokens == by_ids.cached_tokens == full_repeat(plain)
    assert swapped.cached_tokens < full_repeat(plain)


def test_ids_of_callers_are_part_of_the_identity(model: LLM) -> None:
    inputs = with_media(image=picture(41))
    first = ask(model, {**inputs, "multi_modal_uuids": {"image": ["mine"]}})
    again = ask(model, {**inputs, "multi_modal_uuids": {"image": "mine"}})
    other = ask(model, {**inputs, "multi_modal_uuids": {"image": ["yours"]}})
    assert again.cached_tokens == full_repeat(first)
    assert other.cached_tokens < full_repeat(first)
    assert first.outputs[0].text == other.outputs[0].text


def test_awaiting_and_streaming(model: LLM) -> None:
    whole = ask(model, with_media(audio=(clip(51), RATE)))

    async def play() -> None:
        awaited = await model.generate_async(with_media(audio=(clip(51), RATE)), SHORT)
        assert awaited.outputs[0].text == whole.outputs[0].text
        pieces = []
        stream = model.generate_async(with_media(audio=(clip(51), RATE)), SHORT, streaming=True)
        async for update in stream:
            pieces.append(update.outputs[0].text_diff)
        assert "".join(pieces) == whole.outputs[0].text
        assert stream.finished and stream.cached_tokens == full_repeat(whole)

    asyncio.run(play())


def test_beams_are_not_streamed(model: LLM) -> None:
    beams = SamplingParams(max_tokens=4, use_beam_search=True, best_of=2)
    with pytest.raises(RequestError, match="use_beam_search") as refused:
        model.generate_async("Hello", beams, streaming=True)
    assert refused.value.part == "streaming"
    assert model.generate_async("Hello", beams).result(60).outputs[0].length == 4
    plain = SamplingParams(max_tokens=4, ignore_eos=True)
    assert model.generate_async("Hello", plain, streaming=True).result(60).outputs[0].length == 4


def test_abort(model: LLM) -> None:
    long = SamplingParams(max_tokens=4000, ignore_eos=True)
    result = model.generate_async("Hello", long)
    next(iter(result))
    result.abort()
    assert result.result(timeout=60).outputs[0].finish_reason == "cancelled"
    assert result.outputs[0].length < 4000


def test_preprocess_runs_nothing_and_its_result_may_be_used_again(model: LLM) -> None:
    ready = model.preprocess(with_media(image=picture(61)))
    assert isinstance(ready.prompt_token_ids, list)
    model.get_stats(timeout=0)
    assert model.get_stats(timeout=0) == []
    first, second = ask(model, ready), ask(model, ready)
    assert first.prompt_token_ids == ready.prompt_token_ids
    assert second.cached_tokens == full_repeat(first)
    assert model.get_stats(timeout=0)


@pytest.mark.parametrize(
    ("inputs", "error", "match"),
    [
        (None, TypeError, "not NoneType"),
        ({}, TypeError, "a prompt is"),
        ({"prompt": None}, TypeError, "prompt must be a str"),
        ({"prompt": 5}, TypeError, "prompt must be a str"),
        ("", RequestError, "holds no tokens"),
        ([1, 99_999], RequestError, "token id 99999 is outside the vocabulary of 1280"),
        ({"prompt_token_ids": [2**40]}, RequestError, "outside the vocabulary"),
        ({"prompt_token_ids": ["a"]}, TypeError, "must be int"),
        ("word " * 9000, LimitExceededError, "max_seq_len"),
        (with_media(video="x"), UnsupportedModalityError, "it takes: text, image, audio"),
        (with_media(image="no/such.png"), MediaError, r"^multi_modal_data.image\[0\]: "),
        (with_media(audio=5), MediaError, r"^multi_modal_data.audio\[0\]: "),
        ({"prompt": "no holder", "multi_modal_data": {"image": picture(1)}}, RequestError, "0 im"),
        ({"prompt": "<|image|>"}, PlaceholderMismatchError, "1 image placeholders, but 0"),
        ({"prompt": "x", "mm_processor_kwargs": {"hue": 1}}, RequestError, "hue"),
        ({"prompt": "x", "encoder_inputs": [1]}, ValueError, "encoder_inputs: unknown key"),
    ],
)
def test_wrong_prompts_raise_and_leave_the_model_as_it_was(model, inputs, error, match) -> None:
    with pytest.raises(error, match=match):
        ask(model, inputs)
    assert ask(model, "Hello").finished


def test_a_wrong_prompt_in_a_list_starts_nothing(model: LLM) -> None:
    model.get_stats(timeout=0)
    with pytest.raises(MediaError):
        ask(model, ["Hello", with_media(image="no/such.png")])
    assert model.get_stats(timeout=0) == []


@pytest.mark.parametrize(
    "name",
    [
        "prompt_adapter_request",
        "disaggregated_params",
        "scheduling_params",
        "conversation_params",
    ],
)
def test_arguments_of_later_releases_are_refused_by_name(model: LLM, name: str) -> None:
    for call in (model.generate, model.generate_async):
        with pytest.raises(NotImplementedError, match=f"^{name} is not available"):
            call("Hello", **{name: object()})


def test_priorities(model: LLM) -> None:
    assert ask(model, ["Hello"] * 2, priority=[0.5, 0.5])
    with pytest.raises(ValueError, match=r"priority: must be in \[0, 1\], got 1.5"):
        ask(model, "Hello", priority=1.5)
    with pytest.raises(ValueError, match="priority has 1 entries for 2 prompts"):
        ask(model, ["Hello"] * 2, priority=[0.5])
    assert ask(model, ["Hello", "Hello"], priority=[0.1, 0.9])


def test_after_shutdown_every_call_says_so(llama_checkpoint: Path, monkeypatch) -> None:
    """The folder may be a relative one, though the engine's process works in another."""
    monkeypatch.chdir(llama_checkpoint.parent)
    with LLM(llama_checkpoint.name, kv_cache_config={"max_tokens": 1024}) as running:
        assert running.is_healthy()
        assert ask(running, "Hello").finished
    running.shutdown()
    assert not running.is_healthy()
    for call in (
        lambda: ask(running, "Hello"),
        lambda: running.generate_async("Hello"),
        lambda: running.preprocess("Hello"),
        running.get_stats,
    ):
        with pytest.raises(RuntimeError, match="shut down"):
            call()


def test_reuse_can_be_switched_off(llama_checkpoint: Path, engine_host) -> None:
    answers = []
    for enabled in (True, False):
        config = {"enable_block_reuse": enabled, "max_tokens": 1024}
        options = {"kv_cache_config": config, "engine_host": engine_host}
        with LLM(str(llama_checkpoint), **options) as running:
            results = [ask(running, LEAD) for _ in range(2)]
        assert results[1].cached_tokens == (full_repeat(results[0]) if enabled else 0)
        answers += [r.outputs[0].text for r in results]
    assert len(set(answers)) == 1


def test_wrong_options_are_logged_and_raised(
    llama_checkpoint: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.ERROR, "tensorrt_llm"), pytest.raises(ValidationError):
        LLM(str(llama_checkpoint), frobnicate=1)
    assert "frobnicate" in caplog.text
    with pytest.raises(ConfigurationError, match="there is no folder"):
        LLM("no/such/folder")


def test_a_family_of_the_program_itself_needs_the_engine_in_it(
    llama_checkpoint: Path, monkeypatch
) -> None:
    class Own(TextInputProcessor):
        pass

    monkeypatch.setattr(processors, "TextInputProcessor", Own)
    with pytest.raises(ConfigurationError, match=r"Own was registered .*SINGLE_PROCESS=1"):
        LLM(str(llama_checkpoint))
    monkeypatch.setenv("TLLM_WORKER_USE_SINGLE_PROCESS", "1")
    with LLM(str(llama_checkpoint), kv_cache_config={"max_tokens": 1024}) as running:
        assert ask(running, "Hello").finished


def test_disaggregated_mode_is_refused(llama_checkpoint: Path, monkeypatch) -> None:
    monkeypatch.setenv("TLLM_MULTIMODAL_DISAGGREGATED", "1")
    with pytest.raises(NotImplementedError, match="TLLM_MULTIMODAL_DISAGGREGATED"):
        LLM(str(llama_checkpoint))


def test_public_names() -> None:
    assert tensorrt_llm.LLM is LLM
    assert llm.RequestOutput is RequestOutput
    for name in tensorrt_llm.llmapi.__all__:
        assert getattr(tensorrt_llm.llmapi, name) is not None
    with pytest.raises(AttributeError):
        tensorrt_llm.llmapi.frobnicate  # noqa: B018


def test_a_video_of_another_family(checkpoint_root: Path, engine_host) -> None:
    checkpoint = build_checkpoint("qwen2_5_vl", checkpoint_root)
    text = "<|vision_start|><|video_pad|><|vision_end|> What is it?"
    data, other = (video_bytes(frames=6, fps=2, pixels=pixels) for pixels in (_noise(1), _noise(2)))
    chosen = decode_video(data, VideoOptions(), MediaLimits())
    expected = ReferenceModel(checkpoint).greedy(PromptMaker(checkpoint)(text, chosen), 6)
    config = KvCacheConfig(max_tokens=16_384)
    options = {"kv_cache_config": config, "engine_host": engine_host}
    with LLM(str(checkpoint), max_seq_len=4096, **options) as model:
        sampling = SamplingParams(max_tokens=6, ignore_eos=True)

        def told(video: Any, **more: Any) -> RequestOutput:
            given = {"prompt": text, "multi_modal_data": {"video": video}, **more}
            return ask(model, given, sampling)

        first = told(data)
        assert first.outputs[0].token_ids == expected.tokens
        # The same frames, decoded by the caller.
        assert told(chosen).cached_tokens == full_repeat(first)
        rows = first.prompt_token_ids.index(model.tokenizer.convert_tokens_to_ids("<|video_pad|>"))
        assert told(other).cached_tokens == rows
        fewer = told(data, media_io_kwargs={"video": {"num_frames": 2}})
        assert fewer.cached_tokens == rows and len(fewer.prompt_token_ids) < len(
            first.prompt_token_ids
        )


def _noise(seed: int) -> Any:
    def pixels(number: int, total: int) -> np.ndarray:
        rng = np.random.default_rng(64 * seed + number)
        return rng.integers(0, 256, (64, 96, 3), np.uint8)

    return pixels


def test_statistics_and_answers_inside_a_running_event_loop(model: LLM) -> None:
    async def notebook() -> tuple[list[dict], RequestOutput, list[str]]:
        # A cell of a notebook runs while its loop does: blocking calls have to work there too.
        whole = ask(model, LEAD + "In a notebook.")
        texts = [part.outputs[0].text async for part in model.generate_async(LEAD, SHORT)]
        records = [record async for record in model.get_stats_async(timeout=0.2)]
        return records, whole, texts

    model.get_stats(timeout=0)
    records, whole, texts = asyncio.run(notebook())
    assert whole.finished and texts[-1].startswith(texts[0])
    assert sum(record["inflightBatchingStats"]["numGenRequests"] for record in records) > 0
    assert model.get_stats(timeout=0) == []
    capacity = model.get_kv_cache_capacity()
    assert capacity["maxNumTokens"] == 16_384
    assert capacity["maxNumBlocks"] * capacity["tokensPerBlock"] == capacity["maxNumTokens"]
