# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Adapters by name through the Python door."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.checkpoints import build_checkpoint
from support.lora import merged, write_adapter
from support.reference import ReferenceModel

from tensorrt_llm.errors import RequestError
from tensorrt_llm.executor import LoRARequest
from tensorrt_llm.llmapi import LLM, KvCacheConfig, LoraConfig, SamplingParams

GREEDY = SamplingParams(max_tokens=4, ignore_eos=True)
PROMPT = list(range(20, 80))


@pytest.fixture(scope="module")
def checkpoint(checkpoint_root: Path) -> Path:
    return build_checkpoint("qwen2", checkpoint_root)


@pytest.fixture(scope="module")
def stock(checkpoint: Path) -> ReferenceModel:
    return ReferenceModel(checkpoint)


@pytest.fixture(scope="module")
def folders(stock: ReferenceModel, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    root = tmp_path_factory.mktemp("adapters")
    return [write_adapter(root / str(seed), stock.model, seed) for seed in range(3)]


@pytest.fixture
def llm(checkpoint: Path, engine_host) -> Iterator[LLM]:
    options = {
        "kv_cache_config": KvCacheConfig(max_tokens=4096),
        "lora_config": LoraConfig(max_loras=2),
    }
    with LLM(str(checkpoint), engine_host=engine_host, device="cpu", **options) as model:
        yield model


def test_requests_name_adapters(llm: LLM, stock, folders, tmp_path) -> None:
    wanted = [None, *(LoRARequest(f"number {n}", n + 1, str(folders[n])) for n in range(2))]
    outputs = llm.generate([PROMPT] * 3, GREEDY, use_tqdm=False, lora_request=wanted)
    models = [stock, *(merged(stock, folder) for folder in folders[:2])]
    prompt = llm.preprocess({"prompt_token_ids": PROMPT}).prompt
    answers = [model.greedy(prompt, 4).tokens for model in models]
    assert [output.outputs[0].token_ids for output in outputs] == answers
    assert len({tuple(answer) for answer in answers}) == 3
    # A name that is loaded needs no folder, and may not stand for another.
    again = llm.generate_async(PROMPT, GREEDY, LoRARequest("number 0", 1)).result()
    assert (again.outputs[0].token_ids, again.cached_tokens) == (answers[1], len(PROMPT) - 1)
    with pytest.raises(RequestError, match="another folder; unload it first"):
        llm.generate(PROMPT, GREEDY, lora_request=LoRARequest("number 0", 1, str(folders[2])))
    # A copy of one that is there takes no room; a third one does.
    copy = shutil.copytree(folders[0], tmp_path / "copy")
    assert (
        llm.adapters.load("copy", str(copy)).identity
        == llm.adapters.load("number 0", str(folders[0])).identity
    )
    with pytest.raises(RequestError, match=r"2 adapters are loaded \(lora_config.max_loras 2\)"):
        llm.adapters.load("third", str(folders[2]))
    # The content is there until its last name goes.
    llm.adapters.unload("number 0")
    by_copy = llm.generate(PROMPT, GREEDY, use_tqdm=False, lora_request=LoRARequest("copy", 9))
    assert by_copy.outputs[0].token_ids == answers[1]
    llm.adapters.unload("copy")
    assert [adapter.name for adapter in llm.adapters.all()] == ["number 1"]
    llm.adapters.load("third", str(folders[2]))


def test_mistakes_are_the_callers(llm: LLM, tmp_path) -> None:
    for wrong, message in (
        (LoRARequest("x", 1), "no adapter 'x' is loaded, and no folder is given"),
        (LoRARequest("x", 1, str(tmp_path)), r"adapter_config\.json cannot be read"),
    ):
        with pytest.raises(RequestError, match=message):
            llm.generate(PROMPT, GREEDY, lora_request=wrong)
    with pytest.raises(RequestError, match="no adapter 'x'"):
        llm.adapters.unload("x")
    for arguments in (("", 1), ("x", 0), ("x", 1, "", "nemo")):
        with pytest.raises(RequestError, match="must"):
            LoRARequest(*arguments)
    assert llm.generate(PROMPT, GREEDY, use_tqdm=False).outputs[0].token_ids
