# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Of every family: what a processor is set to is part of what it makes an identity of."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from support.checkpoints import altered
from support.families import Family
from support.media import clip, film, picture
from support.prompts import PromptMaker

IMAGE = {"image_mean": [0.4, 0.5, 0.6], "image_std": [0.4, 0.5, 0.6]}
RESAMPLE = {"resample": 0}  # nearest, where the default of none of them is
SOUND = {"padding_value": 0.1}
# Settings that a family does not read say nothing about its items.
UNREAD = {"phi4mm": {"resample", "padding_value"}}
OWN: dict[str, dict[str, Any]] = {"phi4mm": {"preemphasis": 0.9}}


def _but_video(family: Family) -> list[str]:
    # Settings of pictures may hold for video as well.
    return [modality for modality in family.modalities if modality != "video"]


def identities(folder: Path, family: Family) -> dict[str, Any]:
    """By modality, of the same payloads."""
    make = PromptMaker(folder)
    payloads = {"image": picture(1, 150, 100), "audio": clip(1)}
    return {
        modality: family.prompt(make, payloads[modality]).items[0].identity
        for modality in _but_video(family)
    }


def test_other_settings_make_other_identities(
    family: Family, family_checkpoint: Path, tmp_path: Path
) -> None:
    before = identities(family_checkpoint, family)
    changes = {"image": IMAGE | RESAMPLE, "audio": SOUND | OWN.get(family.name, {})}
    for modality in _but_video(family):
        tried = {
            name: value
            for name, value in changes[modality].items()
            if name not in UNREAD.get(family.name, ())
        }
        assert tried
        for name, value in tried.items():
            after = identities(altered(family_checkpoint, tmp_path / name, **{name: value}), family)
            for other in _but_video(family):
                assert (before[other] != after[other]) == (other == modality), (name, other)


def test_the_same_settings_make_the_same(
    family: Family, family_checkpoint: Path, tmp_path: Path
) -> None:
    assert identities(family_checkpoint, family) == identities(
        altered(family_checkpoint, tmp_path / "copy", unknown_to_all=1), family
    )


def test_settings_of_video_count_for_video_alone(
    family: Family, family_checkpoint: Path, tmp_path: Path
) -> None:
    if "video" not in family.modalities:
        return
    folder = altered(family_checkpoint, tmp_path / "other")
    path = folder / "video_preprocessor_config.json"
    source = path if path.exists() else folder / "preprocessor_config.json"
    path.write_text(json.dumps(json.loads(source.read_text()) | IMAGE))
    assert identities(folder, family) == identities(family_checkpoint, family)
    one, other = (
        family.prompt(PromptMaker(checkpoint), film(1)).items[0].identity
        for checkpoint in (family_checkpoint, folder)
    )
    assert one is not None and one != other
