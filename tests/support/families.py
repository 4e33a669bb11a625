# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""The multimodal families as tests ask them: what stands in a text, and prompts that may share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from PIL import Image

from support.media import clip, film, picture

# Every test imports this module; most of them need no model.
if TYPE_CHECKING:
    from support.prompts import PromptMaker
    from tensorrt_llm.inputs.data import ProcessedPrompt
    from tensorrt_llm.inputs.video_data import VideoClip

Media: TypeAlias = "Image.Image | np.ndarray | VideoClip"


def modality_of(media: Media) -> str:
    """What a payload is."""
    if isinstance(media, Image.Image):
        return "image"
    return "video" if hasattr(media, "timestamps") else "audio"


@dataclass(frozen=True)
class Family:
    """One family.

    Attributes:
        name: Its name in ``examples/tiny_checkpoints.py``.
        marks: For each modality what its chat template writes where an item stands.
        whole_rows: Rows of an item that must run in one step; 0 if an item may be split.
        options: Processor options that tests ask with.
    """

    name: str
    marks: Mapping[str, str]
    whole_rows: int = 0
    options: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.name

    @property
    def modalities(self) -> tuple[str, ...]:
        """What it takes beside text."""
        return tuple(self.marks)

    def mark(self, media: Media) -> str:
        """What stands in a text for an item."""
        return self.marks[modality_of(media)]

    def text(self, *parts: str | Media) -> str:
        """A text in which the family's marks stand for the media."""
        return "".join(part if isinstance(part, str) else self.mark(part) for part in parts)

    def prompt(self, make: PromptMaker, *parts: str | Media, **options: Any) -> ProcessedPrompt:
        """A prompt of texts and media in order."""
        media = [part for part in parts if not isinstance(part, str)]
        return make(self.text(*parts), *media, **{**self.options, **options})


_SOUND = "<|audio_bos|><|AUDIO|><|audio_eos|>"
_SEEN = {
    "image": "<|vision_start|><|image_pad|><|vision_end|>",
    "video": "<|vision_start|><|video_pad|><|vision_end|>",
}

FAMILIES = (
    Family("phi4mm", {"image": "<|image|>", "audio": "<|audio|>"}),
    Family("qwen2_audio", {"audio": _SOUND}),
    Family("qwen2_vl", _SEEN),
    Family("qwen2_5_vl", _SEEN),
    Family("qwen3_vl", _SEEN),
    Family("idefics3", {"image": "<image>"}),
    Family("smolvlm", {"image": "<image>"}),
    Family("llava_onevision", {"image": "<image>", "video": "<video>"}),
    Family("gemma3", {"image": "<start_of_image>"}, whole_rows=64),
    Family(
        "qwen2_5_omni",
        {
            "image": "<|vision_bos|><|IMAGE|><|vision_eos|>",
            "audio": _SOUND,
            "video": "<|vision_bos|><|VIDEO|><|vision_eos|>",
        },
        options={"use_audio_in_video": True},
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
        "video": [
            film(1, sound=clip(5, 2.0)),
            film(2, sound=clip(6, 2.0)),
            film(4, 4, 140, 60, sound=clip(7, 2.9)),
        ],
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
        one, other = family.modalities[0], family.modalities[-1]
        mixed = [add((one, i), (other, a)) for i, a in ((0, 0), (0, 1), (1, 0))]
        twins += [(mixed[0], mixed[1]), (mixed[0], mixed[2])]
    return SharingPrompts(prompts, twins, siblings)
