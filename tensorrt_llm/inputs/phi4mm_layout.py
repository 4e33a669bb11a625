# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Phi-4-multimodal as it is published: its configuration in transformers' terms.

The published folder has a ``model_type`` of its own and brings code to read it, which is never run.
What that code takes from the configuration is known, and transformers' class takes the same under
other names. What the published code fixes by constants (the vision tower, the placeholder tokens)
is transformers' default.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from transformers import Phi4MultimodalConfig

from tensorrt_llm.errors import ConfigurationError

PUBLISHED_MODEL_TYPE = "phi4mm"

# The placeholder tokens, which the published code knows by number.
_PLACEHOLDERS = {"image_token_id": "<|endoftext10|>", "audio_token_id": "<|endoftext11|>"}

# About the file or its code, not about the model.
_NOT_THE_MODELS = (
    "_attn_implementation",
    "_name_or_path",
    "architectures",
    "audio_processor",
    "auto_map",
    "embd_layer",
    "img_processor",
    "model_type",
    "partial_rotary_factor",
    "rope_scaling",
    "rope_theta",
    "speech_lora",
    "torch_dtype",
    "transformers_version",
    "vision_lora",
)
_AUDIO_NAMES = {
    "attention_dim": "hidden_size",
    "attention_heads": "num_attention_heads",
    "depthwise_seperable_out_channel": "depthwise_separable_out_channel",
    "linear_units": "intermediate_size",
}
_SAME_AUDIO_NAMES = (
    "activation",
    "chunk_size",
    "conv_activation",
    "conv_glu_type",
    "depthwise_multiplier",
    "dropout_rate",
    "ext_pw_out_channel",
    "input_size",
    "kernel_size",
    "left_chunk",
    "num_blocks",
    "time_reduction",
)
# What transformers' class always does; another value is another model.
_FIXED_AUDIO: Mapping[str, tuple[Any, ...]] = {
    "batch_norm": (False,),
    "bias_in_glu": (True,),
    "causal": (True,),
    "cnn_layer_norm": (True,),
    "ext_pw_kernel_size": (1,),
    "input_layer": ("nemo_conv",),
}
_FIXED_AUDIO_LAYER: Mapping[str, tuple[Any, ...]] = {
    "compression_rate": (8,),
    "projection_cls": ("mlp",),
    "use_conv_downsample": (False,),
    "use_qformer": (False,),
}
_FIXED_IMAGE_LAYER: Mapping[str, tuple[Any, ...]] = {
    "hd_transform_order": ("sub_glb",),
    "image_token_compression_cls": ("avg_pool_2d",),
    "projection_cls": ("mlp",),
    "use_hd_transform": (True,),
    "with_learnable_separator": (True,),
}


def native_config(raw: Mapping[str, Any], folder: Path) -> Phi4MultimodalConfig:
    """The configuration of a published checkpoint for transformers' class.

    Its attribute ``published_adapters`` holds the settings of the adapters inside the weights, by
    the name they have there.

    Args:
        raw: Content of ``config.json``.
        folder: The checkpoint.

    Raises:
        ConfigurationError: If a section is missing, or says something that the class does not do.
    """
    try:
        layers = raw["embd_layer"]
        image, sound = layers["image_embd_layer"], layers["audio_embd_layer"]
        audio = raw["audio_processor"]["config"]
        for section, fixed in (
            (image, _FIXED_IMAGE_LAYER),
            (sound, _FIXED_AUDIO_LAYER),
            (audio, _FIXED_AUDIO),
        ):
            _check_fixed(folder, section, fixed)
        settings = {
            **{name: audio[name] for name in _SAME_AUDIO_NAMES if name in audio},
            **{ours: audio[theirs] for theirs, ours in _AUDIO_NAMES.items() if theirs in audio},
            "nemo_conv_channels": audio["nemo_conv_settings"]["conv_channels"],
            "bias_max_distance": audio["relative_attention_bias_args"]["t5_bias_max_distance"],
            "downsample_rate": sound.get("downsample_rate", 1),
        }
        adapters = {name: dict(raw[f"{name}_lora"]) for name in ("vision", "speech")}
        tokens = _placeholders(folder)
        # The published file says null here: the sizes of the tower are constants of its code. A
        # folder with another tower says its sizes in transformers' terms.
        vision = {"crop_size": image["crop_size"], **(raw.get("img_processor") or {})}
        config = Phi4MultimodalConfig(
            **{name: value for name, value in raw.items() if name not in _NOT_THE_MODELS},
            dtype=raw.get("torch_dtype"),
            rope_parameters=_rope(raw),
            vision_config={**vision, "image_token_id": tokens["image_token_id"]},
            audio_config={**settings, "audio_token_id": tokens["audio_token_id"]},
        )
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise ConfigurationError(
            f"{folder}: no usable configuration of the published Phi-4-multimodal: "
            f"{type(error).__name__}: {error}"
        ) from error
    config.architectures = ["Phi4MultimodalForCausalLM"]
    config.published_adapters = adapters
    return config


def _rope(raw: Mapping[str, Any]) -> dict[str, Any]:
    scaling = dict(raw.get("rope_scaling") or {"type": "default"})
    return {
        "rope_type": scaling.pop("type"),
        "rope_theta": raw.get("rope_theta", 10000.0),
        "partial_rotary_factor": raw.get("partial_rotary_factor", 1.0),
        **scaling,
    }


def _check_fixed(
    folder: Path, section: Mapping[str, Any], fixed: Mapping[str, tuple[Any, ...]]
) -> None:
    for name, values in fixed.items():
        if section.get(name, values[0]) not in values:
            raise ConfigurationError(
                f"{folder}: {name} is {section[name]!r} in config.json, and only "
                f"{' or '.join(map(repr, values))} can be run"
            )


def _placeholders(folder: Path) -> dict[str, int]:
    """Ids of the placeholder tokens, by the name that transformers has for them."""
    path = folder / "tokenizer.json"
    try:
        added = json.loads(path.read_text(encoding="utf-8"))["added_tokens"]
        ids = {token["content"]: token["id"] for token in added}
        return {name: int(ids[content]) for name, content in _PLACEHOLDERS.items()}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ConfigurationError(
            f"{path}: no placeholder tokens {', '.join(_PLACEHOLDERS.values())}: {error}"
        ) from error
