# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Rotary frequencies that do not change with what else is run."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from transformers import LlamaConfig, Phi3Config
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding
from transformers.models.phi3.modeling_phi3 import Phi3RotaryEmbedding

from tensorrt_llm._torch.models.rotary import pin_rotary
from tensorrt_llm.errors import ConfigurationError


def phi3_config(rope_type: str, **parameters: Any) -> Phi3Config:
    return Phi3Config(
        vocab_size=64,
        hidden_size=32,
        intermediate_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        max_position_embeddings=1024,
        original_max_position_embeddings=64,
        bos_token_id=0,
        eos_token_id=0,
        pad_token_id=0,
        rope_parameters={"rope_type": rope_type, "rope_theta": 10000.0, **parameters},
    )


def rotary(max_seq_len: int | None) -> Any:
    config = phi3_config(
        "longrope",
        short_factor=[1.0] * 8,
        long_factor=[1.0 + 0.5 * n for n in range(8)],
        original_max_position_embeddings=64,
    )
    module = Phi3RotaryEmbedding(config)
    if max_seq_len is not None:
        pin_rotary(module, max_seq_len)
    return module


def angles(module: Any, length: int) -> torch.Tensor:
    return torch.stack(module(torch.zeros(1), torch.arange(length)[None]))


@pytest.mark.parametrize(("max_seq_len", "factors"), [(64, "short_factor"), (65, "long_factor")])
def test_one_set_of_factors_serves_every_length(max_seq_len: int, factors: str) -> None:
    module = rotary(max_seq_len)
    parameters = module.config.rope_parameters
    inverse = 1 / (torch.tensor(parameters[factors]) * 10000.0 ** (torch.arange(0, 16, 2) / 16))
    for length in (200, 10, 64, 65):
        expected = torch.arange(length)[:, None] * inverse
        cos, sin = angles(module, length)
        scale = module.attention_scaling
        assert torch.allclose(cos[0], torch.cat([expected, expected], -1).cos() * scale, atol=1e-4)
        assert torch.allclose(sin[0], torch.cat([expected, expected], -1).sin() * scale, atol=1e-4)


def test_left_alone_the_factors_would_change_with_the_neighbours() -> None:
    # The twin: without pinning, the first 10 positions turn otherwise in a longer step.
    loose, pinned = rotary(None), rotary(1024)
    assert not torch.allclose(angles(loose, 10), angles(loose, 200)[..., :10, :])
    assert torch.equal(angles(pinned, 10), angles(pinned, 200)[..., :10, :])
    # Past the limit both use the long set.
    assert torch.allclose(angles(loose, 200), angles(pinned, 200))


def test_a_constant_type_is_left_as_it_is() -> None:
    module = Phi3RotaryEmbedding(phi3_config("default"))
    before = module.inv_freq.clone()
    pin_rotary(module, 1024)
    assert module.rope_type == "default"
    assert torch.equal(module.inv_freq, before)


def test_a_type_that_cannot_be_pinned_is_refused() -> None:
    parameters = {"rope_type": "dynamic", "rope_theta": 10000.0, "factor": 2.0}
    module = LlamaRotaryEmbedding(LlamaConfig(rope_parameters=parameters))
    with pytest.raises(ConfigurationError, match="'dynamic' changes with the length"):
        pin_rotary(module, 1024)
