# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""The options of ``trtllm-serve``, in the order of its help."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, get_args

import click

from tensorrt_llm.commands.access import ACCESS_OPTIONS
from tensorrt_llm.commands.config import JsonMapping, model_option, server_option
from tensorrt_llm.llmapi.llm_args import DeviceName, ModelDtype
from tensorrt_llm.logger import LEVELS
from tensorrt_llm.serve.limits import (
    DEFAULT_MAX_MEDIA_ITEMS,
    DEFAULT_MAX_REQUEST_BYTES,
    DEFAULT_MAX_STORED_BYTES,
    DEFAULT_STORED_SECONDS,
    MAX_THUMBNAILS,
)

_Function = TypeVar("_Function", bound=Callable[..., Any])

SERVER = "Server"
MODEL = "Model"
BATCHING = "Batching"
KV_CACHE = "KV cache and its reuse"
MEDIA = "Media in requests"
CONFIG = "Configuration file"

_AT_LEAST_1 = click.IntRange(min=1)
_DTYPE = click.Choice(get_args(ModelDtype))

_OPTIONS = [
    server_option(
        "--host",
        group=SERVER,
        default="localhost",
        show_default=True,
        help="Host name or address to listen on.",
    ),
    server_option(
        "--port",
        group=SERVER,
        default=8000,
        show_default=True,
        type=click.IntRange(0, 65535),
        help="Port to listen on; 0 takes a free one.",
    ),
    server_option(
        "--served_model_name",
        group=SERVER,
        help="Name of the model in answers; the folder's name by default.",
    ),
    server_option(
        "--log_level",
        group=SERVER,
        default="info",
        show_default=True,
        type=click.Choice(list(LEVELS)),
        help="Least severe messages that are logged.",
    ),
    server_option(
        "--max_request_bytes",
        group=SERVER,
        default=DEFAULT_MAX_REQUEST_BYTES,
        show_default=True,
        type=_AT_LEAST_1,
        help="Most bytes of a request body; a larger one is refused (HTTP 413).",
    ),
    server_option(
        "--grace_seconds",
        group=SERVER,
        default=20,
        show_default=True,
        type=click.IntRange(min=0),
        help="Seconds that running requests get to finish after a signal to stop.",
    ),
    server_option(
        "--max_stored_bytes",
        group=SERVER,
        default=DEFAULT_MAX_STORED_BYTES,
        show_default=True,
        type=click.IntRange(min=0),
        help="Most bytes of stored responses (/v1/responses), media included, and as many of "
        "files (/v1/files); those not used for longest make room. 0 stores none.",
    ),
    server_option(
        "--stored_seconds",
        group=SERVER,
        default=DEFAULT_STORED_SECONDS,
        show_default=True,
        type=_AT_LEAST_1,
        help="Time that responses and files are stored.",
    ),
    model_option("--max_queue_size", field="max_queue_size", group=SERVER, type=_AT_LEAST_1),
    model_option(
        "--engine_stall_seconds",
        field="engine_config.stall_seconds",
        group=SERVER,
        type=click.FloatRange(min=2),
    ),
    model_option(
        "--max_engine_restarts",
        field="engine_config.max_restarts",
        group=SERVER,
        type=click.IntRange(min=0),
    ),
    model_option(
        "--otlp_traces_endpoint", field="otlp_traces_endpoint", group=SERVER, metavar="URL"
    ),
    *ACCESS_OPTIONS,
    model_option("--tokenizer", field="tokenizer", group=MODEL),
    model_option("--chat_template", field="chat_template", group=MODEL),
    server_option(
        "--tool_parser",
        group=MODEL,
        type=click.Choice(["hermes", "json"]),
        help="How the model writes calls of tools: hermes (<tool_call>...</tool_call>; Qwen, "
        "Hermes) or json (a JSON object or list; Llama, Phi, Mistral). Told by the chat template "
        "by default.",
    ),
    model_option("--dtype", field="dtype", group=MODEL, type=_DTYPE),
    model_option("--device", field="device", group=MODEL, type=click.Choice(get_args(DeviceName))),
    model_option("--backend", field="backend", group=MODEL, type=click.Choice(["pytorch"])),
    model_option(
        "--tensor_parallel_size", "--tp_size", field="tensor_parallel_size", group=MODEL, type=int
    ),
    model_option("--trust_remote_code", field="trust_remote_code", group=MODEL, is_flag=True),
    model_option(
        "--custom_module_dirs",
        field="custom_module_dirs",
        group=MODEL,
        multiple=True,
        metavar="FOLDER",
        show_default=False,
        type=click.Path(exists=True, file_okay=False),
    ),
    model_option("--max_batch_size", field="max_batch_size", group=BATCHING, type=_AT_LEAST_1),
    model_option("--max_num_tokens", field="max_num_tokens", group=BATCHING, type=_AT_LEAST_1),
    model_option("--max_seq_len", field="max_seq_len", group=BATCHING, type=click.IntRange(min=2)),
    model_option("--max_beam_width", field="max_beam_width", group=BATCHING, type=_AT_LEAST_1),
    model_option(
        "--enable_chunked_prefill", field="enable_chunked_prefill", group=BATCHING, is_flag=True
    ),
    model_option(
        "--disable_overlap_scheduler/--enable_overlap_scheduler",
        field="disable_overlap_scheduler",
        group=BATCHING,
    ),
    model_option(
        "--enable_block_reuse/--no_enable_block_reuse",
        field="kv_cache_config.enable_block_reuse",
        group=KV_CACHE,
    ),
    model_option(
        "--strict_reuse", field="kv_cache_config.strict_reuse", group=KV_CACHE, is_flag=True
    ),
    model_option(
        "--kv_cache_free_gpu_memory_fraction",
        "--free_gpu_memory_fraction",
        field="kv_cache_config.free_gpu_memory_fraction",
        group=KV_CACHE,
        type=click.FloatRange(0, 1),
    ),
    model_option(
        "--kv_cache_max_tokens",
        field="kv_cache_config.max_tokens",
        group=KV_CACHE,
        type=_AT_LEAST_1,
    ),
    model_option("--kv_cache_dtype", field="kv_cache_config.dtype", group=KV_CACHE, type=_DTYPE),
    model_option(
        "--tokens_per_block", field="kv_cache_config.tokens_per_block", group=KV_CACHE, type=int
    ),
    model_option(
        "--kv_cache_event_buffer_max_size",
        field="kv_cache_config.event_buffer_max_size",
        group=KV_CACHE,
        type=click.IntRange(min=0),
    ),
    model_option(
        "--kv_events_config",
        field="kv_cache_config.kv_events_config",
        group=KV_CACHE,
        type=JsonMapping(),
        metavar="JSON",
    ),
    server_option(
        "--allowed_local_media_path",
        group=MEDIA,
        type=click.Path(exists=True, file_okay=False, path_type=Path),
        help="Folder whose files requests may name. Local files are refused until it is given.",
    ),
    server_option(
        "--allowed_media_domains",
        group=MEDIA,
        multiple=True,
        metavar="HOST[,HOST...]",
        help="Hosts from which requests may name media; any public host by default. May be "
        "repeated.",
    ),
    server_option(
        "--allow_loopback_media",
        group=MEDIA,
        is_flag=True,
        help="Let requests name media on this machine's loopback addresses. For tests.",
    ),
    server_option(
        "--max_media_items",
        group=MEDIA,
        default=DEFAULT_MAX_MEDIA_ITEMS,
        show_default=True,
        type=_AT_LEAST_1,
        help="Most pieces of media in a request.",
    ),
    server_option(
        "--page_thumbnails",
        group=MEDIA,
        default=0,
        show_default=True,
        type=click.IntRange(0, MAX_THUMBNAILS),
        help="Most thumbnails of images and videos of the latest requests that are kept for "
        "/kv_cache/ui. They show what users have sent; 0 keeps and shows none.",
    ),
    server_option(
        "--limit_mm_per_prompt",
        group=MEDIA,
        type=JsonMapping(),
        default="{}",
        metavar="JSON",
        help='Most pieces of media by modality in a request, for example {"image": 4}.',
    ),
    server_option(
        "--media_limits",
        group=MEDIA,
        type=JsonMapping(),
        default="{}",
        metavar="JSON",
        help='Limits of one piece of media, for example {"max_pixels": 20000000}; all names and '
        "defaults are in docs/multimodal.md.",
    ),
    server_option(
        "--media_io_kwargs",
        group=MEDIA,
        type=JsonMapping(),
        default="{}",
        metavar="JSON",
        help="How media is decoded unless a request says otherwise, by modality, for example "
        '{"video": {"num_frames": 32}}.',
    ),
    model_option(
        "--encoder_cache_max_bytes",
        field="multimodal_config.encoder_cache_max_bytes",
        group=MEDIA,
        type=str,
        default="512MiB",
        metavar="BYTES",
    ),
    server_option(
        "--config",
        "--extra_llm_api_options",
        "config",
        group=CONFIG,
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        help="YAML file with fields of the LLM API, for example kv_cache_config. What it says "
        "wins over the options above.",
    ),
    server_option(
        "--dry_run",
        group=CONFIG,
        is_flag=True,
        help="Check everything that can be checked without loading the model, print the effective "
        "configuration (what --config would take, other options as comments), and end.",
    ),
]


def serve_options(function: _Function) -> _Function:
    """Gives a command all these options."""
    # Decorators apply from the inside, so the last one comes first.
    for option in reversed(_OPTIONS):
        function = option(function)
    return function
