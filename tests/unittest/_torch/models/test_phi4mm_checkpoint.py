# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Both layouts of Phi-4-multimodal are one model; a part that lacks is told."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from support.checkpoints import altered, build_checkpoint

from tensorrt_llm._torch.models import load_model
from tensorrt_llm._torch.models.modeling_phi4mm import Phi4MultimodalModel
from tensorrt_llm.errors import ConfigurationError
from tensorrt_llm.inputs.model_config import load_config


def load(folder: Path) -> Phi4MultimodalModel:
    model = load_model(
        str(folder),
        load_config(str(folder)),
        dtype=torch.float32,
        device=torch.device("cpu"),
        max_seq_len=1024,
    )
    assert isinstance(model, Phi4MultimodalModel)
    return model


@pytest.fixture(scope="module")
def native(checkpoint_root: Path) -> Path:
    return build_checkpoint("phi4mm_lora", checkpoint_root)


@pytest.fixture(scope="module")
def published(checkpoint_root: Path) -> Path:
    return build_checkpoint("phi4mm_published", checkpoint_root)


def test_both_layouts_are_one_model(native: Path, published: Path) -> None:
    ours, theirs = load(native), load(published)
    weights, expected = theirs.hf_model.state_dict(), ours.hf_model.state_dict()
    assert weights.keys() == expected.keys()
    assert all(torch.equal(weights[name], expected[name]) for name in expected)
    assert ours.mode_adapters.keys() == theirs.mode_adapters.keys() == {"vision", "speech"}
    for mode, adapter in ours.mode_adapters.items():
        # Every linear layer of the decoder, and no encoder.
        assert len(adapter.layers) == 4 * ours.num_layers
        assert not adapter.touches_encoders
        assert theirs.mode_adapters[mode].digest == adapter.digest


def test_a_checkpoint_without_adapters_says_so(phi4mm_checkpoint, native, tmp_path, caplog) -> None:
    assert not load(phi4mm_checkpoint).mode_adapters
    assert "has no adapter for vision and speech" in caplog.text
    folder = shutil.copytree(native, tmp_path / "one")
    shutil.rmtree(folder / "speech-lora")
    assert load(folder).mode_adapters.keys() == {"vision"}
    assert "has no adapter for speech" in caplog.text


def test_a_missing_file_or_half_an_adapter_is_refused(published: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(published, tmp_path / "copy")
    second = folder / "model-00002-of-00002.safetensors"
    weights = load_file(second)
    second.unlink()
    with pytest.raises(ConfigurationError, match=r"files are missing: model-00002-of-00002"):
        load(folder)
    gone = next(name for name in weights if ".lora_B.speech." in name)
    save_file({name: tensor for name, tensor in weights.items() if name != gone}, second)
    with pytest.raises(ConfigurationError, match="no whole speech adapter of rank 6"):
        load(folder)
    second.write_bytes(b"nothing")
    with pytest.raises(ConfigurationError, match="cannot load weights"):
        load(folder)
    rank = json.loads((published / "config.json").read_text())["vision_lora"]
    other = altered(published, tmp_path / "r", "config.json", vision_lora={**rank, "r": 4})
    with pytest.raises(ConfigurationError, match="no whole vision adapter of rank 4"):
        load(other)
