# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Tokenizers trained on the corpus beside this file, and the marks that chat templates share."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

VOCAB_SIZE = 1280
MAX_POSITIONS = 16384

END_OF_TEXT, END, USER, ASSISTANT, SYSTEM = (
    "<|endoftext|>",
    "<|end|>",
    "<|user|>",
    "<|assistant|>",
    "<|system|>",
)
TURN, TURN_END = "<|im_start|>", "<|im_end|>"


def make_tokenizer(
    special_tokens: Sequence[str],
    chat_template: str,
    more_text: Sequence[str] = (),
    **named: str,
) -> PreTrainedTokenizerFast:
    """Trains a byte-level BPE tokenizer on the corpus beside this file.

    Args:
        special_tokens: Special tokens in id order, from id 0.
        chat_template: Jinja chat template kept with the tokenizer.
        more_text: Text to train on beside the corpus.
        named: Special tokens that processors ask the tokenizer for, such as ``image_token``.

    Returns:
        The tokenizer. The same arguments give the same ids every time.
    """
    corpus = Path(__file__).with_name("corpus.txt").read_text(encoding="utf-8")
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCAB_SIZE,
        special_tokens=list(special_tokens),
        show_progress=False,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
    )
    tokenizer.train_from_iterator([*corpus.splitlines(), *more_text], trainer)
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        bos_token=END_OF_TEXT,
        eos_token=END_OF_TEXT,
        pad_token=END_OF_TEXT,
        extra_special_tokens=named,
        model_max_length=MAX_POSITIONS,
    )
    fast.chat_template = chat_template
    return fast
