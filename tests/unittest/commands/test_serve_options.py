# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""The options of the server: complete help, and the contract's names and defaults."""

from __future__ import annotations

import inspect

import click

from tensorrt_llm.commands.config import GroupedOption
from tensorrt_llm.commands.serve import serve
from tensorrt_llm.llmapi.llm_args import LlmArgs
from tensorrt_llm.serve import limits
from tensorrt_llm.serve.openai_server import ServerConfig

OPTIONS = {
    name: param
    for param in serve.params
    if isinstance(param, click.Option)
    for name in (*param.opts, *param.secondary_opts)
}
CONTRACT = {
    "--host": "localhost",
    "--port": 8000,
    "--backend": "pytorch",
    "--tokenizer": None,
    "--log_level": "info",
    "--max_batch_size": 2048,
    "--max_num_tokens": 8192,
    "--max_seq_len": None,
    "--tensor_parallel_size": 1,
    "--tp_size": 1,
    "--free_gpu_memory_fraction": 0.9,
    "--kv_cache_free_gpu_memory_fraction": 0.9,
    "--kv_cache_dtype": "auto",
    "--trust_remote_code": False,
    "--enable_chunked_prefill": False,
    "--chat_template": None,
    "--served_model_name": None,
    "--config": None,
    "--extra_llm_api_options": None,
}
OURS = {
    "--max_beam_width": None,  # upstream: 1; nothing has to be set aside for beams here
    "--enable_block_reuse": True,
    "--no_enable_block_reuse": True,
    "--kv_cache_max_tokens": None,
    "--tokens_per_block": 32,
    "--allowed_local_media_path": None,
    "--allow_loopback_media": False,
    "--device": "auto",
    "--dtype": "auto",
}


def test_names_and_defaults() -> None:
    for name, default in (CONTRACT | OURS).items():
        value = OPTIONS[name].to_info_dict()["default"]
        # An option without a default shows whatever the library uses to say so.
        assert value == default or (default is None and not isinstance(value, (str, int))), name
    assert "--allowed_media_domains" in OPTIONS


def test_every_option_has_a_heading_and_a_description() -> None:
    for name, param in OPTIONS.items():
        assert isinstance(param, GroupedOption), name
        assert param.group and param.help, name


def test_defaults_agree_with_the_schema() -> None:
    defaults = LlmArgs(model="m").model_dump()
    for name, param in OPTIONS.items():
        if not param.llm_args_field or name == "--encoder_cache_max_bytes":
            continue
        value = defaults
        for step in param.llm_args_field.split("."):
            value = value[step]
        assert param.default == value or value is None, name
    text = OPTIONS["--encoder_cache_max_bytes"].default
    parsed = LlmArgs(model="m", multimodal_config={"encoder_cache_max_bytes": text})
    assert parsed == LlmArgs(model="m")


def test_limits_are_those_of_the_server() -> None:
    parameters = inspect.signature(ServerConfig).parameters
    for name in ("max_request_bytes", "max_media_items"):
        assert OPTIONS[f"--{name}"].default == parameters[name].default
        assert parameters[name].default == getattr(limits, f"DEFAULT_{name.upper()}")
