# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""The multimodal families as tests ask them: what stands in a text, and prompts that may share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from PIL import Image

from support.media import clip, picture

# Every test imports this module; most of them need no model.
if TYPE_CHECKING:
    from support.prompts import PromptMaker
    from tensorrt_llm.inputs.data import ProcessedPrompt

Media: TypeAlias = "Image.Image | np.ndarray"


@dataclass(frozen=True)
class Family:
    """One family.

    Attributes:
        name: Its name in ``examples/tiny_checkpoints.py``.
        marks: For each modality what its chat template writes where an item stands.
        whole_rows: Rows of an item that must run in one step; 0 if an item may be split.
    """

    name: str
    marks: Mapping[str, str]
    whole_rows: int = 0

    def __str__(self) -> str:
        return self.name

    @property
    def modalities(self) -> tuple[str, ...]:
        """What it takes beside text."""
        return tuple(self.marks)

    def mark(self, media: Media) -> str:
        """What stands in a text for an item."""
        return self.marks["image" if isinstance(media, Image.Image) else "audio"]

    def text(self, *parts: str | Media) -> str:
        """A text in which the family's marks stand for the media."""
        return "".join(part if isinstance(part, str) else self.mark(part) for part in parts)

    def prompt(self, make: PromptMaker, *parts: str | Media, **options: Any) -> ProcessedPrompt:
        """A prompt of texts and media in order."""
        media = [part for part in parts if not isinstance(part, str)]
        return make(self.text(*parts), *media, **options)


_SOUND = "<|audio_bos|><|AUDIO|><|audio_eos|>"
_PICTURE = "<|vision_start|><|image_pad|><|vision_end|>"

FAMILIES = (
    Family("phi4mm", {"image": "<|image|>", "audio": "<|audio|>"}),
    Family("qwen2_audio", {"audio": _SOUND}),
    Family("qwen2_vl", {"image": _PICTURE}),
    Family("qwen2_5_vl", {"image": _PICTURE}),
    Family("qwen3_vl", {"image": _PICTURE}),
    Family("idefics3", {"image": "<image>"}),
    Family("smolvlm", {"image": "<image>"}),
    Family("llava_onevision", {"image": "<image>"}),
    Family("gemma3", {"image": "<start_of_image>"}, whole_rows=64),
    Family(
        "qwen2_5_omni",
        {"image": "<|vision_bos|><|IMAGE|><|vision_eos|>", "audio": _SOUND},
    ),
    Family("voxtral", {"audio": "[BEGIN_AUDIO][AUDIO]"}),
)

Named: TypeAlias = "tuple[ProcessedPrompt, tuple[str, ...]]"


@dataclass(frozen=True)
class SharingPrompts:
    """Prompts of one family, each with the names of its payloads, for tests of sharing.

    Attributes:
        prompts: All of them. Equal names mean equal payloads.
        twins: Indices of two prompts of the same tokens over different payloads.
        siblings: Indices of two prompts with one text and one payload in common.
    """

    prompts: list[Named]
    twins: list[tuple[int, int]]
    siblings: list[tuple[int, int]]


def sharing_prompts(family: Family, make: PromptMaker) -> SharingPrompts:
    """For each modality two payloads of equal length, and prompts of several items."""
    payloads: dict[str, Sequence[Media]] = {
        "image": [picture(1), picture(2), picture(4, 300, 90)],
        "audio": [clip(1, 2.0), clip(2, 2.0), clip(4, 3.1)],
    }
    ask = "Please listen and look closely at what follows here: "
    end = " What is it? Answer in one word."
    prompts: list[Named] = []

    def add(*chosen: tuple[str, int]) -> int:
        parts: list[Any] = [ask]
        for modality, which in chosen:
            parts += [payloads[modality][which], " then "]
        prompt = family.prompt(make, *parts[:-1], end)
        names = [
            f"{modality} {which} {dict(item.encoder_kwargs)}"
            for (modality, which), item in zip(chosen, prompt.items, strict=True)
        ]
        prompts.append((prompt, tuple(names)))
        return len(prompts) - 1

    twins, siblings = [], []
    for modality in family.modalities:
        twins.append((add((modality, 0)), add((modality, 1))))
        siblings.append((add((modality, 0), (modality, 2)), twins[-1][0]))
    if len(family.modalities) > 1:
        mixed = [add(("image", i), ("audio", a)) for i, a in ((0, 0), (0, 1), (1, 0))]
        twins += [(mixed[0], mixed[1]), (mixed[0], mixed[2])]
    return SharingPrompts(prompts, twins, siblings)
