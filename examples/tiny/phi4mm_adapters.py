# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Phi-4-multimodal with its two adapters, in the layout of transformers and as it is published.

Of one seed, both have the weights of the tiny ``phi4mm`` and the same adapters.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from transformers import Phi4MultimodalConfig

from examples.tiny.phi4mm import MAX_CROPS, build_phi4mm
from examples.tiny.text import TEXT_TEMPLATE

# Rank and alpha; full-size 256 and 512, 320 and 640.
ADAPTERS = {"vision": (8, 16), "speech": (6, 12)}
ADAPTED = re.compile(
    r"(model\.layers\.\d+\.(?:self_attn\.(?:qkv|o)|mlp\.(?:gate_up|down))_proj)\.weight"
)

# The published tokenizer has no names of its own for them.
PUBLISHED_PLACEHOLDERS = ("<|endoftext10|>", "<|endoftext11|>")

_AUDIO = "model.embed_tokens_extend.audio_embed."
_IMAGE = "model.embed_tokens_extend.image_embed."
# Part of a name in transformers, and as it is published.
_NAMES = (
    (r"(feed_forward_(?:in|out))\.gate_up_proj", r"\1.net.0.linear"),
    (r"(feed_forward_(?:in|out))\.down_proj", r"\1.net.2"),
    (r"(encoders\.\d+\.self_attn)\.([qkv])_proj", r"\1.linear_\2"),
    (r"(encoders\.\d+\.self_attn)\.o_proj", r"\1.linear_out"),
    (r"audio_embed\.up_proj_for_vision_speech", "audio_embed.audio_projection.vision.0"),
    (r"audio_embed\.down_proj_for_vision_speech", "audio_embed.audio_projection.vision.2"),
    (r"audio_embed\.up_proj_for_speech", "audio_embed.audio_projection.speech.0"),
    (r"audio_embed\.down_proj_for_speech", "audio_embed.audio_projection.speech.2"),
    (r"img_projection_up", "img_projection.0"),
    (r"img_projection_down", "img_projection.2"),
    (r"global_img_feature_extensor", "glb_GN"),
    (r"sub_img_feature_extensor", "sub_GN"),
)


def build_phi4mm_lora(out: Path, generator: torch.Generator) -> None:
    """Writes it in transformers' layout: adapters in folders of their own."""
    build_phi4mm(out, generator)
    save_adapters(out, load_file(out / "model.safetensors"), generator, ADAPTERS)


def save_adapters(
    out: Path,
    weights: Mapping[str, torch.Tensor],
    generator: torch.Generator | None,
    sizes: Mapping[str, tuple[int, int]],
) -> None:
    """Writes adapters as folders beside a checkpoint.

    Args:
        out: The checkpoint's folder.
        weights: Its weights.
        generator: Draws the matrices; None: torch's own.
        sizes: Rank and alpha of each adapter by its name.
    """
    for name, tensors in _adapters(weights, generator, sizes).items():
        folder = out / f"{name}-lora"
        folder.mkdir(parents=True, exist_ok=True)
        rank, alpha = sizes[name]
        settings = {
            "peft_type": "LORA",
            "task_type": "CAUSAL_LM",
            "r": rank,
            "lora_alpha": alpha,
            "target_modules": ["qkv_proj", "o_proj", "gate_up_proj", "down_proj"],
        }
        (folder / "adapter_config.json").write_text(json.dumps(settings, indent=2) + "\n")
        save_file(tensors, folder / "adapter_model.safetensors")


def build_phi4mm_published(out: Path, generator: torch.Generator) -> None:
    """Writes it as it is published: names, settings and files, and code that nobody shall run."""
    build_phi4mm(out, generator, PUBLISHED_PLACEHOLDERS, TEXT_TEMPLATE)
    config = Phi4MultimodalConfig.from_pretrained(out)
    weights = load_file(out / "model.safetensors")
    adapters = _adapters(weights, generator, ADAPTERS)
    published = {_published_name(name): tensor for name, tensor in weights.items()}
    for adapter, tensors in adapters.items():
        for name, tensor in tensors.items():
            layer, side, _ = name.rsplit(".", 2)
            published[f"{layer}.{side}.{adapter}.weight"] = tensor
    _save_in_two_files(out, published)
    (out / "config.json").write_text(json.dumps(_published_config(config), indent=2) + "\n")
    code = ("configuration", "modeling", "processing")
    auto_map = {
        "AutoProcessor": "processing_phi4mm.Phi4MMProcessor",
        "AutoImageProcessor": "processing_phi4mm.Phi4MMImageProcessor",
        "AutoFeatureExtractor": "processing_phi4mm.Phi4MMAudioFeatureExtractor",
    }
    settings = {
        "auto_map": auto_map,
        "image_processor_type": "Phi4MMImageProcessor",
        "processor_class": "Phi4MMProcessor",
        "feature_extractor_type": "Phi4MMAudioFeatureExtractor",
        "audio_compression_rate": 8,
        "audio_downsample_rate": 1,
        "audio_feat_stride": 1,
        "dynamic_hd": MAX_CROPS,
    }
    (out / "preprocessor_config.json").write_text(json.dumps(settings, indent=2) + "\n")
    for name in code:
        (out / f"{name}_phi4mm.py").write_text("raise SystemExit('code of a checkpoint was run')\n")


def _adapters(
    weights: Mapping[str, torch.Tensor],
    generator: torch.Generator | None,
    sizes: Mapping[str, tuple[int, int]],
) -> dict[str, dict[str, torch.Tensor]]:
    """Matrices of each adapter under the names of transformers' converter."""
    adapters: dict[str, dict[str, torch.Tensor]] = {}
    for adapter, (rank, _) in sizes.items():
        tensors = adapters.setdefault(adapter, {})
        for name, weight in sorted(weights.items()):
            match = ADAPTED.fullmatch(name)
            if match is None:
                continue
            high, wide = weight.shape
            down = torch.empty(rank, wide).normal_(0, wide**-0.5, generator=generator)
            up = torch.empty(high, rank).normal_(0, 0.1 * rank**-0.5, generator=generator)
            tensors[f"{match[1]}.lora_A.weight"] = down
            tensors[f"{match[1]}.lora_B.weight"] = up
    return adapters


def _published_name(name: str) -> str:
    match = ADAPTED.fullmatch(name)
    if match is not None:
        return f"{match[1]}.base_layer.weight"
    if name.startswith((_AUDIO, _IMAGE)):
        for native, published in _NAMES:
            name = re.sub(native + r"(?=\.|$)", published, name)
    return name


def _save_in_two_files(out: Path, weights: dict[str, torch.Tensor]) -> None:
    names = sorted(weights)
    files = {
        f"model-0000{number}-of-00002.safetensors": names[number - 1 :: 2] for number in (1, 2)
    }
    for file, part in files.items():
        save_file({name: weights[name] for name in part}, out / file, {"format": "pt"})
    index = {
        "metadata": {"total_size": sum(tensor.nbytes for tensor in weights.values())},
        "weight_map": {name: file for file, part in files.items() for name in part},
    }
    (out / "model.safetensors.index.json").write_text(json.dumps(index, indent=2) + "\n")
    (out / "model.safetensors").unlink()


def _published_config(config: Phi4MultimodalConfig) -> dict[str, Any]:
    audio: Any = config.audio_config
    vision: Any = config.vision_config
    rope: Any = config.rope_parameters
    plain = (
        "vocab_size",
        "hidden_size",
        "intermediate_size",
        "num_hidden_layers",
        "num_attention_heads",
        "num_key_value_heads",
        "max_position_embeddings",
        "original_max_position_embeddings",
        "rms_norm_eps",
        "tie_word_embeddings",
        "bos_token_id",
        "eos_token_id",
        "pad_token_id",
        "sliding_window",
    )
    return {
        "architectures": ["Phi4MMForCausalLM"],
        "model_type": "phi4mm",
        "auto_map": {
            "AutoConfig": "configuration_phi4mm.Phi4MMConfig",
            "AutoModelForCausalLM": "modeling_phi4mm.Phi4MMForCausalLM",
            "AutoTokenizer": "Xenova/gpt-4o",
        },
        **{name: getattr(config, name) for name in plain},
        "hidden_act": "silu",
        "rope_scaling": None,
        "rope_theta": rope["rope_theta"],
        "partial_rotary_factor": rope["partial_rotary_factor"],
        "torch_dtype": "float32",
        # Sizes that the published code knows by heart, since these are others.
        "img_processor": {
            name: getattr(vision, name)
            for name in (
                "hidden_size",
                "intermediate_size",
                "num_hidden_layers",
                "num_attention_heads",
                "image_size",
                "patch_size",
            )
        },
        "embd_layer": {
            "embedding_cls": "image_audio",
            "image_embd_layer": {
                "crop_size": vision.crop_size,
                "embedding_cls": "tune_image",
                "hd_transform_order": "sub_glb",
                "image_token_compression_cls": "avg_pool_2d",
                "projection_cls": "mlp",
                "use_hd_transform": True,
                "with_learnable_separator": True,
            },
            "audio_embd_layer": {
                "compression_rate": 8,
                "downsample_rate": audio.downsample_rate,
                "embedding_cls": "audio",
                "projection_cls": "mlp",
                "use_conv_downsample": False,
                "use_qformer": False,
            },
        },
        "audio_processor": {
            "name": "cascades",
            "config": {
                "activation": audio.activation,
                "attention_dim": audio.hidden_size,
                "attention_heads": audio.num_attention_heads,
                "batch_norm": False,
                "bias_in_glu": True,
                "causal": True,
                "chunk_size": audio.chunk_size,
                "cnn_layer_norm": True,
                "conv_activation": audio.conv_activation,
                "conv_glu_type": audio.conv_glu_type,
                "depthwise_multiplier": audio.depthwise_multiplier,
                "depthwise_seperable_out_channel": audio.depthwise_separable_out_channel,
                "dropout_rate": audio.dropout_rate,
                "encoder_embedding_config": {"input_size": audio.input_size},
                "ext_pw_kernel_size": 1,
                "ext_pw_out_channel": audio.ext_pw_out_channel,
                "input_layer": "nemo_conv",
                "input_size": audio.input_size,
                "kernel_size": audio.kernel_size,
                "left_chunk": audio.left_chunk,
                "linear_units": audio.intermediate_size,
                "nemo_conv_settings": {"conv_channels": audio.nemo_conv_channels},
                "num_blocks": audio.num_blocks,
                "relative_attention_bias_args": {
                    "t5_bias_max_distance": audio.bias_max_distance,
                    "type": "t5",
                },
                "time_reduction": audio.time_reduction,
            },
        },
        **{
            f"{name}_lora": {"r": rank, "lora_alpha": alpha, "dp": 0.0}
            for name, (rank, alpha) in ADAPTERS.items()
        },
    }
