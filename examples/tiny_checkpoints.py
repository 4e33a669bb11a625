# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Tiny seeded checkpoints that behave like real ones.

    python examples/tiny_checkpoints.py FAMILY OUT [--seed N]

writes a Hugging Face folder (configuration, tokenizer with chat template, processor settings,
float32 weights of a few MB) that the unmodified ``transformers`` classes load offline. The weights
are random: the answers mean nothing, but they depend on every token, picture and clip that is put
in, which is what a serving engine has to be tested with.

``build`` does the same as a function. The file imports nothing of this project and needs only its
corpus beside it, so a test can load it by path.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import (
    Idefics3Config,
    Idefics3ForConditionalGeneration,
    LlamaConfig,
    LlamaForCausalLM,
    Phi4MultimodalConfig,
    Phi4MultimodalFeatureExtractor,
    Phi4MultimodalForCausalLM,
    PreTrainedModel,
    PreTrainedTokenizerFast,
    Qwen2_5_VLConfig,
    Qwen2_5_VLForConditionalGeneration,
    Qwen2AudioConfig,
    Qwen2AudioForConditionalGeneration,
    Qwen2VLConfig,
    Qwen2VLForConditionalGeneration,
    SmolVLMConfig,
    SmolVLMForConditionalGeneration,
    WhisperFeatureExtractor,
)
from transformers.image_utils import OPENAI_CLIP_MEAN, OPENAI_CLIP_STD
from transformers.utils import logging as transformers_logging

VOCAB_SIZE = 1280
MAX_POSITIONS = 16384
CROP_SIZE = 112
PATCH_SIZE = 14
MAX_CROPS = 9

END_OF_TEXT, END, USER, ASSISTANT, SYSTEM = (
    "<|endoftext|>",
    "<|end|>",
    "<|user|>",
    "<|assistant|>",
    "<|system|>",
)
IMAGE, AUDIO = "<|image|>", "<|audio|>"
TURN, TURN_END = "<|im_start|>", "<|im_end|>"

TEXT_TEMPLATE = """\
{%- for message in messages -%}
{{- '<|' + message['role'] + '|>' + message['content'] + '<|end|>' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- '<|assistant|>' -}}{%- endif -%}
"""

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

# As Qwen's published templates do: a system message of its own if there is none, media between
# marks.
QWEN_TEMPLATE = """\
{%- for message in messages -%}
{%- if loop.first and message['role'] != 'system' -%}
{{- '<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n' -}}
{%- endif -%}
{{- '<|im_start|>' + message['role'] + '\n' -}}
{%- if message['content'] is string -%}
{{- message['content'] -}}
{%- else -%}
{%- for part in message['content'] -%}
{%- if part['type'] == 'text' -%}{{- part['text'] -}}
{%- elif part['type'] in ['image', 'image_url'] -%}
{{- '<|vision_start|><|image_pad|><|vision_end|>' -}}
{%- elif part['type'] in ['audio', 'audio_url', 'input_audio'] -%}
{{- '<|audio_bos|><|AUDIO|><|audio_eos|>' -}}
{%- else -%}{{- raise_exception('unknown content part: ' + part['type']) -}}
{%- endif -%}
{%- endfor -%}
{%- endif -%}
{{- '<|im_end|>\n' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- '<|im_start|>assistant\n' -}}{%- endif -%}
"""

# As Idefics3's: roles in words, and white space that depends on what a message begins with.
IDEFICS_TEMPLATE = """\
{{- '<|im_start|>' -}}
{%- for message in messages -%}
{{- message['role'] | capitalize -}}
{%- if message['content'] is string -%}
{{- ': ' + message['content'] -}}
{%- else -%}
{{- ':' if message['content'] and message['content'][0]['type'] == 'image' else ': ' -}}
{%- for part in message['content'] -%}
{%- if part['type'] == 'text' -%}{{- part['text'] -}}
{%- elif part['type'] in ['image', 'image_url'] -%}{{- '<image>' -}}
{%- else -%}{{- raise_exception('unknown content part: ' + part['type']) -}}
{%- endif -%}
{%- endfor -%}
{%- endif -%}
{{- '<end_of_utterance>\n' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- 'Assistant:' -}}{%- endif -%}
"""

DECODER_SIZES: dict[str, Any] = {
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": MAX_POSITIONS,
}


def make_tokenizer(
    special_tokens: Sequence[str], chat_template: str, **named: str
) -> PreTrainedTokenizerFast:
    """Trains a byte-level BPE tokenizer on the corpus beside this file.

    Args:
        special_tokens: Special tokens in id order, from id 0.
        chat_template: Jinja chat template kept with the tokenizer.
        named: Special tokens that processors ask the tokenizer for, such as ``image_token``.

    Returns:
        The tokenizer. The same arguments give the same ids every time.
    """
    corpus = Path(__file__).with_name("tiny_corpus.txt").read_text(encoding="utf-8")
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCAB_SIZE,
        special_tokens=list(special_tokens),
        show_progress=False,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
    )
    tokenizer.train_from_iterator(corpus.splitlines(), trainer)
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


def build_llama(out: Path, generator: torch.Generator) -> None:
    """Writes a text checkpoint whose chat template takes strings only."""
    tokenizer = make_tokenizer([END_OF_TEXT, END, USER, ASSISTANT, SYSTEM], TEXT_TEMPLATE)
    config = LlamaConfig(vocab_size=len(tokenizer), tie_word_embeddings=False, **DECODER_SIZES)
    _save(LlamaForCausalLM(config), tokenizer, out, generator)


def build_phi4mm(out: Path, generator: torch.Generator) -> None:
    """Writes a Phi-4-multimodal checkpoint (image and audio) with crops of 112 pixels.

    One picture takes 41 to 177 tokens, depending on how it falls into at most nine crops; sound
    takes 12.5 tokens a second as in the full-size model.
    """
    tokenizer = make_tokenizer(
        [END_OF_TEXT, END, USER, ASSISTANT, SYSTEM, IMAGE, AUDIO],
        MEDIA_TEMPLATE,
        image_token=IMAGE,
        audio_token=AUDIO,
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
            "image_token_id": tokenizer.convert_tokens_to_ids(IMAGE),
        },
        audio_config={
            "hidden_size": 32,
            "intermediate_size": 48,
            "num_blocks": 2,
            "num_attention_heads": 4,
            "ext_pw_out_channel": 32,
            "depthwise_separable_out_channel": 32,
            "nemo_conv_channels": 32,
            "audio_token_id": tokenizer.convert_tokens_to_ids(AUDIO),
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
    _save(model, tokenizer, out, generator)
    _save_phi4mm_processor(out)


def _save_phi4mm_processor(out: Path) -> None:
    """Writes the processor settings in the layout of the published checkpoint.

    The image half is written as JSON because the stock image processor class cannot be imported
    without torchvision, which nothing here needs otherwise.
    """
    Phi4MultimodalFeatureExtractor().save_pretrained(out)
    settings = {
        "processor_class": "Phi4MultimodalProcessor",
        "image_processor_type": "Phi4MultimodalImageProcessor",
        "size": {"height": CROP_SIZE, "width": CROP_SIZE},
        "patch_size": PATCH_SIZE,
        "dynamic_hd": MAX_CROPS,
        "resample": 3,
        "image_mean": [0.5, 0.5, 0.5],
        "image_std": [0.5, 0.5, 0.5],
        "do_convert_rgb": True,
        "do_rescale": True,
        "rescale_factor": 1 / 255,
        "do_normalize": True,
    }
    _add_processor_settings(out, settings)


def build_qwen2_audio(out: Path, generator: torch.Generator) -> None:
    """Writes a Qwen2-Audio checkpoint; sound takes 25 tokens a second, at most 30 seconds."""
    names = {
        "audio_token": "<|AUDIO|>",
        "audio_bos_token": "<|audio_bos|>",
        "audio_eos_token": "<|audio_eos|>",
    }
    tokenizer = make_tokenizer(
        [END_OF_TEXT, TURN_END, TURN, *names.values()], QWEN_TEMPLATE, **names
    )
    config = Qwen2AudioConfig(
        text_config={"model_type": "qwen2", **_text_sizes(tokenizer)},
        audio_config={
            "d_model": 32,
            "encoder_layers": 2,
            "encoder_attention_heads": 4,
            "encoder_ffn_dim": 64,
            "num_mel_bins": 128,
        },
        audio_token_index=tokenizer.get_vocab()["<|AUDIO|>"],
    )
    _save(Qwen2AudioForConditionalGeneration(config), tokenizer, out, generator, TURN_END)
    WhisperFeatureExtractor(feature_size=128, return_attention_mask=True).save_pretrained(out)
    _add_processor_settings(out, {"processor_class": "Qwen2AudioProcessor"})


def build_qwen2_vl(out: Path, generator: torch.Generator) -> None:
    """Writes a Qwen2-VL checkpoint; a picture takes a token for 28 x 28 pixels, at most 256."""
    tokenizer, shared = _qwen_vl_parts()
    config = Qwen2VLConfig(
        vision_config={
            "depth": 2,
            "embed_dim": 32,
            "hidden_size": DECODER_SIZES["hidden_size"],
            "num_heads": 4,
            "mlp_ratio": 2,
        },
        **shared,
    )
    _save(Qwen2VLForConditionalGeneration(config), tokenizer, out, generator, TURN_END)
    _save_qwen_vl_processor(out, "Qwen2VLProcessor")


def build_qwen2_5_vl(out: Path, generator: torch.Generator) -> None:
    """Writes a Qwen2.5-VL checkpoint, whose picture encoder attends within windows."""
    tokenizer, shared = _qwen_vl_parts()
    config = Qwen2_5_VLConfig(
        vision_config={
            "depth": 2,
            "hidden_size": 32,
            "intermediate_size": 64,
            "num_heads": 4,
            "out_hidden_size": DECODER_SIZES["hidden_size"],
            "window_size": 56,
            "fullatt_block_indexes": [1],
        },
        **shared,
    )
    _save(Qwen2_5_VLForConditionalGeneration(config), tokenizer, out, generator, TURN_END)
    _save_qwen_vl_processor(out, "Qwen2_5_VLProcessor")


def _qwen_vl_parts() -> tuple[PreTrainedTokenizerFast, dict[str, Any]]:
    """Tokenizer of both families, and what their configurations have in common."""
    marks = ["<|vision_start|>", "<|vision_end|>", "<|image_pad|>", "<|video_pad|>"]
    tokenizer = make_tokenizer(
        [END_OF_TEXT, TURN_END, TURN, *marks],
        QWEN_TEMPLATE,
        image_token="<|image_pad|>",
        video_token="<|video_pad|>",
    )
    ids = {
        f"{mark[2:-2].removesuffix('_pad')}_token_id": tokenizer.convert_tokens_to_ids(mark)
        for mark in marks
    }
    # A head of 16 turns 8 pairs: 2 by time, 3 by height, 3 by width.
    rope = {"rope_type": "default", "rope_theta": 10000.0, "mrope_section": [2, 3, 3]}
    return tokenizer, {"text_config": {"rope_parameters": rope, **_text_sizes(tokenizer)}, **ids}


def build_idefics3(out: Path, generator: torch.Generator) -> None:
    """Writes an Idefics3 checkpoint with tiles of 56 pixels, at most 3 x 3 and 16 tokens each."""
    _build_idefics(Idefics3Config, Idefics3ForConditionalGeneration, out, generator)


def build_smolvlm(out: Path, generator: torch.Generator) -> None:
    """Writes a SmolVLM checkpoint, which takes pictures as Idefics3 does."""
    _build_idefics(SmolVLMConfig, SmolVLMForConditionalGeneration, out, generator)


def _build_idefics(
    config_class: Any, model_class: Any, out: Path, generator: torch.Generator
) -> None:
    end = "<end_of_utterance>"
    tags = [f"<row_{line}_col_{column}>" for line in range(1, 4) for column in range(1, 4)]
    marks = ["<fake_token_around_image>", "<image>", "<global-img>", *tags]
    tokenizer = make_tokenizer([END_OF_TEXT, end, TURN, *marks], IDEFICS_TEMPLATE)
    config = config_class(
        text_config={"model_type": "llama", **_text_sizes(tokenizer)},
        vision_config={
            "hidden_size": 32,
            "intermediate_size": 64,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "image_size": 56,
            "patch_size": 7,
        },
        image_token_id=tokenizer.get_vocab()["<image>"],
        scale_factor=2,
        pad_token_id=0,
    )
    _save(model_class(config), tokenizer, out, generator, end)
    name = config_class.__name__.removesuffix("Config")
    settings = {
        "processor_class": f"{name}Processor",
        "image_processor_type": f"{name}ImageProcessor",
        "size": {"longest_edge": 168},
        "max_image_size": {"longest_edge": 56},
        "do_image_splitting": True,
        "image_mean": [0.5, 0.5, 0.5],
        "image_std": [0.5, 0.5, 0.5],
    }
    _add_processor_settings(out, settings)


def _text_sizes(tokenizer: PreTrainedTokenizerFast) -> dict[str, Any]:
    ids = {"bos_token_id": 0, "eos_token_id": 1, "pad_token_id": 0}
    return {"vocab_size": len(tokenizer), **ids, **DECODER_SIZES}


def _save_qwen_vl_processor(out: Path, processor_class: str) -> None:
    settings = {
        "processor_class": processor_class,
        "image_processor_type": "Qwen2VLImageProcessor",
        "min_pixels": 56 * 56,
        "max_pixels": 256 * 28 * 28,
        "patch_size": PATCH_SIZE,
        "merge_size": 2,
        "temporal_patch_size": 2,
        "image_mean": list(OPENAI_CLIP_MEAN),
        "image_std": list(OPENAI_CLIP_STD),
    }
    _add_processor_settings(out, settings)


def _add_processor_settings(out: Path, settings: dict[str, Any]) -> None:
    """Adds to the folder's ``preprocessor_config.json``, the layout of published checkpoints."""
    path = out / "preprocessor_config.json"
    present = json.loads(path.read_text()) if path.exists() else {}
    path.write_text(json.dumps(present | settings, indent=2, sort_keys=True) + "\n")


# Gain of a weight matrix over 1/sqrt(fan in), by the first pattern its name matches. The defaults
# of transformers are so small that a random model answers everything alike. Sharp attention
# (queries and keys) makes a token see few others rather than their average, and strong value paths
# let what it sees outweigh the token itself, so that the answer depends on the media. The wide head
# gives most tokens a clear winner.
GAINS = (
    (r"lm_head", 8.0),
    (r"encoder\.embed\.", 2.5),
    (r"layers\.\d+\.mlp", 2.2),
    (r"layers\.\d+\.self_attn\.(qkv_proj|q_proj|k_proj)", 2.0),
    (r"layers\.\d+\.self_attn\.(o_proj|v_proj|out_proj)", 2.0),
    (r"position_embedding|embed_positions|bias_values", 0.5),
    (r"img_projection_down|down_proj_for", 2.0),
    (r"", 1.4),
)


def seed_weights(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerFast,
    generator: torch.Generator,
    end: str,
) -> None:
    """Draws every weight anew, from the generator only.

    Matrices are normal with a gain by name, norms one, biases small. Tokens that a text answer
    should not contain (all special tokens but the end mark, single bytes that are no ASCII text)
    get an output row of zero, so greedy answers decode to readable words.
    """
    with torch.no_grad():
        for name, weight in sorted(model.named_parameters()):
            if weight.ndim >= 2:
                gain = next(gain for pattern, gain in GAINS if re.search(pattern, name))
                weight.normal_(0.0, gain / _fan_in(name, weight) ** 0.5, generator=generator)
            elif name.endswith("bias") or re.search(r"\.b[12]$", name):
                weight.normal_(0.0, 0.02, generator=generator)
            else:
                weight.fill_(1.0)
        silent = [i for i in range(len(tokenizer)) if not _is_answer_token(tokenizer, i, end)]
        model.get_output_embeddings().weight[silent] = 0.0


def _fan_in(name: str, weight: torch.Tensor) -> int:
    # Rows of a table are picked, not summed, and the separators of image rows stand for a feature.
    if re.search(r"embed_tokens\.|position_embedding|embed_positions|bias_values|extensor", name):
        return 1
    return weight[0].numel()


def _is_answer_token(tokenizer: PreTrainedTokenizerFast, token: int, end: str) -> bool:
    if token in tokenizer.all_special_ids or token in tokenizer.added_tokens_decoder:
        return tokenizer.convert_ids_to_tokens(token) == end
    text = tokenizer.decode([token])
    assert isinstance(text, str)
    return text.isprintable() and "\N{REPLACEMENT CHARACTER}" not in text


def _save(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerFast,
    out: Path,
    generator: torch.Generator,
    end: str = END,
) -> None:
    seed_weights(model, tokenizer, generator, end)
    ends = [tokenizer.convert_tokens_to_ids(END_OF_TEXT), tokenizer.convert_tokens_to_ids(end)]
    model.config.eos_token_id = model.generation_config.eos_token_id = ends
    model.config.bos_token_id = model.generation_config.bos_token_id = ends[0]
    model.config.pad_token_id = model.generation_config.pad_token_id = ends[0]
    model.eval().save_pretrained(out)
    tokenizer.save_pretrained(out)


FAMILIES: dict[str, Callable[[Path, torch.Generator], None]] = {
    "phi4mm": build_phi4mm,
    "qwen2_audio": build_qwen2_audio,
    "qwen2_vl": build_qwen2_vl,
    "qwen2_5_vl": build_qwen2_5_vl,
    "idefics3": build_idefics3,
    "smolvlm": build_smolvlm,
    "llama": build_llama,
}


def build(family: str, out: str | Path, seed: int = 0) -> Path:
    """Writes a tiny checkpoint.

    Args:
        family: ``"phi4mm"`` (image and audio), ``"qwen2_audio"`` (audio), ``"qwen2_vl"``,
            ``"qwen2_5_vl"``, ``"idefics3"`` or ``"smolvlm"`` (image), or ``"llama"`` (text).
        out: Folder to write; made if missing, files in it are replaced.
        seed: Seed of the weights. Tokenizer and configuration do not depend on it.

    Returns:
        The folder.

    Raises:
        ValueError: If the family is unknown; the message lists the known ones.
    """
    if family not in FAMILIES:
        raise ValueError(f"unknown family {family!r}; known: {', '.join(FAMILIES)}")
    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    generator = torch.Generator().manual_seed(seed)
    # Construction draws from torch's own generator; leave the caller's stream as it was.
    with torch.random.fork_rng(devices=[]), _DefaultDtype(torch.float32):
        FAMILIES[family](folder, generator)
    return folder


class _DefaultDtype:
    """Sets torch's default dtype for a block and puts the caller's back."""

    def __init__(self, dtype: torch.dtype) -> None:
        self._dtype = dtype

    def __enter__(self) -> None:
        self._before = torch.get_default_dtype()
        torch.set_default_dtype(self._dtype)

    def __exit__(self, *_: object) -> None:
        torch.set_default_dtype(self._before)


def main() -> None:
    """Command line entry."""
    parser = argparse.ArgumentParser(
        description="Write a tiny seeded checkpoint in Hugging Face format."
    )
    parser.add_argument("family", choices=FAMILIES, help="model family")
    parser.add_argument("out", type=Path, help="folder to write")
    parser.add_argument("--seed", type=int, default=0, help="seed of the weights (default: 0)")
    arguments = parser.parse_args()
    transformers_logging.disable_progress_bar()
    folder = build(arguments.family, arguments.out, arguments.seed)
    size = sum(file.stat().st_size for file in folder.iterdir() if file.is_file())
    print(f"{arguments.family} checkpoint, {size / 1e6:.1f} MB: {folder}")


if __name__ == "__main__":
    main()
