# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Families from outside: the worked example serves in both processes, and what goes wrong is told.

The example runs in a process of its own: families are registered for good.
"""

from __future__ import annotations

import json
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest
import torch
from support.checkpoints import REPOSITORY
from support.media import picture
from support.reference import ReferenceModel
from transformers import LlavaConfig, LlavaForConditionalGeneration
from transformers.image_utils import OPENAI_CLIP_MEAN, OPENAI_CLIP_STD

from examples.tiny.qwen import PICTURE, QWEN_TEMPLATE
from examples.tiny.tokenizer import END_OF_TEXT, TURN, TURN_END, make_tokenizer
from examples.tiny.weights import add_processor_settings, save, text_sizes
from tensorrt_llm.errors import ConfigurationError
from tensorrt_llm.inputs.custom_modules import ENTRY_POINT_GROUP, load_custom_modules

SIDE = 56
SCRIPT = """\
import json, sys
from PIL import Image
from tensorrt_llm import LLM, SamplingParams
if __name__ == "__main__":
    checkpoint, file, family = sys.argv[1:]
    image = {"multi_modal_data": {"image": [Image.open(file)]}, "prompt": "See <image>: what?"}
    options = {"kv_cache_config": {"max_tokens": 2048}, "custom_module_dirs": [family]}
    with LLM(checkpoint, device="cpu", **options) as llm:
        params = SamplingParams(max_tokens=6, ignore_eos=True)
        answers = [llm.generate(image, params, use_tqdm=False) for _ in range(2)]
        prompt = llm.preprocess(image)
        pixels = prompt.prompt.items[0].encoder_inputs["pixel_values"]
        print(json.dumps({
            "tokens": [answer.outputs[0].token_ids for answer in answers],
            "cached": answers[1].cached_tokens,
            "ids": prompt.prompt_token_ids,
            "pixels": pixels.flatten().tolist(),
        }))
"""


def llava(out: Path) -> Path:
    """A tiny LLaVA 1.5."""
    tokenizer = make_tokenizer(
        [END_OF_TEXT, TURN_END, TURN, "<image>"],
        QWEN_TEMPLATE.replace(PICTURE, "<image>"),
        image_token="<image>",
    )
    config = LlavaConfig(
        text_config={"model_type": "llama", **text_sizes(tokenizer)},
        vision_config={
            "model_type": "clip_vision_model",
            "hidden_size": 32,
            "intermediate_size": 64,
            "num_hidden_layers": 3,
            "num_attention_heads": 4,
            "image_size": SIDE,
            "patch_size": 14,
            "projection_dim": 32,
        },
        image_token_index=tokenizer.get_vocab()["<image>"],
    )
    generator = torch.Generator().manual_seed(0)
    save(LlavaForConditionalGeneration(config), tokenizer, out, generator, TURN_END)
    settings = {
        "image_processor_type": "CLIPImageProcessor",
        "crop_size": {"height": SIDE, "width": SIDE},
        "image_mean": list(OPENAI_CLIP_MEAN),
        "image_std": list(OPENAI_CLIP_STD),
    }
    add_processor_settings(out, settings)
    return out


def test_the_example_family_is_served_by_an_engine_in_its_own_process(tmp_path: Path) -> None:
    checkpoint, file = llava(tmp_path / "llava"), tmp_path / "picture.png"
    picture(1, 90, 60).save(file)
    script = tmp_path / "ask.py"
    script.write_text(SCRIPT)
    family = REPOSITORY / "examples" / "llava_family"
    command = [sys.executable, str(script), str(checkpoint), str(file), str(family)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout.splitlines()[-1])
    rows = (SIDE // 14) ** 2
    assert said["ids"].count(LlavaConfig.from_pretrained(checkpoint).image_token_id) == rows
    model = ReferenceModel(checkpoint).model
    ids = torch.tensor([said["ids"]])
    pixels = torch.tensor(said["pixels"]).reshape(1, 3, SIDE, SIDE)
    with torch.no_grad():
        whole = model.generate(
            input_ids=ids,
            pixel_values=pixels,
            attention_mask=torch.ones_like(ids),
            max_new_tokens=6,
            min_new_tokens=6,
            do_sample=False,
            eos_token_id=None,
        )
    assert said["tokens"] == [whole[0, -6:].tolist()] * 2
    assert said["cached"] == len(said["ids"]) - 1


def test_packages_are_imported_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "family_a"
    folder.mkdir()
    monkeypatch.setattr(sys, "modules", dict(sys.modules))
    with pytest.raises(ConfigurationError, match=r"holds no __init__\.py"):
        load_custom_modules([str(folder)])
    (folder / "part.py").write_text("NUMBER = 7\n")
    (folder / "__init__.py").write_text("from .part import NUMBER\nSEEN = [NUMBER]\n")
    assert "family_a" in load_custom_modules([str(folder)])
    module = sys.modules["family_a"]
    assert module.SEEN == [7]
    load_custom_modules([str(folder)])
    assert sys.modules["family_a"] is module
    other = tmp_path / "below" / "family_a"
    other.mkdir(parents=True)
    (other / "__init__.py").write_text("")
    with pytest.raises(ConfigurationError, match="another module named 'family_a'"):
        load_custom_modules([str(other)])
    broken = tmp_path / "family_b"
    broken.mkdir()
    (broken / "__init__.py").write_text("raise RuntimeError('mine')\n")
    with pytest.raises(ConfigurationError, match="cannot be imported: RuntimeError: mine"):
        load_custom_modules([str(broken)])
    assert "family_b" not in sys.modules


def test_installed_families_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "modules", dict(sys.modules))
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "family_c.py").write_text("REGISTERED = True\n")
    info = tmp_path / "family_c-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: family-c\nVersion: 1\n")
    (info / "entry_points.txt").write_text(f"[{ENTRY_POINT_GROUP}]\nc = family_c\n")
    assert [entry.name for entry in metadata.entry_points(group=ENTRY_POINT_GROUP)] == ["c"]
    assert load_custom_modules([]) == {"family_c"}
    assert sys.modules["family_c"].REGISTERED
    (info / "entry_points.txt").write_text(f"[{ENTRY_POINT_GROUP}]\nc = family_d\n")
    with pytest.raises(ConfigurationError, match=r"'c' \(family_d\) cannot be imported"):
        load_custom_modules([])
