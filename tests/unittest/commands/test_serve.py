# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
"""Mistakes on the command line are one line, before anything slow is loaded."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

import click
import pytest
import yaml
from click.shell_completion import ShellComplete
from click.testing import CliRunner, Result

from tensorrt_llm.commands.serve import main, serve
from tensorrt_llm.version import __version__


@pytest.fixture(name="run")
def runner(monkeypatch: pytest.MonkeyPatch):
    # The command installs signal handlers, which are the test run's own business here.
    monkeypatch.setattr("signal.signal", lambda number, handler: None)
    return lambda *arguments: CliRunner().invoke(main, [str(one) for one in arguments])


def last_line(result: Result) -> str:
    return result.output.strip().splitlines()[-1]


@pytest.mark.parametrize("words", [(), ("serve",)])
def test_help_names_every_option(run, words: tuple) -> None:
    result = run(*words, "--help")
    assert result.exit_code == 0
    for param in serve.params:
        if isinstance(param, click.Option):
            for name in (*param.opts, *param.secondary_opts):
                assert name in result.output


def test_version(run) -> None:
    assert run("--version").output == f"trtllm-serve, version {__version__}\n"


@pytest.mark.parametrize(
    ("arguments", "option"),
    [
        (("--max_batch_size", "0"), "--max_batch_size"),
        (("--tokens_per_block", "48"), "--tokens_per_block"),
        (("--tp_size", "2"), "--tensor_parallel_size"),
        (("--max_beam_width", "0"), "--max_beam_width"),
        (("--backend", "tensorrt"), "--backend"),
        (("--log_level", "loud"), "--log_level"),
        (("--free_gpu_memory_fraction", "2"), "--kv_cache_free_gpu_memory_fraction"),
        (("--kv_cache_dtype", "fp8"), "--kv_cache_dtype"),
        (("--encoder_cache_max_bytes", "much"), "--encoder_cache_max_bytes"),
        (("--port", "70000"), "--port"),
        (("--allowed_local_media_path", "no/such"), "--allowed_local_media_path"),
        (("--allowed_media_domains", "https://media.example"), "--allowed_media_domains"),
        (("--limit_mm_per_prompt", "{"), "--limit_mm_per_prompt"),
        (("--limit_mm_per_prompt", "[4]"), "--limit_mm_per_prompt"),
        (("--limit_mm_per_prompt", '{"smell": 4}'), "--limit_mm_per_prompt"),
        (("--limit_mm_per_prompt", '{"image": -1}'), "--limit_mm_per_prompt"),
        (("--limit_mm_per_prompt", '{"image": true}'), "--limit_mm_per_prompt"),
        (("--media_limits", '{"max_pixels": 0}'), "--media_limits"),
        (("--media_limits", '{"max_smells": 1}'), "--media_limits"),
        (("--media_io_kwargs", '{"video": {"fps": 0}}'), "--media_io_kwargs"),
        (("--media_io_kwargs", '{"video": 4}'), "--media_io_kwargs"),
        (("--media_io_kwargs", '{"smell": {}}'), "--media_io_kwargs"),
        (("--strict_reuse", "--no_enable_block_reuse"), "--strict_reuse"),
        (("--config", "no/such.yaml"), "--config"),
    ],
)
def test_wrong_values_exit_2_and_name_the_option(run, llama_checkpoint, arguments, option) -> None:
    result = run(llama_checkpoint, *arguments)
    assert result.exit_code == 2
    assert last_line(result).startswith("Error: Invalid value for ")
    assert option in last_line(result)


def test_unknown_options_and_missing_arguments_exit_2(run, llama_checkpoint: Path) -> None:
    result = run(llama_checkpoint, "--frobnicate")
    assert result.exit_code == 2 and "--frobnicate" in last_line(result)
    assert run().exit_code == 2 and "MODEL" in last_line(run())
    assert run("disaggregated", "x").exit_code == 2
    assert "disaggregated is not available" in last_line(run("disaggregated", "x"))


def test_a_wrong_file_exits_2_and_names_file_and_field(run, llama_checkpoint, tmp_path) -> None:
    file = tmp_path / "c.yaml"
    file.write_text(yaml.safe_dump({"kv_cache_config": {"disk_cache_size": 5}}))
    for option in ("--config", "--extra_llm_api_options"):
        result = run(llama_checkpoint, option, file)
        assert result.exit_code == 2
        assert "kv_cache_config.disk_cache_size: disk offload" in last_line(result)


def test_what_is_no_checkpoint_exits_1_with_one_line(run, tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "none"):
        result = run(folder)
        assert result.exit_code == 1
        assert result.output.startswith("Error: model: ") and result.output.count("\n") == 1


def test_disaggregated_mode_is_refused(run, llama_checkpoint, monkeypatch) -> None:
    monkeypatch.setenv("TLLM_MULTIMODAL_DISAGGREGATED", "1")
    result = run(llama_checkpoint)
    assert result.exit_code == 1
    assert "TLLM_MULTIMODAL_DISAGGREGATED" in last_line(result)


def test_a_taken_port_exits_1_with_one_line(run, llama_checkpoint: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        result = run(llama_checkpoint, "--host", "127.0.0.1", "--port", port)
    assert result.exit_code == 1
    assert result.output.count("\n") == 1
    assert result.output.startswith(f"Error: cannot listen on 127.0.0.1:{port}: ")


def test_help_and_mistakes_do_not_wait_for_torch() -> None:
    code = (
        "import sys, tensorrt_llm.commands.serve\n"
        "slow = {'torch', 'transformers', 'fastapi'} & set(sys.modules)\n"
        "sys.exit(f'imported: {slow}' if slow else 0)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_a_dry_run_prints_what_a_config_file_would_hold(run, llama_checkpoint, tmp_path) -> None:
    options = ("--max_batch_size", "7", "--no_enable_block_reuse", "--api_key", "sk-secret")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        result = run(llama_checkpoint, "--dry_run", "--port", port, *options)
    assert result.exit_code == 0, result.output
    assert f"# --port: {port}\n" in result.output and "sk-secret" not in result.output
    told = yaml.safe_load(result.output)
    assert (told["max_batch_size"], told["kv_cache_config"]["enable_block_reuse"]) == (7, False)
    file = tmp_path / "told.yaml"
    file.write_text(result.output)
    again = run(llama_checkpoint, "--dry_run", "--config", file)
    assert yaml.safe_load(again.output) == told
    wrong = run(llama_checkpoint, "--dry_run", "--media_limits", "{")
    assert wrong.exit_code == 2 and "--media_limits" in last_line(wrong)


@pytest.mark.parametrize("words", [[], ["serve"], ["folder"], ["folder", "--port", "1"]])
def test_shells_complete_options_and_their_choices(words: list[str]) -> None:
    complete = ShellComplete(main, {}, "trtllm-serve", "_TRTLLM_SERVE_COMPLETE")
    found = [item.value for item in complete.get_completions(words, "--ssl_")]
    assert found == ["--ssl_certfile", "--ssl_keyfile", "--ssl_ca_certs"]
    levels = [item.value for item in complete.get_completions([*words, "--log_level"], "in")]
    assert levels == ["internal_error", "info"]
