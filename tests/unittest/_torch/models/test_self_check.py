# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Decoders that nobody described are run only where they answer as in transformers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
import transformers

from tensorrt_llm._torch.models import DecoderModel, load_model
from tensorrt_llm._torch.models.self_check import check_scores, stock_scores
from tensorrt_llm.errors import ConfigurationError

SIZES: dict[str, Any] = {
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 100,
}


def save(name: str, folder: Path, **own: Any) -> transformers.PretrainedConfig:
    """Writes a checkpoint with random weights."""
    torch.manual_seed(0)
    config = getattr(transformers, f"{name}Config")(**own)
    getattr(transformers, f"{name}ForCausalLM")(config).save_pretrained(folder)
    return transformers.AutoConfig.from_pretrained(folder)


def load(folder: Path, config: transformers.PretrainedConfig, dtype: torch.dtype) -> DecoderModel:
    return load_model(str(folder), config, dtype=dtype, device=torch.device("cpu"), max_seq_len=64)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize(
    ("name", "own"),
    [
        ("GPTNeoX", {key: SIZES[key] for key in SIZES if key != "num_key_value_heads"}),
        ("Mixtral", {**SIZES, "num_local_experts": 4}),
        ("Starcoder2", SIZES),
    ],
)
def test_a_decoder_that_answers_as_in_transformers_is_taken(
    tmp_path: Path, name: str, own: dict[str, Any], dtype: torch.dtype
) -> None:
    config = save(name, tmp_path, **own)
    assert load(tmp_path, config, dtype).num_layers == 2


@pytest.mark.parametrize(
    ("name", "own", "why"),
    [
        ("Bloom", {"vocab_size": 100, "hidden_size": 64, "n_layer": 2, "n_head": 4}, "0 of its 2"),
        ("Lfm2", {**SIZES, "layer_types": ["conv", "full_attention"]}, "1 of its 2 layers"),
        (
            "FalconH1",
            {**SIZES, "mamba_d_ssm": 64, "mamba_n_heads": 4, "mamba_d_head": 16}
            | {"mamba_d_state": 16, "lm_head_multiplier": 0.5},
            "its scores differ by",
        ),
        (
            "GptOss",
            {**SIZES, "head_dim": 16, "num_local_experts": 4, "num_experts_per_tok": 2},
            "with sinks is not computed",
        ),
        ("StableLm", SIZES, "dropped the attn_metadata"),
    ],
)
def test_a_decoder_that_would_answer_otherwise_is_refused_at_start(
    tmp_path: Path, name: str, own: dict[str, Any], why: str
) -> None:
    config = save(name, tmp_path, **own)
    with pytest.raises(ConfigurationError, match=f"'{config.model_type}' cannot be run: .*{why}"):
        load(tmp_path, config, torch.float32)


def test_what_is_not_a_number_is_no_agreement(tmp_path: Path) -> None:
    model = load(tmp_path, save("Starcoder2", tmp_path, **SIZES), torch.float32)
    expected = [torch.full((length, 100), float("nan")) for length in (8, 5)]
    with pytest.raises(ConfigurationError, match="differ by nan"):
        check_scores(model, expected)


def test_scores_are_those_of_a_model_that_was_not_touched(tmp_path: Path) -> None:
    save("Starcoder2", tmp_path, **SIZES)
    stock = transformers.AutoModelForCausalLM.from_pretrained(tmp_path)
    first, second = stock_scores(stock)
    assert (first.shape, second.shape) == ((8, 100), (5, 100))
    assert stock.config._attn_implementation == "sdpa"
