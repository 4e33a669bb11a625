# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Writes a Phi-4-multimodal of full size with random weights, made on the device.

    python benchmarks/gpu/checkpoint.py FOLDER

Sizes are those of the published configuration (about 5.3 billion weights, the head apart from the
embedding); the tokenizer is the tiny checkpoints'. Tokens that it does not have get no score.
"""

from __future__ import annotations

import sys
from pathlib import Path

import click
import torch
from transformers import (
    Phi4MultimodalConfig,
    Phi4MultimodalForCausalLM,
)

if __package__ in (None, ""):  # run as a script
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from examples.tiny.phi4mm import AUDIO, IMAGE, MEDIA_TEMPLATE, save_processor
from examples.tiny.phi4mm_adapters import save_adapters
from examples.tiny.tokenizer import ASSISTANT, END, END_OF_TEXT, SYSTEM, USER, make_tokenizer

ADAPTERS = {"vision": (256, 512), "speech": (320, 640)}
CROP_SIZE, PATCH_SIZE, MAX_CROPS = 448, 14, 16
SEED = 11


def build(folder: Path, adapters: bool = False) -> int:
    """Writes the checkpoint, with adapters of full rank if wanted; gives its number of weights."""
    tokenizer = make_tokenizer(
        [END_OF_TEXT, END, USER, ASSISTANT, SYSTEM, IMAGE, AUDIO],
        MEDIA_TEMPLATE,
        image_token=IMAGE,
        audio_token=AUDIO,
    )
    config = Phi4MultimodalConfig(
        num_attention_heads=24,
        num_key_value_heads=8,
        max_position_embeddings=131072,
        original_max_position_embeddings=131072,
        vision_config={"image_token_id": tokenizer.convert_tokens_to_ids(IMAGE)},
        audio_config={"audio_token_id": tokenizer.convert_tokens_to_ids(AUDIO)},
        eos_token_id=[0, 1],
        bos_token_id=0,
        pad_token_id=0,
    )
    torch.manual_seed(SEED)
    torch.set_default_dtype(torch.bfloat16)
    with torch.device("cuda"), torch.no_grad():
        model = Phi4MultimodalForCausalLM(config)
        model.lm_head.weight.normal_(0.0, 0.1)
        model.lm_head.weight[len(tokenizer) :] = 0.0
        if adapters:
            save_adapters(folder, model.state_dict(), None, ADAPTERS)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    save_processor(folder, CROP_SIZE, PATCH_SIZE, MAX_CROPS)
    return sum(weight.numel() for weight in model.parameters())


@click.command(help=__doc__)
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--adapters", is_flag=True, help="With its two adapters, of full rank.")
def main(folder: Path, adapters: bool) -> None:
    click.echo(f"{build(folder, adapters):,} weights: {folder}")


if __name__ == "__main__":
    main()
