# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""The configuration: what is accepted, what is refused, and in which words."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest
from pydantic import ValidationError

from tensorrt_llm.inputs import multimodal_data
from tensorrt_llm.llmapi.llm_args import (
    HashAlgorithm,
    KvCacheConfig,
    LlmArgs,
    MultimodalConfig,
    SchedulerConfig,
    refuse_disaggregated,
)
from tensorrt_llm.llmapi.strict_model import StrictModel, describe_errors, field_path, parse_bytes

MODELS = (KvCacheConfig, MultimodalConfig, SchedulerConfig, LlmArgs)


def mistakes(**options) -> list[tuple[str, str]]:
    with pytest.raises(ValidationError) as caught:
        LlmArgs(model="m", **options)
    return describe_errors(caught.value)


def test_defaults_are_those_of_the_contract() -> None:
    args = LlmArgs(model="m")
    assert args.kv_cache_config.enable_block_reuse is True
    assert args.kv_cache_config.free_gpu_memory_fraction == 0.9
    assert args.kv_cache_config.tokens_per_block == 32
    assert args.kv_cache_config.max_tokens is None
    assert (args.max_batch_size, args.max_num_tokens, args.max_seq_len) == (2048, 8192, None)
    assert args.max_beam_width is None
    assert args.enable_chunked_prefill is False
    assert args.multimodal_config.hash_algorithm == "blake3"


@pytest.mark.parametrize("model", MODELS)
def test_every_field_says_what_it_is(model: type[StrictModel]) -> None:
    assert [name for name, info in model.model_fields.items() if not info.description] == []


@pytest.mark.parametrize("model", MODELS)
def test_unimplemented_fields_take_their_inert_values_and_nothing_else(model) -> None:
    required = {"model": "m"} if model is LlmArgs else {}
    for name, extra in model.inert_fields().items():
        for value in extra["inert"]:
            model(**required, **{name: value})
        with pytest.raises(ValidationError) as caught:
            model(**required, **{name: "something else"})
        ((path, reason),) = describe_errors(caught.value)
        assert path == name
        assert extra["feature"] in reason and "not available in this release" in reason
        assert "got 'something else'" in reason


@pytest.mark.parametrize(
    ("options", "path"),
    [
        ({"kv_cache_config": {"disk_cache_size": 1 << 30}}, "kv_cache_config.disk_cache_size"),
        (
            {"kv_cache_config": {"secondary_offload_min_priority": 101}},
            "kv_cache_config.secondary_offload_min_priority",
        ),
        ({"tensor_parallel_size": 2}, "tensor_parallel_size"),
        ({"tensor_parallel_size": True}, "tensor_parallel_size"),
        (
            {"scheduler_config": {"capacity_scheduler_policy": "STATIC_BATCH"}},
            "scheduler_config.capacity_scheduler_policy",
        ),
        ({"kv_cache_config": {"tokens_per_block": 48}}, "kv_cache_config.tokens_per_block"),
        ({"kv_cache_config": {"tokens_per_block": 1}}, "kv_cache_config.tokens_per_block"),
        ({"kv_cache_config": {"max_tokens": 0}}, "kv_cache_config.max_tokens"),
        ({"kv_cache_config": {"dtype": "fp8"}}, "kv_cache_config.dtype"),
        (
            {"kv_cache_config": {"free_gpu_memory_fraction": 1.5}},
            "kv_cache_config.free_gpu_memory_fraction",
        ),
        ({"multimodal_config": {"hash_algorithm": "md5"}}, "multimodal_config.hash_algorithm"),
        (
            {"multimodal_config": {"encoder_cache_max_bytes": -1}},
            "multimodal_config.encoder_cache_max_bytes",
        ),
        ({"max_batch_size": 0}, "max_batch_size"),
        ({"dtype": "int8"}, "dtype"),
        ({"frobnicate": 1}, "frobnicate"),
        ({"kv_cache_config": {"frobnicate": 1}}, "kv_cache_config.frobnicate"),
    ],
)
def test_a_mistake_names_its_field(options: dict, path: str) -> None:
    assert [where for where, _ in mistakes(**options)] == [path]


def test_blocks_may_be_objects_dicts_or_none() -> None:
    config = KvCacheConfig(enable_block_reuse=False)
    assert LlmArgs(model="m", kv_cache_config=config).kv_cache_config.enable_block_reuse is False
    config_dict = {"enable_block_reuse": False, "dtype": "BFloat16"}
    args = LlmArgs(model="m", kv_cache_config=config_dict, multimodal_config=None)
    assert args.kv_cache_config.enable_block_reuse is False
    assert args.kv_cache_config.dtype == "bfloat16"
    assert args.multimodal_config == MultimodalConfig()
    assert LlmArgs(model=Path("a") / "b").model == str(Path("a") / "b")


def test_assignment_is_checked_too() -> None:
    args = LlmArgs(model="m")
    args.max_batch_size = 3
    with pytest.raises(ValidationError):
        args.tensor_parallel_size = 2
    assert (args.max_batch_size, args.tensor_parallel_size) == (3, 1)


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("0", 0),
        ("4096", 4096),
        ("512MiB", 512 * 1024**2),
        ("1.5 kb", 1500),
        (" 2gib ", 2 * 1024**3),
        (77, 77),
    ],
)
def test_sizes(text: object, number: int) -> None:
    assert parse_bytes(text) == number
    assert MultimodalConfig(encoder_cache_max_bytes=text).encoder_cache_max_bytes == number


@pytest.mark.parametrize("text", ["", "MiB", "12 parsecs", "-5", "1e9", "5 5"])
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is no size"):
        parse_bytes(text)


def test_effective_holds_what_has_an_effect_and_can_be_read_back() -> None:
    args = LlmArgs(model="m", kv_cache_config={"enable_block_reuse": False}, max_seq_len=99)
    effective = args.effective()
    assert effective["kv_cache_config"]["enable_block_reuse"] is False
    assert "disk_cache_size" not in effective["kv_cache_config"]
    assert "tensor_parallel_size" not in effective
    assert LlmArgs(**effective) == args


def test_algorithms_are_those_of_the_hasher() -> None:
    assert get_args(HashAlgorithm) == multimodal_data.HASH_ALGORITHMS


def test_field_paths() -> None:
    assert field_path(("messages", 0, "content")) == "messages[0].content"
    assert field_path(("stop", "list[str]", 1)) == "stop[1]"
    assert field_path(()) == ""


def test_disaggregated_mode_is_refused_by_name() -> None:
    refuse_disaggregated({})
    refuse_disaggregated({"TLLM_MULTIMODAL_DISAGGREGATED": "0"})
    with pytest.raises(NotImplementedError, match="TLLM_MULTIMODAL_DISAGGREGATED=1"):
        refuse_disaggregated({"TLLM_MULTIMODAL_DISAGGREGATED": "1"})


def test_secret_identities_are_not_told_in_events() -> None:
    events = {"event_buffer_max_size": 10}
    ((_, reason),) = mistakes(
        kv_cache_config=events, multimodal_config={"hash_algorithm": "xxh3_128"}
    )
    assert "event_buffer_max_size" in reason
    assert "blake3" in reason
    LlmArgs(model="m", kv_cache_config=events)
    LlmArgs(model="m", multimodal_config={"hash_algorithm": "xxh3_128"})


def test_speculative_decoding_has_one_kind() -> None:
    chosen = {"decoding_type": "NGram", "max_draft_len": 4, "is_public_pool": False}
    config = LlmArgs(model="m", speculative_config=chosen).speculative_config
    assert config is not None
    assert (config.max_draft_len, config.max_matching_ngram_size) == (4, 2)
    assert LlmArgs(model="m").speculative_config is None
    ((path, _),) = mistakes(speculative_config={**chosen, "decoding_type": "Eagle"})
    assert path == "speculative_config.decoding_type"
    ((path, reason),) = mistakes(speculative_config={"decoding_type": "NGram"})
    assert (path, reason) == ("speculative_config.max_draft_len", "missing")
