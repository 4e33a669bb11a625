# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""The tables of docs/multimodal.md say what the code does."""

from __future__ import annotations

import json
import re
from dataclasses import asdict
from pathlib import Path

import click
import numpy as np
from PIL import Image

from tensorrt_llm.commands.serve import serve
from tensorrt_llm.inputs.audio_form import AUDIO_FORMATS
from tensorrt_llm.inputs.av_decode import (
    AUDIO_CODECS,
    CONTAINERS,
    VIDEO_CODECS,
    VIDEO_CONTAINERS,
)
from tensorrt_llm.inputs.decode_pool import MAX_WORKERS
from tensorrt_llm.inputs.image_form import IMAGE_FORMATS
from tensorrt_llm.inputs.media_decode import MODALITIES, resolve_options
from tensorrt_llm.inputs.media_limits import MediaLimits
from tensorrt_llm.inputs.multimodal_data import AudioData, MediaHasher
from tensorrt_llm.llmapi.llm_args import MultimodalConfig

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "multimodal.md").read_text(encoding="utf-8")


def table(*heads: str) -> dict[str, list[str]]:
    """Rows of the table with these column heads, by first cell."""
    start = PAGE.index(f"| {' | '.join(heads)} |")
    lines = PAGE[start:].split("\n\n")[0].splitlines()[2:]
    rows = [[cell.strip().strip("`") for cell in line.strip("|").split("|")] for line in lines]
    return {row[0]: row[1:] for row in rows}


def names(cell: str, separator: str = ",") -> set[str]:
    return {name.strip() for name in cell.split(separator)}


def test_digests() -> None:
    picture = Image.frombytes("RGB", (2, 1), bytes([1, 2, 3, 4, 5, 6]))
    clip = AudioData(np.array([0.5, -1, 0.25], np.float32), 16_000)
    hasher, context = MediaHasher("blake3"), {"dynamic_hd": 36}
    payload = hasher.payload_digest("image", picture)
    expected = {
        "payload P": payload,
        "payload C": hasher.payload_digest("audio", clip),
        "identity of P": hasher.identity("image", payload, context),
        "identity of P with the caller's id id-1": hasher.identity(
            "image", payload, context, "id-1"
        ),
    }
    written = {name: cells[0] for name, cells in table("digest", "blake3").items()}
    assert written == {name: digest.hex() for name, digest in expected.items() if digest}


def test_picture_modes_and_memo() -> None:
    for mode in Image.MODES:
        assert re.search(rf"\b{mode.split(';')[0]}\b", PAGE), mode
    bound = MultimodalConfig().media_memo_max_bytes
    assert f"({bound // 2**20} MiB; 0 decodes every time)" in PAGE


def test_formats() -> None:
    rows = table("modality", "formats")
    assert names(rows["image"][0]) == set(IMAGE_FORMATS)
    assert names(rows["audio, read by libsndfile"][0]) == set(AUDIO_FORMATS)
    assert names(rows["audio, read by FFmpeg"][0], ";") == set(CONTAINERS.values())
    of_video = {CONTAINERS[name] for name in VIDEO_CONTAINERS}
    assert names(rows["video, read by FFmpeg"][0], ";") == of_video


def test_codecs() -> None:
    rows = table("modality", "codecs")
    assert names(rows["audio"][0]) == set(AUDIO_CODECS)
    assert names(rows["video"][0]) == set(VIDEO_CODECS)


def test_decoding_options_and_their_defaults() -> None:
    defaults = {
        f"{modality}.{name}": value
        for modality in MODALITIES
        for name, value in resolve_options(modality, None, None).items()
    }
    rows = table("option", "default", "meaning")
    told = {name: json.loads(cells[0].strip("`")) for name, cells in rows.items()}
    assert told == json.loads(json.dumps(defaults))


def test_limits_and_their_defaults() -> None:
    rows = table("limit", "default", "most that is taken")
    limits = asdict(MediaLimits())
    assert {name: json.loads(cells[0]) for name, cells in rows.items()} == limits
    for name, cells in rows.items():
        assert ("." in cells[0]) == isinstance(limits[name], float), name


def test_options_of_the_command_line_and_their_defaults() -> None:
    options = {
        name: param
        for param in serve.params
        if isinstance(param, click.Option)
        for name in (*param.opts, *param.secondary_opts)
    }
    for name, cells in table("option", "default", "most that is taken").items():
        assert str(options[name].default) == cells[0].strip("`"), name
    for name in re.findall(r"--[a-z_]+", PAGE):
        assert name in options, name


def test_the_number_of_processes() -> None:
    assert f"one a CPU and at most {MAX_WORKERS}" in PAGE
