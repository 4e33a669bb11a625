# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Adapters on the layers of a model: which rows change, and what does not fit."""

from __future__ import annotations

import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from tensorrt_llm._torch.peft import AdapterRows, LoraAdapter, LoraLayers, LoraWeights
from tensorrt_llm.errors import ConfigurationError, EngineError

QUERY = "model.layers.0.self_attn.q_proj"


@pytest.fixture(scope="module")
def model() -> LlamaForCausalLM:
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=32,
        hidden_size=8,
        intermediate_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=2,
    )
    return LlamaForCausalLM(config).eval()


def adapter(seed: int, wide: int = 8, high: int = 8, layer: str = QUERY) -> LoraAdapter:
    generator = torch.Generator().manual_seed(seed)
    down = torch.randn(2, wide, generator=generator)
    up = torch.randn(high, 2, generator=generator)
    return LoraAdapter.of({layer: LoraWeights(down, up, 0.5)})


@torch.no_grad()
def test_each_row_changes_by_its_own_adapters(model: LlamaForCausalLM) -> None:
    layers = LoraLayers(model, "model.layers")
    one, two = (layers.fitted(adapter(seed), "here") for seed in (1, 2))
    layers.attach(one)
    layers.attach(two)
    linear = model.get_submodule(QUERY)
    rows = torch.randn(1, 4, 8)
    plain = linear(rows)
    groups = [AdapterRows(one, torch.tensor([0, 2])), AdapterRows(two, torch.tensor([2, 3]))]
    with layers.applied(groups, 4):
        mixed = linear(rows)
    by_one, by_two = one.layers[QUERY].delta(rows), two.layers[QUERY].delta(rows)
    expected = plain.clone()
    expected[:, [0, 2]] += by_one[:, [0, 2]]
    expected[:, [2, 3]] += by_two[:, [2, 3]]
    assert torch.allclose(mixed, expected, atol=1e-6)
    assert torch.equal(mixed[:, 1], plain[:, 1])
    with layers.applied([AdapterRows(one)]):  # all rows of any shape, as in an encoder
        assert torch.allclose(linear(rows), plain + by_one, atol=1e-6)
    assert torch.equal(linear(rows), plain)
    # A layer that sees other rows than the step's: a wrong answer, were it not refused.
    with layers.applied(groups, 5), pytest.raises(EngineError, match="no adapter can be applied"):
        linear(rows)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (adapter(1, layer="model.layers.7.self_attn.q_proj"), "no layer .*; linear layers .*: "),
        (adapter(1, layer="model.layers.0"), "is a LlamaDecoderLayer; "),
        (adapter(1, high=32, layer="lm_head"), "embedding or head"),
        (adapter(1, wide=9), "takes 9 and gives 8 features in the adapter, 8 and 8 in the model"),
    ],
)
def test_what_does_not_fit_is_refused(
    model: LlamaForCausalLM, given: LoraAdapter, message: str
) -> None:
    with pytest.raises(ConfigurationError, match=f"^here: .*{message}"):
        LoraLayers(model, "model.layers").fitted(given, "here")


def test_it_is_told_whether_an_encoder_is_adapted(model: LlamaForCausalLM) -> None:
    assert not LoraLayers(model, "model.layers").fitted(adapter(1), "here").touches_encoders
    assert LoraLayers(model, "other.layers").fitted(adapter(1), "here").touches_encoders
