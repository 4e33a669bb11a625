# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""The published Phi-4-multimodal's configuration in transformers' terms."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.checkpoints import altered, build_checkpoint
from transformers import Phi4MultimodalConfig

from tensorrt_llm.errors import ConfigurationError
from tensorrt_llm.inputs.model_config import load_config

# Of the full-size checkpoint, but for the list of places that its adapters change.
PUBLISHED: dict[str, Any] = {
    "model_type": "phi4mm",
    "architectures": ["Phi4MMForCausalLM"],
    "auto_map": {"AutoConfig": "configuration_phi4mm.Phi4MMConfig"},
    "audio_processor": {
        "name": "cascades",
        "config": {
            "activation": "swish",
            "activation_checkpointing": {"interval": 1, "module": "transformer"},
            "attention_dim": 1024,
            "attention_heads": 16,
            "batch_norm": False,
            "bias_in_glu": True,
            "causal": True,
            "chunk_size": -1,
            "cnn_layer_norm": True,
            "conv_activation": "swish",
            "conv_glu_type": "swish",
            "depthwise_multiplier": 1,
            "depthwise_seperable_out_channel": 1024,
            "dropout_rate": 0.0,
            "encoder_embedding_config": {"input_size": 80},
            "ext_pw_kernel_size": 1,
            "ext_pw_out_channel": 1024,
            "input_layer": "nemo_conv",
            "input_size": 80,
            "kernel_size": 3,
            "left_chunk": 18,
            "linear_units": 1536,
            "nemo_conv_settings": {"conv_channels": 1024},
            "num_blocks": 24,
            "relative_attention_bias_args": {"t5_bias_max_distance": 500, "type": "t5"},
            "time_reduction": 8,
        },
    },
    "embd_layer": {
        "audio_embd_layer": {"compression_rate": 8, "downsample_rate": 1, "use_qformer": False},
        "image_embd_layer": {"crop_size": 448, "hd_transform_order": "sub_glb"},
    },
    "hidden_size": 3072,
    "img_processor": None,
    "max_position_embeddings": 131072,
    "num_attention_heads": 24,
    "num_key_value_heads": 8,
    "original_max_position_embeddings": 4096,
    "partial_rotary_factor": 0.75,
    "rope_scaling": {"type": "longrope", "long_factor": [2.0] * 48, "short_factor": [1.0] * 48},
    "rope_theta": 10000.0,
    "sliding_window": 262144,
    "speech_lora": {"r": 320, "lora_alpha": 640, "dp": 0.01},
    "tie_word_embeddings": True,
    "torch_dtype": "bfloat16",
    "vision_lora": {"r": 256, "lora_alpha": 512, "dp": 0.0},
    "vocab_size": 200064,
}
TOKENS = {
    "added_tokens": [
        {"id": 200010, "content": "<|endoftext10|>"},
        {"id": 200011, "content": "<|endoftext11|>"},
    ]
}


def folder(path: Path, **changes: Any) -> str:
    (path / "config.json").write_text(json.dumps({**PUBLISHED, **changes}))
    (path / "tokenizer.json").write_text(json.dumps(TOKENS))
    return str(path)


def test_the_published_configuration_is_transformers_own(tmp_path: Path) -> None:
    config = load_config(folder(tmp_path))
    assert isinstance(config, Phi4MultimodalConfig)
    # The class's defaults are the published model's.
    plain = Phi4MultimodalConfig()
    assert config.vision_config.to_dict() == {
        **plain.vision_config.to_dict(),
        "dtype": config.vision_config.to_dict()["dtype"],
    }
    audio = {**plain.audio_config.to_dict(), "bias_max_distance": 500}
    assert {**config.audio_config.to_dict(), "dtype": None} == {**audio, "dtype": None}
    assert (config.max_position_embeddings, config.sliding_window) == (131072, 262144)
    assert str(config.dtype).endswith("bfloat16")
    assert config.tie_word_embeddings
    rope = config.rope_parameters
    assert (rope["rope_type"], rope["partial_rotary_factor"]) == ("longrope", 0.75)
    assert (len(rope["long_factor"]), len(rope["short_factor"])) == (48, 48)
    assert config.published_adapters["vision"]["lora_alpha"] == 512


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"vision_lora": None}, "no usable configuration"),
        ({"embd_layer": {"image_embd_layer": {}}}, "KeyError: 'audio_embd_layer'"),
        (
            {
                "embd_layer": {
                    **PUBLISHED["embd_layer"],
                    "image_embd_layer": {"crop_size": 448, "hd_transform_order": "glb_sub"},
                }
            },
            "hd_transform_order is 'glb_sub' .* only 'sub_glb' can be run",
        ),
    ],
)
def test_what_cannot_be_run_is_named(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        load_config(folder(tmp_path, **changes))


def test_placeholder_tokens_come_from_the_tokenizer(checkpoint_root: Path, tmp_path: Path) -> None:
    tiny = build_checkpoint("phi4mm_published", checkpoint_root)
    config, native = (
        load_config(str(tiny)),
        load_config(str(build_checkpoint("phi4mm", checkpoint_root))),
    )
    assert config.vision_config.image_token_id == native.vision_config.image_token_id
    other = altered(tiny, tmp_path / "other", "tokenizer.json", added_tokens=[])
    with pytest.raises(ConfigurationError, match="no placeholder tokens"):
        load_config(str(other))
