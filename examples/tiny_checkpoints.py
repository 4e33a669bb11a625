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
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch
from transformers.utils import logging as transformers_logging

# Run as a script, or loaded by path.
if __package__ in (None, "") and str(Path(__file__).resolve().parents[1]) not in sys.path:
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from examples.tiny.gemma3 import build_gemma3
from examples.tiny.idefics3 import build_idefics3, build_smolvlm
from examples.tiny.llava_onevision import build_llava_onevision
from examples.tiny.phi4mm import build_phi4mm
from examples.tiny.phi4mm_adapters import build_phi4mm_lora, build_phi4mm_published
from examples.tiny.qwen2_5_omni import build_qwen2_5_omni
from examples.tiny.qwen2_audio import build_qwen2_audio
from examples.tiny.qwen2_vl import build_qwen2_5_vl, build_qwen2_vl, build_qwen3_vl
from examples.tiny.text import TEXT_FAMILIES, build_text
from examples.tiny.voxtral import build_voxtral

FAMILIES: dict[str, Callable[[Path, torch.Generator], None]] = {
    "phi4mm": build_phi4mm,
    "qwen2_audio": build_qwen2_audio,
    "qwen2_vl": build_qwen2_vl,
    "qwen2_5_vl": build_qwen2_5_vl,
    "qwen3_vl": build_qwen3_vl,
    "idefics3": build_idefics3,
    "smolvlm": build_smolvlm,
    "llava_onevision": build_llava_onevision,
    "gemma3": build_gemma3,
    "voxtral": build_voxtral,
    "qwen2_5_omni": build_qwen2_5_omni,
    "phi4mm_lora": build_phi4mm_lora,
    "phi4mm_published": build_phi4mm_published,
    **{family: partial(build_text, family) for family in TEXT_FAMILIES},
}


def build(family: str, out: str | Path, seed: int = 0) -> Path:
    """Writes a tiny checkpoint.

    Args:
        family: A key of ``FAMILIES``, such as ``"phi4mm"`` (image and audio) or ``"llama"`` (text).
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
