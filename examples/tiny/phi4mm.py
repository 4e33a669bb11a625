# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Phi-4-multimodal."""

from __future__ import annotations

from pathlib import Path

import torch
from transformers import (
    Phi4MultimodalConfig,
    Phi4MultimodalFeatureExtractor,
    Phi4MultimodalForCausalLM,
)

from examples.tiny.tokenizer import (
    ASSISTANT,
    END,
    END_OF_TEXT,
    MAX_POSITIONS,
    SYSTEM,
    USER,
    make_tokenizer,
)
from examples.tiny.weights import DECODER_SIZES, add_processor_settings, save

CROP_SIZE = 112
PATCH_SIZE = 14
MAX_CROPS = 9
IMAGE, AUDIO = "<|image|>", "<|audio|>"

MEDIA_TEMPLATE = """\
{%- for message in messages -%}
{{- '<|' + message['role'] + '|>' -}}
{%- if message['content'] is string -%}
{{- message['content'] -}}
{%- else -%}
{%- for part in message['content'] -%}
{%- if part['type'] == 'text' -%}{{- part['text'] -}}
{%- elif part['type'] in ['image', 'image_url'] -%}{{- '<|image|>' -}}
{%- elif part['type'] in ['audio', 'audio_url', 'input_audio'] -%}{{- '<|audio|>' -}}
{%- else -%}{{- raise_exception('unknown content part: ' + part['type']) -}}
{%- endif -%}
{%- endfor -%}
{%- endif -%}
{{- '<|end|>' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- '<|assistant|>' -}}{%- endif -%}
"""


def build_phi4mm(
    out: Path,
    generator: torch.Generator,
    placeholders: tuple[str, str] = (IMAGE, AUDIO),
    template: str = MEDIA_TEMPLATE,
) -> None:
    """Writes a Phi-4-multimodal checkpoint (image and audio) with crops of 112 pixels.

    One picture takes 41 to 177 tokens, depending on how it falls into at most nine crops; sound
    takes 12.5 tokens a second as in the full-size model. ``placeholders`` are the tokens that stand
    for a picture and for sound.
    """
    image, audio = placeholders
    tokenizer = make_tokenizer(
        [END_OF_TEXT, END, USER, ASSISTANT, SYSTEM, image, audio],
        template,
        image_token=image,
        audio_token=audio,
    )
    config = Phi4MultimodalConfig(
        vocab_size=len(tokenizer),
        original_max_position_embeddings=MAX_POSITIONS,
        vision_config={
            "hidden_size": 32,
            "intermediate_size": 64,
            "num_hidden_layers": 3,
            "num_attention_heads": 4,
            "image_size": CROP_SIZE,
            "crop_size": CROP_SIZE,
            "patch_size": PATCH_SIZE,
            "image_token_id": tokenizer.convert_tokens_to_ids(image),
        },
        audio_config={
            "hidden_size": 32,
            "intermediate_size": 48,
            "num_blocks": 2,
            "num_attention_heads": 4,
            "ext_pw_out_channel": 32,
            "depthwise_separable_out_channel": 32,
            "nemo_conv_channels": 32,
            "audio_token_id": tokenizer.convert_tokens_to_ids(audio),
        },
        eos_token_id=[0, 1],
        bos_token_id=0,
        pad_token_id=0,
        **DECODER_SIZES,
    )
    model = Phi4MultimodalForCausalLM(config)
    # Log-mel features lie around 10; without centring every clip would look alike to the encoder.
    audio_norm = model.model.embed_tokens_extend.audio_embed.encoder.encoder_embedding
    audio_norm.global_mean.fill_(9.0)
    audio_norm.global_invstd.fill_(0.4)
    save(model, tokenizer, out, generator)
    save_processor(out, CROP_SIZE, PATCH_SIZE, MAX_CROPS)


def save_processor(out: Path, crop_size: int, patch_size: int, most_crops: int) -> None:
    """Writes the processor settings in the layout of the published checkpoint.

    The image half is written as JSON because the stock image processor class cannot be imported
    without torchvision, which nothing here needs otherwise.

    Args:
        out: The checkpoint's folder.
        crop_size: Pixels along the side of a crop.
        patch_size: Pixels along the side of a patch.
        most_crops: Of a picture, beside the one that shows all of it.
    """
    Phi4MultimodalFeatureExtractor().save_pretrained(out)
    settings = {
        "processor_class": "Phi4MultimodalProcessor",
        "image_processor_type": "Phi4MultimodalImageProcessor",
        "size": {"height": crop_size, "width": crop_size},
        "patch_size": patch_size,
        "dynamic_hd": most_crops,
        "resample": 3,
        "image_mean": [0.5, 0.5, 0.5],
        "image_std": [0.5, 0.5, 0.5],
        "do_convert_rgb": True,
        "do_rescale": True,
        "rescale_factor": 1 / 255,
        "do_normalize": True,
    }
    add_processor_settings(out, settings)
