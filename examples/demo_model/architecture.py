# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Sizes, tokenizer and processor settings of the demo model, in the native Hugging Face layout."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from transformers import (
    Phi4MultimodalConfig,
    PreTrainedTokenizerFast,
)

from examples.demo_model.pictures import SIDE
from examples.demo_model.samples import Examples
from examples.demo_model.voices import VoiceBank
from examples.tiny.phi4mm import AUDIO, IMAGE, MEDIA_TEMPLATE, save_processor
from examples.tiny.tokenizer import ASSISTANT, END, END_OF_TEXT, SYSTEM, USER, make_tokenizer

PATCH_SIZE = 14
# Two by two patches make a row; the one crop and the overview are each read out once.
ROWS_OF_A_PICTURE = 41
MAX_POSITIONS = 4096


def write_tokenizer(folder: Path) -> None:
    """Trains the tokenizer on the corpus and on examples of the data."""
    silence = VoiceBank(np.ones(3200, np.int16), np.tile([0, 3200], (1, 10, 1)))
    examples = Examples(np.random.default_rng(0), silence)
    texts = []
    for _ in range(1500):
        for turn in examples.conversation():
            texts += [turn.question, turn.answer]
    special = [END_OF_TEXT, END, USER, ASSISTANT, SYSTEM, IMAGE, AUDIO]
    tokenizer = make_tokenizer(special, MEDIA_TEMPLATE, texts, image_token=IMAGE, audio_token=AUDIO)
    tokenizer.model_max_length = MAX_POSITIONS
    tokenizer.save_pretrained(folder)


def load_tokenizer(folder: Path) -> PreTrainedTokenizerFast:
    """The tokenizer of a folder."""
    return PreTrainedTokenizerFast.from_pretrained(folder)


def make_config(tokenizer: PreTrainedTokenizerFast) -> Phi4MultimodalConfig:
    """The configuration: about 5.7 million parameters."""
    vocabulary = tokenizer.get_vocab()
    end_of_text, end, image, audio = (
        vocabulary[token] for token in (END_OF_TEXT, END, IMAGE, AUDIO)
    )
    return Phi4MultimodalConfig(
        vocab_size=len(tokenizer),
        hidden_size=192,
        intermediate_size=512,
        num_hidden_layers=6,
        num_attention_heads=6,
        num_key_value_heads=2,
        max_position_embeddings=MAX_POSITIONS,
        original_max_position_embeddings=MAX_POSITIONS,
        tie_word_embeddings=True,
        vision_config={
            "hidden_size": 128,
            "intermediate_size": 384,
            "num_hidden_layers": 5,
            "num_attention_heads": 4,
            "image_size": SIDE,
            "crop_size": SIDE,
            "patch_size": PATCH_SIZE,
            "feature_layer": -1,
            "image_token_id": image,
        },
        audio_config={
            "hidden_size": 144,
            "intermediate_size": 320,
            "num_blocks": 4,
            "num_attention_heads": 4,
            "ext_pw_out_channel": 144,
            "depthwise_separable_out_channel": 144,
            "nemo_conv_channels": 64,
            "bias_max_distance": 100,
            "audio_token_id": audio,
        },
        bos_token_id=end_of_text,
        eos_token_id=[end_of_text, end],
        pad_token_id=end_of_text,
    )


def write_processor(folder: Path) -> None:
    """Writes the settings of both processors; every picture becomes one crop."""
    save_processor(folder, SIDE, PATCH_SIZE, 1)
    path = folder / "preprocessor_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()), indent=2, sort_keys=True) + "\n")
