# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Phi-4-multimodal: rows merged as the stock model does, projection modes, crops, longrope.

Logits and tokens are compared with the stock model's in test_modeling_utils.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from support.flattened import embeddings, encoded, run_flattened
from support.media import clip, picture
from support.reference import ReferenceModel
from transformers import (
    AutoConfig,
    AutoTokenizer,
    Phi4MultimodalConfig,
    Phi4MultimodalForCausalLM,
)

from tensorrt_llm._torch.models import load_model
from tensorrt_llm._torch.models.modeling_phi4mm import Phi4MultimodalModel
from tensorrt_llm.inputs.data import MediaItem, ProcessedPrompt
from tensorrt_llm.inputs.multimodal_data import AudioData, MediaHasher
from tensorrt_llm.inputs.registry import InputProcessor, create_input_processor


@pytest.fixture(scope="module")
def model(phi4mm_checkpoint: Path) -> Phi4MultimodalModel:
    config = AutoConfig.from_pretrained(phi4mm_checkpoint)
    loaded = load_model(
        str(phi4mm_checkpoint),
        config,
        dtype=torch.float32,
        device=torch.device("cpu"),
        max_seq_len=8192,
    )
    assert isinstance(loaded, Phi4MultimodalModel)
    return loaded


@pytest.fixture(scope="module")
def reference(phi4mm_checkpoint: Path) -> ReferenceModel:
    return ReferenceModel(phi4mm_checkpoint)


@pytest.fixture(scope="module")
def processor(phi4mm_checkpoint: Path) -> InputProcessor:
    tokenizer = AutoTokenizer.from_pretrained(phi4mm_checkpoint)
    return create_input_processor(str(phi4mm_checkpoint), tokenizer, MediaHasher())


def ask(processor: InputProcessor, *media: Any, **options: Any) -> ProcessedPrompt:
    items = [MediaItem("audio" if isinstance(m, AudioData) else "image", m, None) for m in media]
    parts = "".join(f"<|{item.modality}|>" for item in items)
    text = f"<|user|>{parts}What is this?<|end|><|assistant|>"
    return processor.process(processor.locate_placeholders(text, items), items, options)


SOUND = AudioData(clip(1, 1.0), 16_000)
ALL_KINDS: list[tuple[Any, ...]] = [
    (picture(1),),
    (SOUND,),
    (picture(2, 300, 90), AudioData(clip(2, 2.0), 16_000)),
]


@pytest.mark.parametrize("media", ALL_KINDS)
def test_rows_are_those_of_the_stock_model(
    model: Phi4MultimodalModel,
    reference: ReferenceModel,
    processor: InputProcessor,
    media: tuple[Any, ...],
) -> None:
    prompt = ask(processor, *media)
    ids = torch.from_numpy(prompt.token_ids).long()[None]
    inputs: dict[str, torch.Tensor] = {}
    for item in prompt.items:
        inputs |= item.encoder_inputs
    stock = reference.model.model
    with torch.no_grad():
        merged = stock.embed_tokens_extend(ids, stock.embed_tokens(ids), **inputs)[0]
    assert (embeddings(model, prompt) - merged).abs().max() < 1e-5


def test_every_size_gives_the_rows_that_the_prompt_holds(
    model: Phi4MultimodalModel, processor: InputProcessor
) -> None:
    sizes = [(1, 1), (40, 400), (400, 40), (112, 112), (113, 112), (640, 480), (250, 1000), (30, 7)]
    seconds = [0.025, 0.1, 0.333, 3.0]
    media: list[Any] = [picture(0, *size) for size in sizes]
    media += [AudioData(clip(0, length), 16_000) for length in seconds]
    for dynamic_hd in (1, 4, 9):
        prompt = ask(processor, *media, dynamic_hd=dynamic_hd)
        for item, rows in zip(prompt.items, encoded(model, prompt), strict=True):
            assert rows.shape == (item.num_rows, model.hidden_size)
            assert rows.isfinite().all()


def test_projection_modes_differ_and_the_encoder_alone_decides(
    model: Phi4MultimodalModel, processor: InputProcessor
) -> None:
    item = ask(processor, SOUND).items[0]
    speech, again, vision = (
        model.encode("audio", item.encoder_inputs, audio_projection_mode=mode)
        for mode in ("speech", "speech", "vision")
    )
    assert torch.equal(speech, again)
    assert (speech - vision).abs().max() > 0.05


def longrope_config(limit: int) -> Phi4MultimodalConfig:
    return Phi4MultimodalConfig(
        vocab_size=64,
        hidden_size=32,
        intermediate_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1,
        max_position_embeddings=1024,
        original_max_position_embeddings=limit,
        bos_token_id=0,
        pad_token_id=0,
        rope_parameters={
            "rope_type": "longrope",
            "rope_theta": 10000.0,
            "short_factor": [1.0] * 8,
            "long_factor": [1.0 + 0.5 * n for n in range(8)],
            "original_max_position_embeddings": limit,
        },
        vision_config={
            "hidden_size": 8,
            "intermediate_size": 8,
            "num_hidden_layers": 2,
            "num_attention_heads": 1,
            "image_size": 28,
            "crop_size": 28,
            "image_token_id": 1,
        },
        audio_config={
            "hidden_size": 8,
            "intermediate_size": 8,
            "num_blocks": 2,
            "num_attention_heads": 1,
            "ext_pw_out_channel": 8,
            "depthwise_separable_out_channel": 8,
            "nemo_conv_channels": 8,
            "audio_token_id": 2,
        },
    )


@torch.no_grad()
def test_a_long_neighbour_does_not_change_a_short_request() -> None:
    torch.manual_seed(0)
    stock = Phi4MultimodalForCausalLM(longrope_config(64)).eval()
    with torch.no_grad():
        for weight in stock.parameters():
            weight.mul_(3.0) if weight.ndim >= 2 else None
    model = Phi4MultimodalModel(stock, max_seq_len=1024)
    short, long = (torch.randn(length, 32) for length in (20, 150))
    alone = run_flattened(model, [short])[0]
    beside = run_flattened(model, [long, short])[1]
    assert (alone - beside).abs().max() < 1e-5
