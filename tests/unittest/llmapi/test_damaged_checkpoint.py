# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""A checkpoint that was copied in part, or put together from two, is refused at start by name.

The whole one then starts in the same process, so that a refusal leaves nothing behind.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from safetensors import safe_open
from support.checkpoints import build_checkpoint

from tensorrt_llm.errors import ConfigurationError
from tensorrt_llm.executor.host_process import HostProcess
from tensorrt_llm.llmapi import KvCacheConfig
from tensorrt_llm.llmapi.llm import LLM
from tensorrt_llm.sampling_params import SamplingParams

WEIGHTS, SETTINGS = "model.safetensors", "config.json"
Damage = Callable[[Path], object]


def cut(name: str) -> Damage:
    """Leaves the first half of a file, as a copy that was interrupted does."""

    def damage(folder: Path) -> None:
        whole = (folder / name).read_bytes()
        (folder / name).write_bytes(whole[: len(whole) // 2])

    return damage


def emptied(name: str) -> Damage:
    return lambda folder: (folder / name).write_bytes(b"")


def missing(name: str) -> Damage:
    return lambda folder: (folder / name).unlink()


def dangling(name: str) -> Damage:
    """As a cache of downloads looks whose blobs are gone."""

    def damage(folder: Path) -> None:
        (folder / name).unlink()
        (folder / name).symlink_to(folder / "blobs" / "gone")

    return damage


def no_header(folder: Path) -> None:
    with (folder / WEIGHTS).open("r+b") as file:
        file.write(b"\xff" * 8)


def second_shard_missing(folder: Path) -> None:
    """The index names two files, and one of them was never copied."""
    first = folder / "model-00001-of-00002.safetensors"
    (folder / WEIGHTS).rename(first)
    with safe_open(first, "pt") as tensors:
        names = list(tensors.keys())
    placed = {name: f"model-0000{1 + i % 2}-of-00002.safetensors" for i, name in enumerate(names)}
    index = {"metadata": {}, "weight_map": placed}
    (folder / f"{WEIGHTS}.index.json").write_text(json.dumps(index))


def changed(**fields: int) -> Damage:
    """The configuration of another model of the family."""

    def damage(folder: Path) -> None:
        settings = json.loads((folder / SETTINGS).read_text())
        assert all(settings[name] != value for name, value in fields.items())
        (folder / SETTINGS).write_text(json.dumps(settings | fields))

    return damage


DAMAGES: dict[str, tuple[Damage, str]] = {
    "weights cut": (cut(WEIGHTS), "cannot load weights: .*header"),
    "weights empty": (emptied(WEIGHTS), "cannot load weights: .*header too small"),
    "weights without a header": (no_header, "cannot load weights: .*header too large"),
    "weights missing": (missing(WEIGHTS), "cannot load weights: .*no file named model.safetensors"),
    "weights a dangling link": (dangling(WEIGHTS), "cannot load weights: .*no file named"),
    "a shard missing": (second_shard_missing, "cannot load weights: .*00002-of-00002"),
    "one layer more": (changed(num_hidden_layers=4), "weights are missing, the first is model.lay"),
    "other sizes": (changed(hidden_size=48), "of another shape, the first is .*64.* says .*48"),
    "settings cut": (cut(SETTINGS), "config.json' is no JSON"),
    "settings empty": (emptied(SETTINGS), "config.json' is no JSON"),
    "settings missing": (missing(SETTINGS), "has no config.json"),
    "tokenizer cut": (cut("tokenizer.json"), "tokenizer: cannot load one from"),
    "tokenizer missing": (missing("tokenizer.json"), "tokenizer: cannot load one from"),
    "tokenizer's settings cut": (cut("tokenizer_config.json"), "tokenizer: cannot load one from"),
    "processor's settings cut": (cut("preprocessor_config.json"), "preprocessor_config.json: not"),
    "processor's settings missing": (missing("preprocessor_config.json"), "no image settings in"),
    "ends of answers cut": (cut("generation_config.json"), "generation_config.json: not readable"),
    "template cut": (cut("chat_template.jinja"), "chat_template: line "),
}


@pytest.fixture(name="copied")
def copied_checkpoint(phi4mm_checkpoint: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(phi4mm_checkpoint, tmp_path / "copy"))


def started(folder: Path, host: HostProcess) -> LLM:
    config = KvCacheConfig(max_tokens=1024)
    return LLM(str(folder), max_seq_len=512, kv_cache_config=config, engine_host=host)


@pytest.mark.parametrize(("damage", "told"), DAMAGES.values(), ids=DAMAGES)
def test_damage_is_told_at_start(
    damage: Damage, told: str, copied: Path, engine_host: HostProcess
) -> None:
    damage(copied)
    with pytest.raises(ConfigurationError, match=told) as refused:
        started(copied, engine_host)
    assert len(str(refused.value).splitlines()) == 1, "more than a line"


def test_weights_of_another_model_are_told(
    copied: Path, checkpoint_root: Path, engine_host: HostProcess
) -> None:
    other = build_checkpoint("qwen2_vl", checkpoint_root)
    shutil.copy(other / WEIGHTS, copied / WEIGHTS)
    with pytest.raises(ConfigurationError, match=r"weights are missing, the first is model.embed"):
        started(copied, engine_host)


@pytest.mark.parametrize("name", ["generation_config.json", "chat_template.jinja"])
def test_the_whole_one_and_one_without_what_is_optional_start(
    name: str, copied: Path, engine_host: HostProcess
) -> None:
    prompt, sampling = "Look at this", SamplingParams(max_tokens=3)
    with started(copied, engine_host) as whole:
        expected = whole.generate(prompt, sampling, use_tqdm=False).outputs[0].token_ids
    (copied / name).unlink()
    with started(copied, engine_host) as without:
        assert without.generate(prompt, sampling, use_tqdm=False).outputs[0].token_ids == expected
