# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""``docs/compatibility.md`` says of each name what is true."""

from __future__ import annotations

import importlib
import inspect
import re
from collections import Counter
from pathlib import Path
from typing import get_type_hints

import numpy as np
import pytest

from tensorrt_llm.commands.serve import serve
from tensorrt_llm.executor.request import GenerationRequest
from tensorrt_llm.inputs.data import ProcessedPrompt
from tensorrt_llm.sampling_params import SamplingParams

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "compatibility.md").read_text("utf-8")
STATES = ("same", "better", "absent")


def rows(heading: str) -> list[list[str]]:
    """The cells of the table below a heading, without its head."""
    (section,) = re.findall(rf"^## {re.escape(heading)}\n(.*?)(?=^## |\Z)", PAGE, re.M | re.S)
    lines = [line for line in section.splitlines() if line.startswith("|")][2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def named(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


PYTHON = [
    (named(module)[0], name, state)
    for module, names, state, _ in rows("Python")
    for name in named(names)
]
OPTIONS = [(n, s) for names, s, _ in rows("Options of `trtllm-serve`") for n in named(names)]
ROUTES = [(n, s) for names, s, _ in rows("Routes") for n in named(names)]


def test_the_counts_are_those_of_the_tables() -> None:
    counts = Counter(entry[-1] for entry in (*PYTHON, *OPTIONS, *ROUTES))
    assert set(counts) == set(STATES)
    assert f"Counts: {', '.join(f'{counts[state]} {state}' for state in STATES)}." in PAGE


def test_what_is_absent_has_a_reason() -> None:
    for heading in ("Python", "Options of `trtllm-serve`", "Routes"):
        assert all(row[-1] for row in rows(heading) if row[-2] == "absent")


@pytest.mark.parametrize(("module", "name", "state"), PYTHON)
def test_names(module: str, name: str, state: str) -> None:
    try:
        there = hasattr(importlib.import_module(module), name)
    except ModuleNotFoundError as error:
        assert error.name is not None and module.startswith(error.name), "a module of ours failed"
        there = False
    assert there == (state != "absent"), f"{module}.{name} is not {state}: correct the page"


def test_options() -> None:
    known = {option for param in serve.params for option in param.opts}
    for name, state in OPTIONS:
        assert (name in known) == (state != "absent"), f"{name} is not {state}: correct the page"


def test_routes() -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "serving.md").read_text("utf-8")
    for name, state in ROUTES:
        # Another test compares that page with the server.
        assert (f"`{name}`" in page) == (state != "absent"), f"{name}: correct the page"


# What the contract names of each callable, in its order; "_" where it leaves the name open.
SIGNATURES = {
    "LLM": "model tokenizer tokenizer_mode skip_tokenizer_init trust_remote_code"
    " tensor_parallel_size dtype revision tokenizer_revision",
    "LLM.generate": "self inputs sampling_params use_tqdm lora_request prompt_adapter_request"
    " kv_cache_retention_config disaggregated_params scheduling_params conversation_params"
    " cache_salt priority",
    "LLM.generate_async": "self inputs sampling_params lora_request prompt_adapter_request"
    " streaming kv_cache_retention_config disaggregated_params trace_headers scheduling_params"
    " conversation_params cache_salt priority",
    "LLM.preprocess": "self inputs sampling_params disaggregated_params",
    "LLM.get_kv_cache_events": "self timeout",
    "LLM.get_kv_cache_events_async": "self timeout",
    "LLM.get_stats": "self timeout",
    "LLM.get_stats_async": "self timeout",
    "LLM.get_kv_cache_capacity": "self",
    "LLM.shutdown": "self",
    "MultimodalEncoder": "model trust_remote_code tensor_parallel_size dtype",
    "MultimodalEncoder.generate": "self inputs use_tqdm",
    "MultimodalEncoder.generate_async": "self inputs sampling_params",
    "RequestOutput.result": "self timeout",
    "RequestOutput.aresult": "self",
    "RequestOutput.abort": "self",
    "KvCacheRetentionConfig": "token_range_retention_configs decode_retention_priority"
    " decode_duration_ms",
    "prompt_inputs": "_",
    "get_cache_salt_id": "cache_salt",
    "serialize_item": "_",
    "default_hasher": "_",
    "apply_mm_hashes": "mm_data mm_uuids hash_lib",
    "hexdigest_to_int32": "_",
    "int32_to_hexdigest": "_",
    "AudioData": "samples sample_rate",
    "VideoData": "frames metadata audio raw_bytes_hash",
    "EmbeddingData": "_",
    "MultimodalInput": "multimodal_hashes multimodal_positions multimodal_lengths multimodal_uuids"
    " multimodal_item_run_cu_offsets multimodal_run_positions multimodal_run_lengths",
    "MultimodalInput.from_components": "mm_hashes mm_positions mm_lengths mm_uuids"
    " mm_item_run_cu_offsets mm_run_positions mm_run_lengths",
    "MultimodalParams": "multimodal_input multimodal_data multimodal_runtime input_ids_start_offset"
    " mm_item_order encoder_event",
    "MultimodalRuntimeData": "past_seen_token_num chunk_end_pos embed_mask_cumsum",
    "get_multimodal_embeddings": "encoder_forward_fn multimodal_params encoder_kwargs",
    "find_input_mm_embeds": "mm_embeds multimodal_params",
    "fuse_input_embeds": "embedding_layer input_ids mm_embeds mm_token_ids text_token_indices"
    " mm_token_indices",
}

# What the contract names of each schema, whose order says nothing.
FIELDS = {
    "LlmArgs": "kv_cache_config enable_chunked_prefill max_batch_size max_num_tokens max_seq_len"
    " max_beam_width multimodal_config scheduler_config enable_iter_perf_stats return_perf_metrics"
    " perf_metrics_max_requests num_postprocess_workers reasoning_parser otlp_traces_endpoint"
    " checkpoint_format backend env_overrides encode_only",
    "KvCacheConfig": "enable_block_reuse max_tokens max_attention_window sink_token_length"
    " free_gpu_memory_fraction host_cache_size disk_cache_size disk_cache_path"
    " cross_kv_cache_fraction secondary_offload_min_priority event_buffer_max_size"
    " attention_dp_events_gather_period_ms enable_partial_reuse copy_on_partial_reuse use_uvm"
    " max_gpu_total_bytes iteration_stats_interval dtype tokens_per_block kv_cache_event_hash_algo"
    " use_kv_cache_manager_v2 block_reuse_policy block_reuse_config max_util_for_resume"
    " enable_kv_pool_rebalance disk_prefetch_num_reqs pool_ratio avg_seq_len"
    " enable_swa_scratch_reuse mamba_ssm_cache_dtype mamba_ssm_stochastic_rounding"
    " mamba_ssm_philox_rounds mamba_state_cache_interval mamba_state_config kv_events_config"
    " onboard_blocks",
    "MultimodalConfig": "encoder_cache_max_bytes encoder_side_stream_max_ahead encoder_cuda_graph"
    " video_pruning_rate",
    "SchedulerConfig": "enable_prefix_aware_scheduling capacity_scheduler_policy"
    " context_chunking_policy waiting_queue_policy",
    "CudaGraphConfig": "batch_sizes max_batch_size enable_padding",
    "NGramDecodingConfig": "max_draft_len max_matching_ngram_size is_keep_all is_use_oldest"
    " is_public_pool",
    "SamplingParams": "max_tokens temperature top_k top_p min_p seed repetition_penalty"
    " presence_penalty frequency_penalty stop stop_token_ids ignore_eos min_tokens"
    " skip_special_tokens add_special_tokens logprobs prompt_logprobs return_context_logits"
    " return_generation_logits n best_of",
    "TextPrompt": "prompt multi_modal_data mm_processor_kwargs multi_modal_uuids"
    " multi_modal_embeddings",
    "TokensPrompt": "prompt_token_ids multi_modal_data mm_processor_kwargs multi_modal_uuids"
    " multi_modal_embeddings",
    "ChatCompletionRequest": "messages model max_completion_tokens max_tokens prompt_token_ids"
    " top_k min_p repetition_penalty stop_token_ids ignore_eos min_tokens skip_special_tokens"
    " lora_request add_generation_prompt add_special_tokens documents chat_template"
    " chat_template_kwargs disaggregated_params conversation_params priority cache_salt"
    " mm_processor_kwargs media_io_kwargs",
    "CompletionRequest": "prompt model max_tokens cache_salt",
    "ChatCompletionResponse": "id object created model choices usage",
}

# What the contract names of results, which are not made by callers.
RESULTS = {
    "RequestOutput": "request_id prompt prompt_token_ids outputs finished context_logits"
    " cached_tokens error disaggregated_params metrics_dict",
    "CompletionOutput": "index text token_ids finish_reason stop_reason logprobs length text_diff"
    " token_ids_diff request_perf_metrics",
}

OWN = "our own"
NOT_CALLED = {"__version__", "logger", "PromptInputs", "BaseModalityData"}
COMMANDS = {"main", "serve"}  # Their options are in a table of their own.
CLAIMED = {
    name: getattr(importlib.import_module(m), name) for m, name, s in PYTHON if s != "absent"
}


def owned() -> set[str]:
    """Names whose row says that what they take is our own."""
    return {n for _, names, _, note in rows("Python") if OWN in note for n in named(names)}


def test_every_claimed_name_has_its_signature_checked_or_says_that_it_is_our_own() -> None:
    checked = {*SIGNATURES, *FIELDS, *RESULTS, "GenerationResult"}
    assert set(CLAIMED) == (checked & set(CLAIMED)) | owned() | NOT_CALLED | COMMANDS
    assert not checked & owned(), "checked, so it is not our own"


@pytest.mark.parametrize("name", SIGNATURES)
def test_signatures(name: str) -> None:
    owner, _, method = name.partition(".")
    target = getattr(CLAIMED[owner], method) if method else CLAIMED[owner]
    wanted = SIGNATURES[name].split()
    taken = list(inspect.signature(target).parameters.values())
    assert [
        "_" if want == "_" else parameter.name
        for want, parameter in zip(wanted, taken, strict=False)
    ] == wanted
    # What we take beside that, no caller of upstream has to give.
    assert all(
        parameter.default is not parameter.empty or parameter.kind > parameter.POSITIONAL_OR_KEYWORD
        for parameter in taken[len(wanted) :]
    )


@pytest.mark.parametrize("name", FIELDS)
def test_fields(name: str) -> None:
    schema = CLAIMED[name]
    fields = getattr(schema, "model_fields", None) or get_type_hints(schema)
    # A field may be known by its alias, as in the body of a request.
    known = {*fields, *(getattr(field, "alias", None) for field in fields.values())}
    assert set(FIELDS[name].split()) <= known


def test_results() -> None:
    prompt = ProcessedPrompt(np.zeros(3, np.int32))
    request = GenerationRequest(prompt, SamplingParams())
    result = CLAIMED["RequestOutput"](1, request, None, cancel=lambda _number: None)
    assert result.outputs[0].__class__ is CLAIMED["CompletionOutput"]
    assert CLAIMED["GenerationResult"] is CLAIMED["RequestOutput"]
    for name, value in (("RequestOutput", result), ("CompletionOutput", result.outputs[0])):
        assert [one for one in RESULTS[name].split() if not hasattr(value, one)] == []
